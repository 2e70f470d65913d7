/**
 * Measures turns that the engine decides in memory: idle, with crossing orders, with a large auction, and with masses
 * of expiries; and the longest step.
 */
// npm run bench:turn -- [--orders 20000] [--expiries 70000]
import { performance } from 'node:perf_hooks'
import { argumentsOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { TurnMarket } from '../test/domain/exchange/support/turn-market.ts'
import { measureSignatures } from './intake/signatures.ts'

const { orders, expiries } = argumentsOf({
  command: 'npm run bench:turn --',
  flags: {
    orders: withDefault(wholeNumber('orders of the large auction', { least: 100 }), 20_000),
    expiries: withDefault(wholeNumber('orders that expire at once', { least: 100 }), 70_000),
  },
})

const USERS = 2_000

interface Measured {
  readonly name: string
  /** Sum over all steps, decided and applied. */
  readonly micros: number
  readonly longest: number
  readonly steps: number
  readonly rows: number
}

/** Each step is timed from its decision to the end of its application. */
function measure(name: string, market: TurnMarket, turns: number): Measured {
  let [micros, longest, steps, rows] = [0, 0, 0, 0]
  for (let turn = 0; turn < turns; turn++) {
    let started = performance.now()
    const settle = (): void => {
      const took = (performance.now() - started) * 1000
      micros += took
      longest = Math.max(longest, took)
      started = performance.now()
    }
    const written = market.turn((_decision, { stage }) => {
      if (stage !== 'mark') settle()
      steps++
    })
    settle()
    rows += written.flat().length
  }
  return { name, micros: micros / turns, longest, steps, rows }
}

function idle(): Measured {
  const market = new TurnMarket(USERS)
  for (let by = 1; by <= USERS; by++)
    market.place({ by, side: by % 2 === 0 ? 'LONG' : 'SHORT', steps: 10, limit: by % 2 === 0 ? 990 : 1010 })
  for (let turn = 0; turn < 3; turn++) market.turn()
  return measure('idle turn', market, 1_000)
}

function crossing(name: string, count: number): Measured {
  const market = new TurnMarket(USERS)
  market.turn()
  for (let at = 0; at < count; at++) {
    const [side, limit] = at % 2 === 0 ? (['LONG', 1005] as const) : (['SHORT', 995] as const)
    market.place({ by: 1 + (at % USERS), side, steps: 10, limit })
  }
  return measure(name, market, 1)
}

function expiring(count: number): Measured {
  const market = new TurnMarket(USERS)
  market.turn()
  const expiration = Math.floor(market.now / 1000) + 1
  for (let at = 0; at < count; at++)
    market.place({ by: 1 + (at % USERS), side: 'LONG', steps: 10, limit: 960 + (at % 30), expiration })
  market.turn()
  market.wait(3_000)
  return measure(`${count} expiries at once`, market, Math.ceil(count / 1_000))
}

/** Microseconds of one public-key recovery. */
const recovery = 1e6 / measureSignatures().bare
crossing('warm-up', 2_000)
const results = [
  idle(),
  crossing('turn with 100 crossing orders', 100),
  crossing(`auction of ${orders} orders`, orders),
  expiring(expiries),
]
const shown = results.map(({ name, micros, longest, steps, rows }) => ({
  case: name,
  'µs per turn': Math.round(micros),
  recoveries: Number((micros / recovery).toFixed(1)),
  'longest step ms': Number((longest / 1000).toFixed(1)),
  steps,
  rows,
}))
console.table(shown)
console.log(JSON.stringify({ bench: 'turn', recovery: Math.round(recovery), results: shown }))
