/** Plans the writes of a mark update: the prices, and the conditional orders that it triggers. */

import type { MarketPlan } from '../auction/batch-plan.ts'
import type { AveragesChange, MarketRow, TriggerEvidence } from '../journal/journal-row.ts'
import { priceBand } from '../market/band.ts'
import type { MarketSpec } from '../market/market.ts'
import {
  isReservable,
  leaveBook,
  type OpenOrder,
  reservable,
  reserve,
  triggerOrder,
} from '../orders/open-order.ts'
import { opensBelowRequirement } from '../orders/opening-limit.ts'
import { bookType } from '../orders/order.ts'
import { OrderChanges } from '../orders/order-changes.ts'
import type { ClosingReason } from '../orders/order-state.ts'
import { type Funds, recomputeReservations } from '../orders/recompute-reservations.ts'
import { type Reservation, reducingCapacity, reservedPriceOf } from '../orders/reservation.ts'
import { closingSteps, type Position } from '../positions/position.ts'
import type { Millis, Price, Quote, Seq, Steps, UserId } from '../units.ts'

/** A market's prices at one time. */
export interface MarketPrices {
  readonly oracle: { readonly price: Price; readonly observedAt: Millis }
  readonly mark: Price
  readonly at: Millis
}

export interface MarkPlanInput {
  readonly spec: MarketSpec
  readonly prices: MarketPrices
  /** Sequence of the market's last row before this update. */
  readonly head: number
  /** Number of the next batch. */
  readonly batchId: number
  /** Acceptance sequences of waiting orders whose trigger the mark has reached. */
  readonly triggered: readonly Seq[]
  /** All live orders in this market of accounts with triggered orders. */
  readonly orders: readonly OpenOrder[]
  /** The matched position of an account. */
  readonly positions: (account: UserId) => Position
  readonly fundsOf: (account: UserId) => Funds
  /** Null before the first mark. */
  readonly averages: AveragesChange | null
}

interface TriggeredAccount {
  readonly reservations: ReadonlyMap<Seq, Reservation>
  readonly ends: ReadonlyMap<Seq, ClosingReason>
}

const NOTHING = { openable: 0 as Steps, amount: 0n as Quote }

/**
 * Writes the prices, then each triggered order as its account's newest. Older orders keep their reducing capacity; the
 * triggered order reserves at the current band, or ends if it cannot.
 */
export function planMark(input: MarkPlanInput): MarketPlan {
  const { spec, prices, triggered } = input
  const band = priceBand(spec, prices.oracle.price)
  // Row 1 contains the prices, row 2 the first triggered order.
  const places = new Map(triggered.map((seq, at) => [seq, (input.head + 2 + at) as Seq]))
  const orders = input.orders.map((order): OpenOrder => {
    const seq = places.get(order.seq)
    if (seq === undefined) return order
    return {
      ...order,
      seq,
      reservedPrice: reservedPriceOf(spec, { ...order, type: bookType(order.type) }, band),
    }
  })
  const entering = new Set(places.values())
  const weighed = [...Map.groupBy(orders, ({ account }) => account)].map(([account, own]) =>
    reserveTriggered(input, account, own, entering),
  )
  const reservations = new Map(weighed.flatMap((one) => [...one.reservations]))
  const ends = new Map(weighed.flatMap((one) => [...one.ends]))

  const changes = new OrderChanges(new Map(orders.map((order) => [order.seq, order])))
  changes.rows.push(pricesRow(input))
  for (const seq of entering) {
    const reservation = (ends.has(seq) ? undefined : reservations.get(seq)) ?? NOTHING
    const order = changes.get(seq)
    const terms = { seq, evidence: evidenceOf(input), reservedPrice: order.reservedPrice, ...reservation }
    changes.put(triggerOrder(order, terms))
  }
  for (const [seq, reason] of ends) changes.put(leaveBook(changes.get(seq), reason, prices.at))
  for (const [seq, reservation] of reservations) {
    if (!entering.has(seq) && !ends.has(seq)) changes.putIf(reserve(changes.get(seq), reservation))
  }
  return { asOf: prices.at, batch: null, ...changes.plan() }
}

/**
 * Recomputes one account's reservations with the triggered orders at their new seqs, and collects the ending orders.
 */
function reserveTriggered(
  input: MarkPlanInput,
  account: UserId,
  orders: readonly OpenOrder[],
  entering: ReadonlySet<Seq>,
): TriggeredAccount {
  const { spec, positions, fundsOf } = input
  const { size } = positions(account)
  const arrivals = orders.filter(({ seq }) => entering.has(seq))
  const useless = arrivals.filter(
    ({ reduceOnly, side, quantity }) => reduceOnly && closingSteps(size, side, quantity) === 0,
  )
  const ends = new Map<Seq, ClosingReason>(useless.map(({ seq }) => [seq, 'REDUCE_ONLY_NO_POSITION']))
  if (arrivals.every(({ reduceOnly }) => reduceOnly)) return { reservations: new Map(), ends }

  const live = orders.filter(isReservable)
  const before = live.reduce((sum, { reserved }) => sum + reserved, 0n) as Quote
  for (const seq of belowRequirement(input, size, live, entering)) ends.set(seq, 'MARGIN_REQUIREMENT')
  const staying = live.filter(({ seq }) => ends.get(seq) !== 'MARGIN_REQUIREMENT')
  const { reservations, cancels } = recomputeReservations(spec, size, staying.map(reservable), {
    funds: fundsOf(account),
    before,
  })
  for (const { seq } of cancels) ends.set(seq, 'INSUFFICIENT_MARGIN')
  return { reservations, ends }
}

/**
 * Triggered limit orders that would open below IMR at their own limit; placement refuses such orders, too.
 * Older orders claim capacity first, and an order that ends here claims none.
 */
function belowRequirement(
  { spec, prices }: MarkPlanInput,
  size: Steps,
  live: readonly OpenOrder[],
  entering: ReadonlySet<Seq>,
): Seq[] {
  const resting = live.filter(({ seq }) => !entering.has(seq)).map(reservable)
  let capacity: number = reducingCapacity(size, resting)
  const ended: Seq[] = []
  const arrivals = live.filter(({ seq, reduceOnly }) => entering.has(seq) && !reduceOnly)
  for (const order of arrivals.sort((a, b) => a.seq - b.seq)) {
    const { seq, limit, remaining, side, leverage } = reservable(order)
    const closing = Math.min(capacity, closingSteps(size, side, remaining))
    const opens = limit !== 0 && remaining > closing
    if (opens && opensBelowRequirement(spec, { side, limit, leverage }, prices.oracle.price)) {
      ended.push(seq)
    } else {
      capacity -= closing
    }
  }
  return ended
}

const pricesRow = ({ prices: { oracle, mark, at }, averages }: MarkPlanInput): MarketRow => ({
  kind: 'prices_updated',
  oracle_price: oracle.price.toString(),
  oracle_at: oracle.observedAt,
  mark_price: mark.toString(),
  at,
  ...(averages !== null && { averages }),
})

const evidenceOf = ({ prices: { oracle, mark, at }, batchId }: MarkPlanInput): TriggerEvidence => ({
  at,
  mark_price: mark.toString(),
  oracle_price: oracle.price.toString(),
  oracle_at: oracle.observedAt,
  batch_id: batchId,
})
