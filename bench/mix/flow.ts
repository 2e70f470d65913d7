/** The orders of a measurement and the times at which they are sent: a seeded imitation of recorded trading. Pure. */
import { highestPrice } from '../../domain/market/market.ts'
import type { OrderType, Side } from '../../domain/orders/order.ts'
import type { BenchMarket } from '../intake/orders.ts'

/**
 * From NASDAQ messages of AAPL on 2012-06-21, 09:30 to 10:30 New York (LOBSTER's sample, 50 levels). A trader here
 * makes each of the 469 partial cancels as a cancel and a new order.
 */
const RECORDED = { resting: 44_256 + 469, crossing: 3_290, cancelled: 41_004 + 469 }

/** Share of the orders that wait for a trigger. Assumed: NASDAQ's messages contain none. */
const CONDITIONAL = 0.02
const CROSSING = RECORDED.crossing / (RECORDED.resting + RECORDED.crossing)
/** Share of resting and conditional orders that are cancelled; the rest stays until it is filled. */
const CANCELLED = RECORDED.cancelled / RECORDED.resting

/** Values at equally spaced ranks would lose the tails, so a distribution is points (rank, value), with straight lines between them. */
type Distribution = readonly (readonly [rank: number, value: number])[]

/** Seconds from a new order to its cancel in the same recording. */
const LIFE_S: Distribution = [
  [0, 0],
  [0.1, 0.0026],
  [0.25, 0.0438],
  [0.5, 0.374],
  [0.75, 2.39],
  [0.9, 11.2],
  [0.95, 19.4],
  [0.99, 115],
  [1, 300],
]

/** A trader cancels only what is acknowledged. The recording's shortest lives are those of traders in the exchange's own building. */
const SHORTEST_LIFE_S = 0.1

/** Distance of a new order from the last trade on its own side, in hundredths of a percent. */
const DISTANCE_BP: Distribution = [
  [0, 0],
  [0.05, 0.17],
  [0.1, 0.68],
  [0.25, 1.88],
  [0.5, 3.41],
  [0.75, 5.98],
  [0.9, 14.5],
  [0.95, 22.8],
  [1, 31.7],
]

/** Shares of an order, here steps of the market. */
const SIZE: Distribution = [
  [0, 1],
  [0.1, 17],
  [0.25, 20],
  [0.5, 100],
  [0.75, 100],
  [0.9, 200],
  [0.99, 1_000],
  [1, 1_000],
]

/** Factor of the distances for triggers: most are not reached within a measurement. */
const TRIGGER_FACTOR = 10
const FEWEST_TRIGGER_TICKS = 3
/** At most half of a market's own limit, so that a walk of the oracle price leaves room to the margin that opening requires. */
const LEVERAGE = 5

export type Kind = 'resting' | 'crossing' | 'conditional' | 'cancel'

export interface PlannedOrder {
  readonly kind: Exclude<Kind, 'cancel'>
  /** Milliseconds after the start of the flow. */
  readonly at: number
  /** Indexes of the lists that the flow was planned for. */
  readonly account: number
  readonly market: number
  readonly side: Side
  readonly type: OrderType
  /** In ticks; 0 for none. */
  readonly price: number
  readonly trigger: number
  readonly steps: number
  readonly leverage: number
}

/** `order`: index of the order that it cancels. */
export interface PlannedCancel {
  readonly kind: 'cancel'
  readonly at: number
  readonly order: number
}

export interface Flow {
  readonly orders: readonly PlannedOrder[]
  readonly cancels: readonly PlannedCancel[]
}

export interface MixTerms {
  /** Orders per second; the cancels are additional. */
  readonly rate: number
  readonly seconds: number
  /** Number of accounts, even: one half buys and the other sells, so that no account trades with itself. */
  readonly accounts: number
  readonly seed: number
  /** Share of the orders that cross, if not the recorded one. */
  readonly crossing?: number
  /** False: no order is cancelled. */
  readonly cancels?: boolean
}

export function planMix(markets: readonly BenchMarket[], terms: MixTerms): Flow {
  const random = uniform(terms.seed)
  const orders: PlannedOrder[] = []
  const cancels: PlannedCancel[] = []
  const until = terms.seconds * 1000
  for (let at = gap(random, terms.rate); at < until; at += gap(random, terms.rate)) {
    const order = planOrder(markets, terms, at, random)
    orders.push(order)
    if (terms.cancels === false || order.kind === 'crossing' || random() >= CANCELLED) continue
    const ends = at + 1000 * Math.max(SHORTEST_LIFE_S, valueAt(LIFE_S, random()))
    if (ends < until) cancels.push({ kind: 'cancel', at: ends, order: orders.length - 1 })
  }
  return { orders, cancels }
}

function planOrder(
  markets: readonly BenchMarket[],
  { accounts, crossing = CROSSING }: MixTerms,
  at: number,
  random: () => number,
): PlannedOrder {
  const kind = kindAt(random(), crossing)
  const index = Math.floor(random() * markets.length)
  const market = markets[index] as BenchMarket
  const side: Side = random() < 0.5 ? 'LONG' : 'SHORT'
  const account = 2 * Math.floor((random() * accounts) / 2) + (side === 'LONG' ? 0 : 1)
  const distance = valueAt(DISTANCE_BP, random()) / 10_000
  const steps = Math.max(1, Math.round(valueAt(SIZE, random())))
  const common = {
    ...{ kind, at, account, side, market: index },
    steps: Math.max(steps, market.spec.minQuantity),
    leverage: Math.min(LEVERAGE, Math.max(1, Math.floor(market.spec.maxLeverage / 2))),
  }
  if (kind === 'crossing') return { ...common, type: 'MARKET', price: 0, trigger: 0 }
  if (kind === 'resting')
    return { ...common, type: 'LIMIT', price: priceAt(market, side, distance), trigger: 0 }
  return { ...common, type: 'STOP_MARKET', price: 0, trigger: triggerAt(market, side, distance) }
}

const kindAt = (rank: number, crossing: number): PlannedOrder['kind'] =>
  rank < CONDITIONAL ? 'conditional' : rank < CONDITIONAL + crossing ? 'crossing' : 'resting'

/** At least one tick away on the order's own side: resting orders do not cross each other. */
function priceAt({ spec, oracle }: BenchMarket, side: Side, distance: number): number {
  const ticks = Math.max(1, Math.round(oracle * distance))
  return side === 'LONG' ? Math.max(1, oracle - ticks) : Math.min(highestPrice(spec), oracle + ticks)
}

/** A stop buys above the price and sells below it. */
function triggerAt({ spec, oracle }: BenchMarket, side: Side, distance: number): number {
  const ticks = Math.max(FEWEST_TRIGGER_TICKS, Math.round(oracle * distance * TRIGGER_FACTOR))
  return side === 'LONG' ? Math.min(highestPrice(spec), oracle + ticks) : Math.max(1, oracle - ticks)
}

/** Milliseconds to the next order: arrivals at random times, as those of independent traders. */
const gap = (random: () => number, rate: number): number => (-Math.log(1 - random()) / rate) * 1000

function valueAt(points: Distribution, rank: number): number {
  const next = points.findIndex(([at]) => at >= rank)
  const [above, high] = points[next] as readonly [number, number]
  const [below, low] = points[Math.max(0, next - 1)] as readonly [number, number]
  return above === below ? high : low + ((high - low) * (rank - below)) / (above - below)
}

/** Numbers from 0 to 1 of a 32-bit generator (mulberry32). */
export function uniform(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
