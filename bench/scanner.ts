/**
 * Measures the scanner: building, oracle price updates, position changes, and choosing counterparties. Fails if a
 * figure misses its target, which is for the default counts.
 */

// npm run bench:scanner -- [--positions 1000000] [--crossed 1000]
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { MarketSpec } from '../domain/market/market.ts'
import type { Position } from '../domain/positions/position.ts'
import { byRank, deleveragingLegs, MAX_LEGS } from '../domain/risk/deleveraging-legs.ts'
import { liquidationPrice } from '../domain/risk/liquidation-price.ts'
import { PositionScanner } from '../domain/risk/scanner.ts'
import {
  type Address,
  type FundingIndex,
  ONE,
  type Price,
  type Quote,
  type Steps,
  type UserId,
} from '../domain/units.ts'
import { argumentsOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'

const { positions: count, crossed } = argumentsOf({
  command: 'npm run bench:scanner --',
  flags: {
    positions: withDefault(wholeNumber('open positions, half of them long', { least: 1000 }), 1_000_000),
    crossed: withDefault(
      wholeNumber('longs below their threshold after the fall of the price', { least: 1 }),
      1_000,
    ),
  },
})

const spec = {
  kind: 'perpetual',
  step: ONE / 1000n,
  tick: ONE / 10n,
  mmr: (ONE * 225n) / 10_000n,
  imr: (ONE * 45n) / 1000n,
} as MarketSpec
const oracle = (100_000n * ONE) as Price
const index = (12_345_678n * 10n ** 6n) as FundingIndex
const ROUNDS = 200

/** Spreads the accounts over the thresholds: coprime to the number of positions. */
const STRIDE = 611_953

/** A position of 0.1 to 5 units entered within 1 % of the price, with 6 % to 50 % margin. */
function positionOf(account: number): Position {
  const rank = (account * STRIDE) % count
  const isLong = rank % 2 === 0
  const steps = 100 + ((account * 7_919) % 4_900)
  const size = (isLong ? steps : -steps) as Steps
  const value = BigInt(steps) * ((spec.step * oracle) / ONE)
  const entryNotional = (value * BigInt(99_000 + (account % 2_000))) / 100_000n
  const margin = (value * BigInt(60_000 + Math.floor((440_000 * rank) / count))) / 1_000_000n
  return { size, entryNotional, foldedMargin: margin + BigInt(size) * index, leverage: 10 } as Position
}

const milliseconds = (run: () => void): number => {
  const begin = performance.now()
  run()
  return performance.now() - begin
}
const medianOf = (run: () => void, rounds = ROUNDS): number =>
  percentile(
    Array.from({ length: rounds }, () => milliseconds(run)),
    0.5,
  )

const positions = new Map<UserId, Position>()
for (let account = 1; account <= count; account++) positions.set(account as UserId, positionOf(account))
const at = (account: UserId): Position => positions.get(account) as Position
const lowest = [...positions.values()]
  .filter(({ size }) => size > 0)
  .map((position) => liquidationPrice(spec, position, index) as Price)
  .sort((a, b) => (a > b ? -1 : 1))
const fallen = lowest[crossed - 1] as Price

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const memory = (): number => {
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
const before = memory()
let scanner = PositionScanner.of(positions)
const bytes = (memory() - before) / count
const rebuild = medianOf(() => {
  scanner = PositionScanner.of(positions)
}, 5)

const scan = (price: Price): number => {
  let found = 0
  for (const _ of scanner.liquidatable({ spec, index, oracle: price }, at)) found++
  return found
}
if (scan(oracle) !== 0 || scan(fallen) !== crossed)
  throw new Error(`found ${scan(oracle)} and ${scan(fallen)} positions, not 0 and ${crossed}`)
for (let round = 0; round < 2 * ROUNDS; round++) scan(fallen)

const quiet = medianOf(() => scan(oracle), 10 * ROUNDS) * 1000
const crossing = medianOf(() => scan(fallen))
let next = 0
const CHANGES = 10_000
const change =
  (medianOf(() => {
    for (let n = 0; n < CHANGES; n++) {
      const account = (1 + ((next++ * 7_907) % count)) as UserId
      const { size, entryNotional, foldedMargin, leverage } = at(account)
      const margin = (foldedMargin * BigInt(980 + (n % 41))) / 1000n
      scanner.set(account, { size, entryNotional, foldedMargin: margin, leverage } as Position)
    }
  }, 20) /
    CHANGES) *
  1000
scanner = PositionScanner.of(positions)
/** An account without equity. */
const bankrupt = { ...positionOf(2 * STRIDE), size: 5_000, foldedMargin: 5_000n * index } as Position
const prices = { spec, index, oracle: ((oracle * 97n) / 100n) as Price }
const addressOf = (account: UserId): Address => `0x${account.toString(16).padStart(40, '0')}` as Address
const choice = medianOf(() => {
  const chosen = scanner
    .counterparties(prices, bankrupt, MAX_LEGS)
    .map((account) => ({ account: addressOf(account), position: at(account) }))
  const legs = deleveragingLegs(
    { ...prices, position: bankrupt, backstop: null, pool: (10n ** 30n) as Quote },
    byRank(prices, chosen),
  )
  if (legs.length === 0) throw new Error('no counterparty was found')
}, 20)

const rows = [
  { measure: 'rebuild', value: rebuild, unit: 'ms', target: 3_000 },
  { measure: `update that crosses ${crossed}`, value: crossing, unit: 'ms', target: 5 },
  { measure: 'update that crosses none', value: quiet, unit: 'µs', target: 50 },
  { measure: 'change of one position', value: change, unit: 'µs', target: 20 },
  { measure: 'legs of a deleveraging', value: choice, unit: 'ms', target: 100 },
  { measure: 'memory per position', value: bytes, unit: 'bytes', target: 200 },
].map((row) => ({ ...row, value: Number(row.value.toPrecision(3)) }))
console.table(rows)
console.log(
  JSON.stringify({
    bench: 'scanner',
    positions: count,
    crossed,
    ...Object.fromEntries(rows.map((row) => [row.measure, row.value])),
  }),
)
process.exitCode = rows.some(({ value, target }) => value > target) ? 1 : 0
