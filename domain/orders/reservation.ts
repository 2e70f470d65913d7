/**
 * Computes the reservation of an order: for every step that may open a position, the margin and the fee
 * allowance of the order's worst fill.
 *
 * A reservation is linear in steps. A fill takes its own share of it, or what the fill costs if that is more
 * (`heldPerStep`), so no sequence of fills debits more than was reserved.
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
 * The fields of an order that decide the reservation per opening step. `limit` is the signed price, 0 for a
 * market order.
 */
export interface ReservationTerms {
  readonly side: Side
  readonly limit: Ticks
  readonly leverage: number
  /** See `reservedPriceOf`; fixed at acceptance, and again when the order triggers. */
  readonly reservedPrice: Ticks
}

/** An open or waiting order with the fields that reservations need. */
export interface Reservable extends ReservationTerms {
  readonly seq: Seq
  readonly reduceOnly: boolean
  /** Quantity less everything matched. */
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
 * oracle × (1 + mtbLong) in ticks, rounded up: at or above the band's upper edge while the oracle price is at
 * most `oracle`.
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
 * The price in ticks up to which the reservation covers every step; for a binary sell the price down to which
 * it does. It caps the price of a buy in the auction and is the floor of a binary sell.
 * - Limit order: its signed limit.
 * - Market order: the band's upper edge; for a binary sell the lower edge.
 * - Conditional market order: the same edge of the band around its trigger.
 * - Limit sell of a perpetual or future: it may fill at any price from its limit up, and the band may rise
 *   while it rests. This price is the band's upper edge once the oracle price has risen to the order's limit,
 *   or to the band's upper edge at acceptance if that is higher (conditional: to the edge at its trigger).
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
  const edge = isConditional(order.type) ? upperEdgeAt(spec, order.trigger) : band.hi
  return isLimit ? upperEdgeAt(spec, maxOf(order.price, edge)) : edge
}

/**
 * The price in ticks at which the margin is computed: the limit of a limit sell, which posts margin at its
 * limit at every price, and the reserved price of every other order.
 */
export const marginPriceOf = ({ side, limit, reservedPrice }: Omit<ReservationTerms, 'leverage'>): Ticks =>
  side === 'SHORT' && limit !== 0 ? limit : reservedPrice

/**
 * Wei reserved per opening step: margin (rounded up per step) and fee allowance at the scheduled taker rate
 * and the reserved price.
 */
export function reservationPerStep(spec: MarketSpec, terms: ReservationTerms): Quote {
  const price = priceOf(spec, marginPriceOf(terms))
  const basis = terms.side === 'SHORT' && isBinary(spec) ? ((ONE - price) as Price) : price
  const fee = feeAllowancePerStep(spec, terms.reservedPrice)
  return (marginPerStep(spec, basis, terms.leverage) + fee) as Quote
}

/** Upper bound of the wei that one opening step costs in a fill at `price` ticks. */
const debitPerStep = (spec: MarketSpec, terms: ReservationTerms, price: Ticks, oracle: Price): Quote =>
  (marginPerStep(spec, openingBasis(spec, terms, price, oracle), terms.leverage) +
    feeAllowancePerStep(spec, price)) as Quote

/** The prices and the rates of a batch. */
export interface FillPrices {
  /** The terms that the batch charges. Its taker rate can be below the one at which orders reserve. */
  readonly charging: MarketSpec
  readonly clearing: Ticks
  readonly oracle: Price
}

/**
 * Wei per opening step that a fill holds until it is mined: its share of the reservation, or what the fill costs if that is more. Only a
 * sell of a perpetual or future can fill beyond its reserved price. It fills at most `coveredSteps`, so the order's whole reservation
 * suffices; what is left for the other steps is then less than they need, and their reservation must be recomputed.
 */
export function heldPerStep(
  spec: MarketSpec,
  terms: ReservationTerms,
  { charging, clearing, oracle }: FillPrices,
): Quote {
  return maxOf(reservationPerStep(spec, terms), debitPerStep(charging, terms, clearing, oracle))
}

/**
 * Steps of `openable` that the reservation covers at every price of a batch with this band. Buys and binary
 * sells: all steps, because the reserved price bounds their price. Other sells have no upper price bound. If
 * the band has risen beyond the price that their allowance covers, fewer steps are covered: reservation /
 * worst debit, rounded down.
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
 * Steps of the position that no plain order against it has taken yet. The next such order closes this many
 * steps and opens the rest.
 */
export function reducingCapacity(size: Steps, orders: Iterable<Reservable>): Steps {
  let left = Math.abs(size)
  for (const order of orders) {
    if (!order.reduceOnly && size * signOf(order.side) < 0) left -= order.remaining
  }
  return Math.max(0, left) as Steps
}

/**
 * Reservations of one account's orders in one market against the matched position `size`, by seq. Plain
 * orders against the position take its reducing capacity by seq; their other steps open. Reduce-only orders
 * take no capacity and reserve nothing. To be recomputed whenever the position changes.
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
 * The orders to cancel, newest first, until the others reserve at most `budget` wei. Orders that reserve
 * nothing stay, because cancelling them releases nothing. Capacity is not reassigned: it is assigned by seq,
 * so the capacity of a cancelled order could only serve newer orders, and those that reserve are cancelled
 * before it.
 */
export function newestToCancel(reservations: readonly Reservation[], budget: Quote): readonly Seq[] {
  let reserved = reservations.reduce((sum, { amount }) => (amount === 0n ? sum : sum + amount), 0n)
  if (reserved <= budget) return []
  const newestFirst = [...reservations].sort((a, b) => b.seq - a.seq)
  const cancelled: Seq[] = []
  for (const { seq, amount } of newestFirst) {
    if (reserved <= budget) break
    if (amount === 0n) continue
    reserved -= amount
    cancelled.push(seq)
  }
  return cancelled
}
