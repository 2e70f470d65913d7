/**
 * Measures the lateness of turns when one market maker quotes in all of many markets: each market has a turn (marks, liquidations, auction)
 * every 200 ms, and the busy ones get orders at a fixed rate, every other one the maker's. A probe locks the maker's account every 20 ms
 * and measures how long it waits for it. Postgres without fsync; keeper, placements and probe in one process. Without a chain: parts count as
 * mined twice a second. Prints a table and one JSON line; times are milliseconds.
 *
 *   npm run bench:markets -- [--markets 100] [--busy 20] [--rate 3] [--seconds 20] [--warmup 5]
 */
import { loadavg } from 'node:os'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { lockAccounts } from '../db/accounts.ts'
import type { Fence } from '../db/fence.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { hashOrder } from '../domain/orders/order-hash.ts'
import type { Address, MarketId } from '../domain/units.ts'
import { createAuction } from '../keeper/auction/auction.ts'
import { createMarketMemory } from '../keeper/auction/market-memory.ts'
import { createLiquidations } from '../keeper/liquidation/liquidations.ts'
import { createLiquidationStore } from '../keeper/liquidation/store.ts'
import { createMarks } from '../keeper/marks/marks.ts'
import { argumentsOf, positiveNumber, wholeNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'
import {
  keccak,
  MarketFixture,
  NO_METRICS,
  RULES,
  realClock,
  type Trader,
} from '../test/keeper/support/market-fixture.ts'
import { endQueuedActions, renewReports } from '../test/keeper/support/without-chain.ts'
import { perpetual } from '../test/support/markets.ts'

const flags = argumentsOf({
  command: 'npm run bench:markets --',
  flags: {
    markets: withDefault(wholeNumber('markets', { least: 1 }), 100),
    busy: withDefault(wholeNumber('markets with orders', { least: 1 }), 20),
    rate: withDefault(positiveNumber('orders per second of each busy market'), 3),
    seconds: withDefault(positiveNumber('duration of the measurement'), 20),
    warmup: withDefault(positiveNumber('seconds before the measurement'), 5),
  },
})

const TURN_MS = 200
const REPORT_MS = 500
const PROBE_MS = 20
const MIDDLE = 1000

const specOf = (number: number): MarketSpec => ({
  ...perpetual,
  marketId: number as MarketId,
  symbol: `BENCH${number}-PERP`,
  trader: `0x${String(number).padStart(40, '0')}` as Address,
})

interface Samples {
  readonly lateness: number[]
  /** Of turns that made a batch. */
  readonly turns: number[]
  readonly waits: number[]
  batches: number
  orders: number
}

const samples: Samples = { lateness: [], turns: [], waits: [], batches: 0, orders: 0 }
let isMeasuring = false
let isRunning = true

function marketOf(fixture: MarketFixture) {
  const { db, spec } = fixture
  const memory = createMarketMemory({ ...RULES, kind: spec.kind })
  const ports = {
    ...fixture.auctionPorts(),
    liquidations: createLiquidationStore(db, fixture.databaseTime),
    metrics: NO_METRICS,
    killPoint: () => {},
    wakeSettlement: () => {},
    hashOrder: (order: Parameters<typeof hashOrder>[0], of: MarketSpec) => hashOrder(order, of, keccak),
  }
  const marks = createMarks(ports, spec, memory)
  const liquidations = createLiquidations(ports, spec, memory)
  const auction = createAuction(ports, spec, memory)
  return async (fence: Fence): Promise<boolean> => {
    await marks.update(fence)
    await liquidations.update(fence)
    return (await auction.run(fence)) !== null
  }
}

/** Turns as the keeper's loop runs them. A turn is late by the time from when it was due to its start. */
async function runTurns(fixture: MarketFixture, offset: number): Promise<void> {
  const turn = marketOf(fixture)
  const fence = await fixture.lease(`auction:m${fixture.spec.marketId}`)
  await sleep(offset)
  let due = performance.now()
  while (isRunning) {
    const started = performance.now()
    const late = started - due
    const matched = await turn(fence)
    const ended = performance.now()
    if (isMeasuring) {
      samples.lateness.push(late)
      if (matched) samples.turns.push(ended - started)
      if (matched) samples.batches++
    }
    due = started + TURN_MS
    await sleep(Math.max(0, due - performance.now()))
  }
}

/** The maker's bid, then an offer that crosses it, in turn. An account that changed sides would cross its own order after a slow turn. */
async function runOrders(fixture: MarketFixture, maker: Trader, taker: Trader): Promise<void> {
  let due = performance.now()
  for (let at = 0; isRunning; at++) {
    if (at % 2 === 0) await fixture.place({ by: maker, side: 'LONG', steps: 20, limit: MIDDLE })
    else await fixture.place({ by: taker, side: 'SHORT', steps: 20, limit: MIDDLE })
    if (isMeasuring) samples.orders++
    due += 1000 / flags.rate
    await sleep(Math.max(0, due - performance.now()))
  }
}

async function runProbe({ db }: MarketFixture, maker: Trader): Promise<void> {
  while (isRunning) {
    await db.transaction().execute(async (tx) => {
      const started = performance.now()
      await lockAccounts(tx, [maker.account])
      if (isMeasuring) samples.waits.push(performance.now() - started)
    })
    await sleep(PROBE_MS)
  }
}

/** New reports of every market, and the end of what the chain would settle. */
async function runSurroundings({ db }: MarketFixture): Promise<void> {
  while (isRunning) {
    await renewReports(db, Date.now())
    await endQueuedActions(db)
    await sleep(REPORT_MS)
  }
}

async function openMarkets(): Promise<MarketFixture[]> {
  const first = await MarketFixture.open(specOf(1), realClock())
  const fixtures = [first]
  for (let number = 2; number <= flags.markets; number++) fixtures.push(await first.beside(specOf(number)))
  for (const fixture of fixtures) await fixture.report(MIDDLE)
  return fixtures
}

const rounded = (value: number): number => Math.round(value * 10) / 10

const figures = (name: string, values: readonly number[]) => ({
  [`${name}_p50`]: rounded(percentile(values, 0.5)),
  [`${name}_p99`]: rounded(percentile(values, 0.99)),
  [`${name}_max`]: rounded(Math.max(0, ...values)),
})

const fixtures = await openMarkets()
const first = fixtures[0] as MarketFixture
const maker = await first.trader('maker', '100000000')
for (const fixture of fixtures)
  for (const side of ['LONG', 'SHORT'] as const)
    await fixture.place({ by: maker, side, steps: 20, limit: side === 'LONG' ? MIDDLE - 20 : MIDDLE + 20 })
const takers: Trader[] = []
for (let at = 0; at < flags.busy; at++) takers.push(await first.trader(`taker ${at}`, '100000000'))

const running = [
  runSurroundings(first),
  runProbe(first, maker),
  ...fixtures.map((fixture, at) => runTurns(fixture, (at * TURN_MS) / fixtures.length)),
  ...fixtures.slice(0, flags.busy).map((fixture, at) => runOrders(fixture, maker, takers[at] as Trader)),
]
const ended = Promise.all(running)
await Promise.race([ended, sleep(flags.warmup * 1000)])
isMeasuring = true
await Promise.race([ended, sleep(flags.seconds * 1000)])
isMeasuring = false
isRunning = false
await ended
await first.close()

const row = {
  ...figures('late', samples.lateness),
  ...figures('batch_turn', samples.turns),
  ...figures('maker_wait', samples.waits),
  batches: samples.batches,
  orders_per_s: rounded(samples.orders / flags.seconds),
  load: rounded(loadavg()[0] ?? 0),
}
console.table([row])
const { markets, busy, rate } = flags
console.log(JSON.stringify({ bench: 'markets', markets, busy, rate, ...row }))
process.exit()
