/**
 * Computes an order's reservation: margin and fee allowance at the worst fill, for every step that may open a position.
 * No sequence of fills debits more than was reserved.
 */
import { type Band, tickCeil } from '../market/band.ts'
import { feeAllowancePerStep } from '../market/fees.ts'
import { highestPrice, type MarketSpec, priceOf } from '../market/market.ts'
import { closingSteps, marginPerStep, openingBasis, signOf } from '../positions/position.ts'
import {
  maxOf,
  minOf,
  mulDivDown,
  mulDivUp,
  ONE,
  type Price,
  type Quote,
  type Seq,
  type Steps,
  type Ticks,
} from '../units.ts'
import { isConditional, isMarketType, type Order, type Side } from './order.ts'

/**
 * Order fields that decide the reservation per opening step. `limit` is the signed price, 0 for a market
 * order.
 */
export interface ReservationTerms {
  readonly side: Side
  readonly limit: Ticks
  readonly leverage: number
  /** See `reservedPriceOf`. Fixed at acceptance, and again when the order triggers. */
  readonly reservedPrice: Ticks
}

/** An open or waiting order with the fields that reservations use. */
export interface Reservable extends ReservationTerms {
  readonly seq: Seq
  readonly reduceOnly: boolean
  /** Quantity less the matched steps. */
  readonly remaining: Steps
}

export interface Reservation {
  readonly seq: Seq
  /** Steps that would open once the reducing capacity is assigned. */
  readonly openable: Steps
  readonly amount: Quote
}

const isBinary = (spec: MarketSpec): boolean => spec.kind === 'binary_future'

/**
 * oracle × (1 + mtbLong) in ticks, rounded up.
 * It is at or above the upper band edge while the oracle price is at most `oracle`.
 */
function upperEdgeAt(spec: MarketSpec, oracle: Ticks): Ticks {
  const price = mulDivUp(priceOf(spec, oracle), ONE + spec.mtbLong, ONE) as Price
  return minOf(tickCeil(spec, price), highestPrice(spec))
}

function lowerEdgeAt(spec: MarketSpec, oracle: Ticks): Ticks {
  const price = mulDivDown(priceOf(spec, oracle), ONE - spec.mtbShort, ONE)
  return maxOf(Number(price / spec.tick), 1) as Ticks
}

/**
 * The highest price in ticks at which the reservation covers every step, and the cap of a buy in the auction. For a
 * binary sell, the lowest such price and its floor.
 */
export function reservedPriceOf(
  spec: MarketSpec,
  order: Pick<Order, 'side' | 'type' | 'price' | 'trigger'>,
  band: Band,
): Ticks {
  const isLimit = !isMarketType(order.type)
  if (isLimit && (order.side === 'LONG' || isBinary(spec))) return order.price
  if (order.side === 'SHORT' && isBinary(spec)) {
    return isConditional(order.type) ? lowerEdgeAt(spec, order.trigger) : band.lo
  }
  // A conditional order uses the band around its trigger.
  const edge = isConditional(order.type) ? upperEdgeAt(spec, order.trigger) : band.hi
  // A resting sell may fill above its limit, and the band may rise: its price is the upper edge at an oracle price of
  // its limit, if that is higher.
  return isLimit ? upperEdgeAt(spec, maxOf(order.price, edge)) : edge
}

/**
 * The price in ticks at which the margin is computed.
 * A limit sell posts margin at its limit at every price; every other order uses its reserved price.
 */
export const marginPriceOf = ({ side, limit, reservedPrice }: Omit<ReservationTerms, 'leverage'>): Ticks =>
  side === 'SHORT' && limit !== 0 ? limit : reservedPrice

/**
 * Wei reserved per opening step: margin (rounded up per step), plus fee allowance at the scheduled taker rate
 * and the reserved price.
 */
export function reservationPerStep(spec: MarketSpec, terms: ReservationTerms): Quote {
  const price = priceOf(spec, marginPriceOf(terms))
  const basis = terms.side === 'SHORT' && isBinary(spec) ? ((ONE - price) as Price) : price
  const fee = feeAllowancePerStep(spec, terms.reservedPrice)
  return (marginPerStep(spec, basis, terms.leverage) + fee) as Quote
}

/** Upper bound in wei of the debit per opening step, for a fill at `price` ticks. */
const debitPerStep = (spec: MarketSpec, terms: ReservationTerms, price: Ticks, oracle: Price): Quote =>
  (marginPerStep(spec, openingBasis(spec, terms, price, oracle), terms.leverage) +
    feeAllowancePerStep(spec, price)) as Quote

/** Prices and rates of a batch. */
export interface FillPrices {
  /** Market terms with the rates that the batch charges. Their taker rate can be below the reserved one. */
  readonly charging: MarketSpec
  readonly clearing: Ticks
  readonly oracle: Price
}

/**
 * Wei per opening step that a fill holds until it is mined. A sell of a perpetual or future can cost more than its
 * share; it fills at most `coveredSteps`, and the caller recomputes the rest.
 */
export function heldPerStep(
  spec: MarketSpec,
  terms: ReservationTerms,
  { charging, clearing, oracle }: FillPrices,
): Quote {
  return maxOf(reservationPerStep(spec, terms), debitPerStep(charging, terms, clearing, oracle))
}

/**
 * Steps of `openable` that the reservation covers at every price of this band. Only sells of perpetuals and futures can
 * have fewer: the band may rise beyond their fee allowance.
 */
export function coveredSteps(
  spec: MarketSpec,
  order: ReservationTerms & { readonly openable: Steps },
  band: Band,
  oracle: Price,
): Steps {
  if (order.openable === 0 || order.side === 'LONG' || isBinary(spec)) return order.openable
  const perStep = reservationPerStep(spec, order)
  const worst = debitPerStep(spec, order, band.hi, oracle)
  if (perStep >= worst) return order.openable
  return Number(mulDivDown(perStep, BigInt(order.openable), worst)) as Steps
}

/**
 * Position steps that no plain order against the position has claimed yet.
 * The next such order closes this many steps and opens its remaining steps.
 */
export function reducingCapacity(size: Steps, orders: Iterable<Reservable>): Steps {
  let left = Math.abs(size)
  for (const order of orders) {
    if (!order.reduceOnly && size * signOf(order.side) < 0) left -= order.remaining
  }
  return Math.max(0, left) as Steps
}

/**
 * Reservations of one account's orders at matched position `size`, by seq. Plain orders claim the reducing capacity by
 * seq; reduce-only orders neither claim nor reserve.
 */
export function reservationsOf(
  spec: MarketSpec,
  size: Steps,
  orders: readonly Reservable[],
): readonly Reservation[] {
  let rest = size
  const bySeq = [...orders].sort((a, b) => a.seq - b.seq)
  return bySeq.map((order) => {
    if (order.reduceOnly) return { seq: order.seq, openable: 0 as Steps, amount: 0n as Quote }
    const closing = closingSteps(rest, order.side, order.remaining)
    rest = (rest + signOf(order.side) * closing) as Steps
    const openable = (order.remaining - closing) as Steps
    const amount = openable === 0 ? 0n : reservationPerStep(spec, order) * BigInt(openable)
    return { seq: order.seq, openable, amount: amount as Quote }
  })
}

/**
 * Orders to cancel, newest first, until the remaining orders reserve at most `budget` wei. Orders without a reservation
 * stay, because cancelling them releases nothing.
 */
export function newestToCancel(reservations: readonly Reservation[], budget: Quote): readonly Seq[] {
  let reserved = reservations.reduce((sum, { amount }) => (amount === 0n ? sum : sum + amount), 0n)
  if (reserved <= budget) return []
  const newestFirst = [...reservations].sort((a, b) => b.seq - a.seq)
  const cancelled: Seq[] = []
  for (const { seq, amount } of newestFirst) {
    if (reserved <= budget) break
    // Capacity is not reassigned: only newer orders could use it, and newer reserving orders are cancelled already.
    if (amount === 0n) continue
    reserved -= amount
    cancelled.push(seq)
  }
  return cancelled
}
