/** The scenarios: markets, traders and the paths of oracle prices. */

import type { MarketSpec } from '../domain/market/market.ts'
import type { Millis, Price, Quantity, Rate, Steps, Ticks } from '../domain/units.ts'
import type { Random } from './random.ts'
import type { Recorded } from './recorded.ts'

export const SCENARIOS = ['crash', 'gap', 'thin-book', 'outage', 'cascade', 'squeeze', 'binary'] as const
export type ScenarioName = (typeof SCENARIOS)[number]

/** A step of a path: the price relative to the first one (a probability in a binary market); null while the oracle is silent. */
export type PathStep = number | null

export interface Scenario {
  readonly markets: readonly MarketSpec[]
  /** One path per market, of equal lengths. */
  readonly paths: readonly (readonly PathStep[])[]
  /** The price in all markets before the path, as a step of it. */
  readonly start: number
  /** Time between two steps. */
  readonly interval: Millis
  /** Size of each market maker's quotes relative to an average order, before and after the start of the path. */
  readonly depth: { readonly before: number; readonly after: number }
  /** Share of the traders that buy before the path begins. */
  readonly bulls: number
  /** Steps of the path in which the bank is paused. */
  readonly pause: { readonly from: number; readonly to: number } | null
  /** Steps of the path in which the job of the liquidations does not run, but the auction does. */
  readonly stall: { readonly from: number; readonly to: number } | null
  /** Largest move of the funding index per step, as a fraction of the price. */
  readonly funding: number
  /** Steps until an action is executed. */
  readonly lag: number
  /** Capital of the backstop, relative to that of all traders. */
  readonly backstop: number
}

const E18 = 10n ** 18n
const e18 = (value: number): bigint => BigInt(Math.round(value * 1e12)) * 10n ** 6n

export const perpetual = (id: number, leverage: number): MarketSpec => ({
  ...{ marketId: id as MarketSpec['marketId'], symbol: `PERP-${id}`, kind: 'perpetual', chainId: 6343n },
  trader: `0x${String(id).padStart(40, '0')}` as MarketSpec['trader'],
  ...{ tick: e18(0.1) as Price, step: e18(0.001) as Quantity, minPrice: 1 as Ticks, minQuantity: 1 as Steps },
  ...{ maxQuantity: 10_000_000 as Steps, maxLeverage: leverage },
  ...{ imr: e18(0.9 / leverage) as Rate, mmr: (e18(0.9 / leverage) / 2n) as Rate },
  ...{
    mtbLong: e18(0.05) as Rate,
    mtbShort: e18(0.05) as Rate,
    makerFee: 0n as Rate,
    takerFee: e18(0.0005) as Rate,
  },
  ...{ fundingCap: e18(0.04) as Rate, fundingSession: false, finalLow: 0n as Price, finalHigh: 0n as Price },
  ...{ expiresAt: 0 as Millis, disputeWindow: 86_400_000 as Millis },
})

const binary = (id: number): MarketSpec => ({
  ...perpetual(id, 5),
  ...{ kind: 'binary_future', symbol: `BINARY-${id}`, tick: e18(0.001) as Price, step: E18 as Quantity },
  ...{
    mtbLong: e18(0.2) as Rate,
    mtbShort: e18(0.2) as Rate,
    takerFee: e18(0.02) as Rate,
    fundingCap: 0n as Rate,
  },
  ...{ finalHigh: E18 as Price, expiresAt: 4_000_000_000_000 as Millis },
})

/** The price at which a path starts. */
export const firstPrice = ({ kind }: Pick<MarketSpec, 'kind'>): number =>
  kind === 'binary_future' ? 0.5 : 1000

const LENGTH = 60

/** `moves` yields the relative move of each step. */
function walk(move: (step: number) => number): number[] {
  const path: number[] = []
  let price = 1
  for (let step = 0; step < LENGTH; step++) {
    price *= Math.max(0.3, 1 + move(step))
    path.push(price)
  }
  return path
}

/** A fall (or rise) to `end` over the length, in steps of random size, with noise. */
function slide(random: Random, end: number, noise: number): number[] {
  const weights = Array.from({ length: LENGTH }, () => random() ** 3)
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  return walk((step) => end ** ((weights[step] as number) / total) - 1 + noise * random.normal())
}

const gapAt = (at: number, size: number, random: Random): number[] =>
  walk((step) => (step === at ? size : 0.001 * random.normal()))

const BASE = {
  ...{
    start: 1,
    interval: 200 as Millis,
    depth: { before: 4, after: 2 },
    bulls: 0.5,
    pause: null,
    stall: null,
    funding: 0.0002,
  },
}

type Draw = (random: Random) => Omit<Scenario, 'lag' | 'backstop'>

const one = (random: Random, path: (leverage: number) => readonly PathStep[]) => {
  const leverage = random.pick([5, 10, 20, 40])
  return { markets: [perpetual(1, leverage)], paths: [path(leverage)] }
}

const DRAWS: Readonly<Record<ScenarioName, Draw>> = {
  crash: (random) => ({
    ...BASE,
    ...one(random, () => slide(random, 0.4 + 0.45 * random(), 0.002)),
    bulls: 0.7,
  }),
  gap: (random) => {
    const at = random.between(3, 12)
    const size = random.pick([-1, 1]) * (0.03 + 0.4 * random())
    return {
      ...BASE,
      ...one(random, () => gapAt(at, size, random)),
      // Winners close while nothing deleverages those who have lost.
      stall: random.chance(0.3) ? { from: at, to: at + random.between(1, 10) } : null,
    }
  },
  'thin-book': (random) => ({
    ...BASE,
    ...one(random, () => slide(random, 0.75 + 0.2 * random(), 0.002)),
    ...{ depth: { before: 4, after: 0.05 }, bulls: 0.7 },
  }),
  outage: (random) => {
    const from = random.between(5, 12)
    const to = from + random.between(4, 15)
    const jump = random.pick([-1, 1]) * (0.02 + 0.25 * random())
    const silent = (path: readonly PathStep[]) =>
      path.map((price, step) => (step >= from && step < to ? null : price))
    const isPaused = random.chance(0.5)
    return {
      ...BASE,
      ...one(random, () => silent(gapAt(to - 1, jump, random))),
      // Longer steps, so that the grace after a pause of the bank ends within the path.
      ...{ interval: (isPaused ? 40_000 : 200) as Millis, pause: isPaused ? { from, to } : null },
    }
  },
  cascade: (random) => {
    const markets = [perpetual(1, 20), perpetual(2, 10), perpetual(3, 40)]
    const common = slide(random, 0.55 + 0.3 * random(), 0)
    const paths = markets.map(() => {
      const own = walk(() => 0.003 * random.normal())
      return common.map((price, step) => price * (own[step] as number))
    })
    return { ...BASE, markets, paths, depth: { before: 4, after: 0.3 }, bulls: 0.75 }
  },
  squeeze: (random) => ({
    ...BASE,
    ...one(random, () => slide(random, 1.2 + 0.9 * random(), 0.002)),
    ...{ bulls: 0.3, depth: { before: 4, after: 0.5 } },
  }),
  binary: (random) => {
    const end = random.chance(0.5) ? 1.9 + 0.099 * random() : 0.002 + 0.2 * random()
    const at = random.between(3, 15)
    const drift = walk(() => 0.004 * random.normal())
    const path = drift.map((price, step) => {
      const share = step < at ? 0 : Math.min(1, (step - at + 1) / random.pick([1, 4, 20]))
      return Math.min(1.998, Math.max(0.002, price * (1 - share) + end * share))
    })
    return { ...BASE, markets: [binary(1)], paths: [path], depth: { before: 4, after: 1 }, funding: 0 }
  },
}

/** The longest excerpt of a recording, in steps. */
const EXCERPT = 90
/** Places at which an excerpt may start, of which that with the widest range is chosen. */
const PLACES = 3

/** An excerpt of the recording at a speed and in circumstances that the seed chooses. */
function drawRecorded({ kind, prices }: Recorded, random: Random): ReturnType<Draw> {
  const stride = Math.min(random.pick([1, 2, 5, 15]), Math.max(1, Math.floor(prices.length / EXCERPT)))
  const steps = Math.min(EXCERPT, Math.floor(prices.length / stride))
  const excerpts = Array.from({ length: PLACES }, () => {
    const from = random.between(0, prices.length - steps * stride)
    const excerpt = Array.from({ length: steps }, (_, step) => prices[from + step * stride] as number)
    return { excerpt, range: Math.max(...excerpt) / Math.max(1e-9, Math.min(...excerpt)) }
  })
  const { excerpt } = excerpts.reduce((widest, each) => (each.range > widest.range ? each : widest))
  const first = kind === 'binary_future' ? firstPrice({ kind }) : (excerpt[0] as number)
  // A probability that is exactly 0 or 1 is not a price of a binary market.
  const path = excerpt.map((price) =>
    kind === 'binary_future' ? Math.min(0.999, Math.max(0.001, price)) / first : price / first,
  )
  const leverages = random.chance(0.3) ? [5, 40] : [random.pick([5, 10, 20, 40])]
  return {
    ...BASE,
    markets:
      kind === 'binary_future' ? [binary(1)] : leverages.map((leverage, at) => perpetual(at + 1, leverage)),
    paths: kind === 'binary_future' ? [path] : leverages.map(() => path),
    start: path[0] as number,
    interval: random.pick([200, 1_000, 60_000]) as Millis,
    depth: { before: 4, after: random.pick([0.05, 0.5, 2]) },
    bulls: random.pick([0.3, 0.5, 0.7]),
    funding: kind === 'binary_future' ? 0 : BASE.funding,
  }
}

export function drawScenario(what: ScenarioName | Recorded, random: Random): Scenario {
  const drawn = typeof what === 'string' ? DRAWS[what](random) : drawRecorded(what, random)
  return { ...drawn, lag: random.between(0, 3), backstop: random.pick([0, 0.005, 0.05, 0.5]) }
}

/**
 * The scenario in steps long enough for its moves. A contract accepts a move of at most 100 % of the price in a second,
 * and as much again in each further second.
 */
export function atChainPace(scenario: Scenario): Scenario {
  const { markets, paths, start } = scenario
  // Markets that share accounts require further actions within ten seconds.
  if (markets.length > 1) return { ...scenario, interval: 1_000 as Millis }
  const prices = [start, ...(paths[0] ?? [])]
  let most = 1
  for (const [from, price] of prices.entries()) {
    if (price === null) continue
    for (const [to, later] of prices.entries())
      if (to > from && later !== null) most = Math.max(most, Math.abs(later - price) / price / (to - from))
  }
  return { ...scenario, interval: Math.max(scenario.interval, Math.ceil(most) * 1_000) as Millis }
}
