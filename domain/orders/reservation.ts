/**
 * What an account's orders hold back of its free balance: for every step that may open a position, the margin
 * and the fee allowance of the worst fill that the order can have. Linear in steps, so a fill releases
 * exactly its own share, and no sequence of fills debits more than was reserved.
 */
import { type Band, tickCeil } from '../market/band.ts'
import { feeAllowancePerStep } from '../market/fees.ts'
import { highestPrice, type MarketSpec, priceOf } from '../market/market.ts'
import { closingSteps, marginPerStep, signOf } from '../positions/position.ts'
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
 * The terms of an order that decide what one opening step holds back. `limit` is the signed price, 0 for a
 * market order.
 */
export interface ReservationTerms {
  readonly side: Side
  readonly limit: Ticks
  readonly leverage: number
  /** See `reservedPriceOf`; fixed at acceptance. */
  readonly reservedPrice: Ticks
}

/** An open or waiting order as the reservation sees it. */
export interface Reservable extends ReservationTerms {
  readonly seq: Seq
  readonly reduceOnly: boolean
  /** Quantity less everything matched. */
  readonly remaining: Steps
}

export interface Reservation {
  readonly seq: Seq
  /** Steps that would open once the reducing capacity is given out. */
  readonly openable: Steps
  readonly amount: Quote
}

const isBinary = (spec: MarketSpec): boolean => spec.kind === 'binary_future'

/** trigger x (1 + mtbLong), up: as far as the band can reach when the mark stands at the trigger. */
function highestAfterTrigger(spec: MarketSpec, trigger: Ticks): Ticks {
  const price = mulDivUp(priceOf(spec, trigger), ONE + spec.mtbLong, ONE) as Price
  return minOf(tickCeil(spec, price), highestPrice(spec))
}

function lowestAfterTrigger(spec: MarketSpec, trigger: Ticks): Ticks {
  const price = mulDivDown(priceOf(spec, trigger), ONE - spec.mtbShort, ONE)
  return maxOf(Number(price / spec.tick), 1) as Ticks
}

/**
 * The price that the reservation is computed at, in ticks. It caps a buy's price in the auction and is the
 * floor of a binary sell's. A limit order: its signed limit. A market order: the band's upper edge, for a
 * binary sell the lower; a conditional one: the band around its trigger. A perpetual's or future's limit sell
 * is margined at its limit but may fill above it: for its fee allowance this price follows the band's upper
 * edge where that is higher (`feePriceOf`).
 */
export function reservedPriceOf(
  spec: MarketSpec,
  order: Pick<Order, 'side' | 'type' | 'price' | 'trigger'>,
  band: Band,
): Ticks {
  const isLimit = !isMarketType(order.type)
  if (isLimit && (order.side === 'LONG' || isBinary(spec))) return order.price
  if (order.side === 'SHORT' && isBinary(spec)) {
    return isConditional(order.type) ? lowestAfterTrigger(spec, order.trigger) : band.lo
  }
  const edge = isConditional(order.type) ? highestAfterTrigger(spec, order.trigger) : band.hi
  return isLimit ? maxOf(order.price, edge) : edge
}

/**
 * The price that the fee allowance pays for. A perpetual's or future's limit sell may fill, and pay its fee, at any price from its limit up,
 * and the band rises while it rests: paid for is twice its reserved price, so that a sell accepted today is covered to its last step until the
 * band has doubled.
 */
export const feePriceOf = (
  spec: MarketSpec,
  { side, limit, reservedPrice }: Omit<ReservationTerms, 'leverage'>,
): Ticks => (side === 'SHORT' && limit !== 0 && !isBinary(spec) ? 2 * reservedPrice : reservedPrice) as Ticks

/** Wei held back per opening step: margin (up per step) and fee allowance at the scheduled taker rate. */
export function reservationPerStep(spec: MarketSpec, terms: ReservationTerms): Quote {
  const { side, limit, leverage, reservedPrice } = terms
  const fee = feeAllowancePerStep(spec, feePriceOf(spec, terms))
  if (side === 'SHORT' && isBinary(spec)) {
    const basis = (ONE - priceOf(spec, reservedPrice)) as Price
    return (marginPerStep(spec, basis, leverage) + fee) as Quote
  }
  const margined = side === 'SHORT' && limit !== 0 ? limit : reservedPrice
  return (marginPerStep(spec, priceOf(spec, margined), leverage) + fee) as Quote
}

/**
 * Wei that one opening step of a perpetual's or future's sell can cost in a batch with this band, at most.
 */
function worstSellDebit(spec: MarketSpec, terms: ReservationTerms, band: Band, oracle: Price): Quote {
  const basis = terms.limit !== 0 ? priceOf(spec, terms.limit) : minOf(priceOf(spec, band.hi), oracle)
  return (marginPerStep(spec, basis, terms.leverage) + feeAllowancePerStep(spec, band.hi)) as Quote
}

/**
 * How many of `openable` steps the reservation covers in a batch with this band, whatever price in it the
 * order gets. Buys and binary sells: all of them, because the reserved price bounds their price. Other sells
 * have no upper bound on their price: where the band has risen beyond what their allowance pays for, as many
 * as the amount held does.
 */
export function coveredSteps(
  spec: MarketSpec,
  order: ReservationTerms & { readonly openable: Steps },
  band: Band,
  oracle: Price,
): Steps {
  if (order.openable === 0 || order.side === 'LONG' || isBinary(spec)) return order.openable
  const perStep = reservationPerStep(spec, order)
  const worst = worstSellDebit(spec, order, band, oracle)
  if (perStep >= worst) return order.openable
  return Number(mulDivDown(perStep, BigInt(order.openable), worst)) as Steps
}

/**
 * Steps of the position that plain orders against it have not taken yet: what the next such order closes
 * rather than opens.
 */
export function reducingCapacity(size: Steps, orders: Iterable<Reservable>): Steps {
  let left = Math.abs(size)
  for (const order of orders) {
    if (!order.reduceOnly && size * signOf(order.side) < 0) left -= order.remaining
  }
  return Math.max(0, left) as Steps
}

/**
 * What each order of one account in one market holds back against the matched position `size`, in order of
 * seq. Plain orders against the position take its reducing capacity by seq; what is left of them opens.
 * Reduce-only orders neither take nor reserve. Call it again whenever the position changes.
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
 * The orders to cancel, newest first, until the rest holds back at most `budget` wei. Orders that reserve
 * nothing stay: cancelling them would free nothing. Nothing is given out anew: capacity goes by seq, so what
 * an order has taken can only serve newer ones, and those that reserve are gone before it.
 */
export function newestToCancel(reservations: readonly Reservation[], budget: Quote): readonly Seq[] {
  let held = reservations.reduce((sum, { amount }) => sum + amount, 0n)
  const newestFirst = [...reservations].sort((a, b) => b.seq - a.seq)
  const cancelled: Seq[] = []
  for (const { seq, amount } of newestFirst) {
    if (held <= budget) break
    if (amount === 0n) continue
    held -= amount
    cancelled.push(seq)
  }
  return cancelled
}
