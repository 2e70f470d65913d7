/**
 * Converts a cleared batch into the writes of one transaction: fills, order changes, reservations and journal rows.
 */

import type { LiveOrder } from '../book/live-book.ts'
import { invariant } from '../invariant.ts'
import type { BatchCleared, MatchedFill, MatchedPosition } from '../journal/batch-rows.ts'
import type { MarketRow } from '../journal/journal-row.ts'
import type { MarketSpec } from '../market/market.ts'
import { expiryReason, leaveBook, type OpenOrder, type OrderChange, reserve } from '../orders/open-order.ts'
import type { StatusReason } from '../orders/order.ts'
import { OrderChanges, type OrderPlan } from '../orders/order-changes.ts'
import { type ClosingReason, transition } from '../orders/order-state.ts'
import { endsWith, leaveWithPosition } from '../orders/position-closing.ts'
import {
  type Funds,
  type RecomputedReservations,
  recomputeReservations,
} from '../orders/recompute-reservations.ts'
import { heldPerStep, type ReservationTerms, reservationPerStep } from '../orders/reservation.ts'
import type { Position } from '../positions/position.ts'
import { PartialSlots } from '../settlement/partial-slots.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import type { Millis, Quote, Seq, Steps, UserId } from '../units.ts'
import type { BatchClosing, BatchOutcome, MatchedBatch } from './batch.ts'
import type { Cancel, Cleared, Clearing, Fill } from './clearing.ts'
import type { Part } from './parts.ts'

export interface BatchDecision {
  /** Orders that expired or waited too long before the batch. */
  readonly overdue: readonly Cancel[]
  /** Orders that the auction ended. A partly filled order ends once its fill has settled. */
  readonly cancels: readonly Cancel[]
  /** Null if no auction ran. */
  readonly clearing: Clearing | null
  readonly matched: MatchedBatch | null
  /** Reduce-only orders that leave the book because the batch closes or turns their position. */
  readonly leaving: readonly Leaving[]
  readonly rebalanced: ReadonlyMap<UserId, RecomputedReservations>
}

export interface Leaving {
  readonly seq: Seq
  /** Fill that closes or turns the position. */
  readonly closing: BatchClosing
}

const fillsBySeq = (matched: MatchedBatch | null): ReadonlyMap<Seq, Fill> =>
  new Map(matched?.clearing.fills.map((fill) => [fill.seq, fill]))

/** A market's open orders, and its orders that wait for a trigger. */
export interface LiveOrders {
  get(seq: Seq): LiveOrder | undefined
  ordersOf(account: UserId): readonly LiveOrder[]
}

/**
 * Recomputes the reservations of every account in the batch on its new position. `live` contains the orders
 * before the batch.
 */
export function decideBatch(
  spec: MarketSpec,
  live: LiveOrders,
  overdue: readonly Cancel[],
  outcome: BatchOutcome | null,
  fundsOf: (account: UserId) => Funds,
): BatchDecision {
  const matched = outcome?.matched ?? null
  const cancels = [...(outcome?.clearing.cancels ?? []), ...(outcome?.remainders ?? [])]
  const ending = new Set([...overdue, ...cancels].map(({ seq }) => seq))
  const fills = fillsBySeq(matched)
  const rebalanced = new Map<UserId, RecomputedReservations>()
  const leaving: Leaving[] = []
  for (const [account, position] of matched?.positions ?? []) {
    const before = live.ordersOf(account)
    const closing = matched?.closings.get(account)
    const open: LiveOrder[] = []
    for (const order of before) {
      const remaining = (order.remaining - (fills.get(order.seq)?.fill ?? 0)) as Steps
      if (ending.has(order.seq) || remaining === 0) continue
      if (closing !== undefined && endsWith(order, closing.side)) leaving.push({ seq: order.seq, closing })
      else open.push(remaining === order.remaining ? order : { ...order, remaining })
    }
    const reservedBefore = before.reduce((sum, order) => sum + reservedFor(spec, order), 0n)
    const held = before.reduce((sum, order) => {
      const fill = fills.get(order.seq)
      return fill === undefined ? sum : sum + heldFor(spec, order, fill, matched?.clearing as Cleared)
    }, 0n)
    const terms = { funds: fundsOf(account), before: (reservedBefore - held) as Quote }
    rebalanced.set(account, recomputeReservations(spec, position.size, open, terms))
  }
  return { overdue, cancels, clearing: outcome?.clearing ?? null, matched, leaving, rebalanced }
}

const reservedFor = (spec: MarketSpec, order: LiveOrder): bigint =>
  order.openable === 0 ? 0n : reservationPerStep(spec, order) * BigInt(order.openable)

/** Orders that a decision changes. Planning the writes needs their stored state. */
export function affectedOrders(decision: BatchDecision, live: LiveOrders): Set<Seq> {
  const seqs = new Set([...decision.overdue, ...decision.cancels].map(({ seq }) => seq))
  for (const { seq } of decision.matched?.clearing.fills ?? []) seqs.add(seq)
  for (const { seq } of decision.leaving) seqs.add(seq)
  for (const { reservations, cancels } of decision.rebalanced.values()) {
    for (const { seq } of cancels) seqs.add(seq)
    for (const { seq, openable } of reservations.values())
      if (live.get(seq)?.openable !== openable) seqs.add(seq)
  }
  return seqs
}

/**
 * Number of orders per account that a decision changes, excluding filled orders and orders that time ends.
 */
export function sideChanges(decision: BatchDecision, live: LiveOrders): ReadonlyMap<UserId, number> {
  const apart = new Set(decision.overdue.map(({ seq }) => seq))
  for (const { seq } of decision.matched?.clearing.fills ?? []) apart.add(seq)
  const changes = new Map<UserId, number>()
  for (const seq of affectedOrders(decision, live)) {
    const account = live.get(seq)?.account
    if (account !== undefined && !apart.has(seq)) changes.set(account, (changes.get(account) ?? 0) + 1)
  }
  return changes
}

const endOverdue = (order: OpenOrder, reason: StatusReason, at: Millis): OrderChange =>
  leaveBook(order, reason === 'EXPIRED' ? expiryReason(order, at) : closingReason(reason), at)

const closingReason = (reason: StatusReason): ClosingReason => {
  invariant(reason !== 'FILLED', 'the auction ends no order as FILLED; only settlement does')
  return reason
}

export interface PlannedFill extends Omit<MatchedFill, 'opening' | 'partial_slot'> {
  /** Index within the part. */
  readonly place: number
  /** Steps that open a position. */
  readonly opening: number
  readonly partial_slot: number | null
}

export interface PlannedBatch {
  readonly batchId: number
  /** Journal head that the auction read. */
  readonly head: Seq
  readonly clearing: Cleared
  readonly oracle: OracleReport
  readonly parts: number
  readonly fills: readonly PlannedFill[]
  readonly positions: ReadonlyMap<UserId, Position>
}

/** All writes of one market transaction. */
export interface MarketPlan extends OrderPlan {
  readonly asOf: Millis
  readonly batch: PlannedBatch | null
}

export interface BatchPlanInput {
  readonly spec: MarketSpec
  /** End time of orders. It can be later than `asOf`, which follows block time. */
  readonly at: Millis
  readonly asOf: Millis
  readonly head: Seq
  readonly batchId: number
  readonly oracle: OracleReport | null
  readonly decision: BatchDecision
  /** Stored state of the affected orders. */
  readonly orders: ReadonlyMap<Seq, OpenOrder>
  /** Partial slots in use, by account. */
  readonly slots: ReadonlyMap<UserId, Set<number>>
}

/**
 * Plans the writes of a decision: the new state of every affected order, and the journal rows in application order.
 */
export function planBatch(input: BatchPlanInput): MarketPlan {
  const changes = new OrderChanges(input.orders)
  const { overdue, cancels, matched, rebalanced } = input.decision
  for (const { seq, reason } of overdue) changes.put(endOverdue(changes.get(seq), reason, input.at))
  pushProtections(input, changes)
  const batch = matched === null ? null : fillOrders(input, matched, changes)

  const filled = fillsBySeq(matched)
  for (const { seq, reason } of cancels) {
    if (filled.has(seq))
      changes.putIf(reserve(changes.get(seq), { openable: 0 as Steps, amount: 0n as Quote }))
    else changes.put(leaveBook(changes.get(seq), closingReason(reason), input.at))
  }
  for (const { reservations, cancels: unaffordable } of rebalanced.values()) {
    const cancelled = new Set(unaffordable.map(({ seq }) => seq))
    for (const { seq, reason } of unaffordable)
      changes.put(leaveBook(changes.get(seq), closingReason(reason), input.at))
    for (const [seq, reservation] of reservations) {
      if (!cancelled.has(seq) && changes.has(seq)) changes.putIf(reserve(changes.get(seq), reservation))
    }
  }
  for (const [seq, fill] of filled) {
    if (fill.remaining === 0)
      changes.putIf(reserve(changes.get(seq), { openable: 0 as Steps, amount: 0n as Quote }))
  }
  return { asOf: input.asOf, batch, ...changes.plan() }
}

/**
 * Records the protections of orders that the auction fills or ends. A waiting order gets a new protection in
 * its next auction.
 */
function pushProtections({ asOf, decision, oracle, orders }: BatchPlanInput, changes: OrderChanges): void {
  const { clearing } = decision
  if (clearing === null || oracle === null) return
  const decided = clearing.protections.flatMap(({ seq, best, level, reference, price }) => {
    const order = orders.get(seq)
    if (order === undefined) return []
    const ids = { order_id: order.orderId, user_id: order.account }
    return [{ ...ids, best, level, reference: reference.toString(), price }]
  })
  if (decided.length === 0) return
  const { ruleVersion, standingSeq, priceProtection } = clearing.inputs
  changes.rows.push({
    kind: 'orders_protected',
    as_of: asOf,
    rule_version: ruleVersion,
    oracle_price: oracle.price.toString(),
    oracle_at: oracle.observedAt,
    standing_seq: standingSeq,
    price_protection: priceProtection.toString(),
    orders: decided,
  })
}

function fillOrders(
  input: BatchPlanInput,
  { clearing, parts, positions }: MatchedBatch,
  changes: OrderChanges,
): PlannedBatch {
  const { spec, batchId, head, oracle } = input
  invariant(oracle !== null, 'a batch that matched has an oracle report')
  const slots = new PartialSlots(input.slots)
  const timesCut = countBySeq(parts)
  const fills = parts.flatMap((part, at) =>
    part.fills.map((fill, place): PlannedFill => {
      const order = changes.get(fill.seq)
      const held = heldFor(spec, { ...order, limit: order.price }, fill, clearing)
      const mayContinue = order.price > 0 || (timesCut.get(fill.seq) ?? 0) > 1
      const staysPartlyFilled = fill.remaining + order.unused > 0
      const needsSlot = staysPartlyFilled && mayContinue && !order.forced
      const slot = order.partialSlot ?? (needsSlot ? slots.allocate(order.account) : null)
      changes.set(afterFill(order, fill, held, slot))
      return plannedFill(fillIdOf(spec, batchId, at + 1, fill.seq), at + 1, place, order, fill, held, slot)
    }),
  )
  const closing = [...closingOrders(input.decision, changes), ...leavingOrders(input, changes)]
  changes.rows.push(batchRow(input, clearing, { oracle, parts: parts.length, fills, closing, positions }))
  return { batchId, head, clearing, oracle, parts: parts.length, fills, positions }
}

const fillIdOf = ({ marketId }: MarketSpec, batchId: number, part: number, seq: Seq): string =>
  `${marketId}-${batchId}-${part}-${seq}`

/** Wei that a fill, or its steps in one transaction, holds until it is mined. */
export function heldFor(
  spec: MarketSpec,
  order: ReservationTerms,
  { opening }: Pick<Fill, 'opening'>,
  { price, inputs }: Cleared,
): Quote {
  if (opening === 0) return 0n as Quote
  const prices = { charging: inputs.spec, clearing: price, oracle: inputs.oracle }
  return (heldPerStep(spec, order, prices) * BigInt(opening)) as Quote
}

function afterFill(order: OpenOrder, fill: Fill, held: Quote, partialSlot: number | null): OpenOrder {
  const verdict = transition(order, { kind: 'match', steps: fill.fill })
  invariant(verdict.ok, 'the auction fills only orders that are in the book')
  return {
    ...verdict.value.life,
    openable: (order.openable - fill.opening) as Steps,
    reserved: (order.reserved - held) as Quote,
    held: (order.held + held) as Quote,
    partialSlot,
  }
}

function plannedFill(
  fillId: string,
  part: number,
  place: number,
  order: OpenOrder,
  { fill: steps, taker, side, opening }: Fill,
  held: Quote,
  slot: number | null,
): PlannedFill {
  return {
    fill_id: fillId,
    order_id: order.orderId,
    user_id: order.account,
    part,
    place,
    side,
    steps,
    taker_steps: taker,
    held: held.toString(),
    opening,
    partial_slot: slot,
  }
}

function countBySeq(parts: readonly Part[]): Map<Seq, number> {
  const counts = new Map<Seq, number>()
  for (const { fills } of parts) for (const { seq } of fills) counts.set(seq, (counts.get(seq) ?? 0) + 1)
  return counts
}

/** Marks and returns the orders that leave the book with the batch while some of their steps settle. */
function closingOrders(
  { cancels, matched }: BatchDecision,
  changes: OrderChanges,
): { order_id: string; reason: StatusReason }[] {
  const filled = fillsBySeq(matched)
  return cancels
    .filter(({ seq }) => filled.has(seq))
    .map(({ seq, reason }) => {
      const order = changes.get(seq)
      const verdict = transition(order, { kind: 'close', reason: closingReason(reason) })
      invariant(verdict.ok, 'an order that the batch fills in part has not left the book before')
      changes.set(verdict.value.life)
      return { order_id: order.orderId, reason }
    })
}

/** Removes and returns the reduce-only orders of positions that the batch closes or turns. */
function leavingOrders(
  { spec, batchId, decision }: BatchPlanInput,
  changes: OrderChanges,
): BatchCleared['closing'] {
  return decision.leaving.map(({ seq, closing }) => {
    const order = changes.get(seq)
    const closed_by = fillIdOf(spec, batchId, closing.part, closing.seq)
    changes.set(leaveWithPosition(order, closed_by))
    return { order_id: order.orderId, reason: 'POSITION_CLOSED', closed_by }
  })
}

function batchRow(
  { asOf, batchId, head }: BatchPlanInput,
  clearing: Cleared,
  batch: {
    readonly oracle: OracleReport
    readonly parts: number
    readonly fills: readonly PlannedFill[]
    readonly closing: BatchCleared['closing']
    readonly positions: ReadonlyMap<UserId, Position>
  },
): MarketRow {
  const { lo, hi, price, volume, demand, supply, rule, inputs } = clearing
  return {
    kind: 'batch_cleared',
    batch_id: batchId,
    as_of: asOf,
    oracle_price: batch.oracle.price.toString(),
    oracle_at: batch.oracle.observedAt,
    ...{ lo, hi, price, volume, demand, supply, rule },
    rule_version: inputs.ruleVersion,
    parts: batch.parts,
    fills: batch.fills.map(matchedFill),
    closing: batch.closing,
    head,
    maker_fee: inputs.spec.makerFee.toString(),
    taker_fee: inputs.spec.takerFee.toString(),
    oracle_signatures: batch.oracle.signatures,
    matched: [...batch.positions].map(([account, position]) => matchedPosition(account, position)),
  }
}

const matchedFill = ({ place: _, opening, partial_slot, ...fill }: PlannedFill): MatchedFill => ({
  ...fill,
  ...(opening > 0 && { opening }),
  ...(partial_slot !== null && { partial_slot }),
})

export const matchedPosition = (
  account: UserId,
  { size, entryNotional, foldedMargin, leverage }: Position,
): MatchedPosition => ({
  user_id: account,
  size,
  entry_notional: entryNotional.toString(),
  folded_margin: foldedMargin.toString(),
  leverage,
})
