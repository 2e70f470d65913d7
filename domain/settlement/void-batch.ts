/** Plans the voiding of batches after a revert: every order returns to its mined state. */

import { MARKET_WAIT_MS } from '../auction/candidates.ts'
import { invariant } from '../invariant.ts'
import type { MatchedFill } from '../journal/batch-rows.ts'
import type { MarketSpec } from '../market/market.ts'
import {
  endingRow,
  enteredBookAt,
  isReservable,
  type OpenOrder,
  type OrderChange,
} from '../orders/open-order.ts'
import { OrderChanges, type OrderPlan } from '../orders/order-changes.ts'
import { type ClosingReason, isLeaving, isTerminal, transition } from '../orders/order-state.ts'
import { restoreWithPosition } from '../orders/position-closing.ts'
import { type Funds, reserveLive } from '../orders/recompute-reservations.ts'
import type { Position } from '../positions/position.ts'
import type { Address, Millis, Quote, Seq, Steps, UserId } from '../units.ts'

/**
 * Order or account that the chain's error names. `late`: the action exceeded its lifetime. `early`: block time too far
 * behind `asOf`; it can settle later. `unnamed`: unknown cause.
 */
export type Culprit =
  | { readonly kind: 'order'; readonly maker: Address; readonly salt: bigint; readonly error: string }
  | { readonly kind: 'account'; readonly maker: Address; readonly error: string }
  | { readonly kind: 'late' | 'early'; readonly error: string }
  | { readonly kind: 'unnamed'; readonly error: string }

/** A batch with no mined part from `fromPart` on. */
export interface VoidedBatch {
  readonly batchId: number
  readonly fromPart: number
  readonly fills: readonly MatchedFill[]
  /** True if the chain reverted the first part. */
  readonly isReverted: boolean
}

export interface VoidInput {
  readonly spec: MarketSpec
  readonly at: Millis
  readonly culprit: Culprit
  /** Batches in match order. The first part of the first batch reverted. */
  readonly batches: readonly VoidedBatch[]
  /** All live orders in this market of the batches' accounts. Only voided fills are settling. */
  readonly orders: readonly OpenOrder[]
  /** Mined position; it becomes the matched position again. */
  readonly positions: (account: UserId) => Position
  readonly fundsOf: (account: UserId) => Funds
}

/**
 * Returns every order to its mined state, at its old seq. The culprit's orders end with SETTLEMENT_REVERTED; an order
 * that had left the book ends with its stored reason.
 */
export function planVoid(input: VoidInput): OrderPlan {
  const changes = new OrderChanges(new Map(input.orders.map((order) => [order.seq, order])))
  const byId = new Map(input.orders.map(({ orderId, seq }) => [orderId, seq]))
  const fills = input.batches.flatMap((batch) => batch.fills)
  const voided = new Set(fills.map(({ order_id }) => byId.get(order_id) as Seq))
  const culprits = culpritsOf(input, voided, byId, changes)
  const restored = restoreLeaving(input, changes)
  for (const fill of fills) {
    const seq = byId.get(fill.order_id) as Seq
    const order = changes.get(seq)
    const ending = culprits.has(seq) ? 'SETTLEMENT_REVERTED' : endingOf(order, input.at)
    changes.set(voidFill(order, fill, ending))
  }
  const reopened = (orderId: string): boolean => !isTerminal(changes.get(byId.get(orderId) as Seq).status)
  addVoidRows(input, changes, { reopened, restored })
  for (const seq of voided) {
    const order = changes.get(seq)
    if (isTerminal(order.status)) changes.put(endVoided(order, input.at))
  }
  for (const account of new Set(input.orders.map((order) => order.account)))
    reserveOnMined(input, account, changes)
  return changes.plan()
}

/** By restored order: id of the fill that had closed its position. */
type RestoredOrders = ReadonlyMap<Seq, string>

/** Returns orders to the book that had left it because a now voided fill closed their position. */
function restoreLeaving({ batches, orders }: VoidInput, changes: OrderChanges): RestoredOrders {
  const voided = new Set(batches.flatMap(({ fills }) => fills.map(({ fill_id }) => fill_id)))
  const restored = new Map<Seq, string>()
  for (const order of orders) {
    if (!isLeaving(order) || order.closedBy === null || !voided.has(order.closedBy)) continue
    const waits = order.status === 'PENDING_TRIGGER'
    changes.set(restoreWithPosition(order, { waits, closedBy: null }))
    restored.set(order.seq, order.closedBy)
  }
  return restored
}

/** Inverse of a match: the held amount returns to the order's reservation. */
function voidFill(order: OpenOrder, fill: MatchedFill, ending: ClosingReason | null): OpenOrder {
  const verdict = transition(order, { kind: 'void', steps: fill.steps as Steps, ending })
  invariant(verdict.ok, 'voided steps were settling')
  const held = BigInt(fill.held)
  return {
    ...verdict.value.life,
    reserved: (order.reserved + held) as Quote,
    held: (order.held - held) as Quote,
    partialSlot: order.filled === 0 ? null : order.partialSlot,
  }
}

/** Journal change of an order that the void ended; it reserves nothing. */
const endVoided = (order: OpenOrder, at: Millis): OrderChange => ({
  order: { ...order, openable: 0 as Steps, reserved: 0n as Quote, endedAt: at },
  row: endingRow(order, order.statusReason as ClosingReason, at),
})

/** The culprit's orders: the named order, or the named account's orders in the reverted part. */
function culpritsOf(
  { culprit, batches }: VoidInput,
  voided: ReadonlySet<Seq>,
  byId: ReadonlyMap<string, Seq>,
  changes: OrderChanges,
): Set<Seq> {
  if (culprit.kind !== 'order' && culprit.kind !== 'account') return new Set()
  if (culprit.kind === 'order') {
    const named = (seq: Seq): boolean => {
      const { maker, salt } = changes.get(seq)
      return maker === culprit.maker && salt === culprit.salt
    }
    return new Set([...voided].filter(named))
  }
  const first = batches[0]
  const reverted = first?.fills.filter(({ part }) => part === first.fromPart) ?? []
  const seqs = reverted.map(({ order_id }) => byId.get(order_id) as Seq)
  return new Set(seqs.filter((seq) => changes.get(seq).maker === culprit.maker))
}

/**
 * Reason why an order without settling steps cannot return to the book; null if it can. The order must not
 * have left the book before.
 */
function endingOf(order: OpenOrder, at: Millis): ClosingReason | null {
  // An `ioc` order has already taken part in its auction.
  if (order.timeInForce === 'ioc') return 'IOC_REMAINDER'
  if (order.price !== 0 || order.forced) return null
  if (order.filled > 0) return 'MARKET_REMAINDER'
  return at - enteredBookAt(order) < MARKET_WAIT_MS ? null : 'SETTLEMENT_REVERTED'
}

function addVoidRows(
  { batches, culprit, at }: VoidInput,
  changes: OrderChanges,
  orders: { readonly reopened: (orderId: string) => boolean; readonly restored: RestoredOrders },
): void {
  for (const { batchId, fromPart, fills, isReverted } of batches) {
    const ids = [...new Set(fills.map(({ order_id }) => order_id))]
    const fillIds = new Set(fills.map(({ fill_id }) => fill_id))
    const restored = [...orders.restored].filter(([, closedBy]) => fillIds.has(closedBy))
    changes.rows.push({
      kind: 'batch_voided',
      batch_id: batchId,
      from_part: fromPart,
      why: culprit.error,
      at,
      fills,
      reopened: ids.filter(orders.reopened),
      restored: restored.map(([seq]) => changes.get(seq).orderId),
      ...(isReverted && { is_reverted: true }),
      ...(isReverted && culprit.kind === 'unnamed' && { is_unnamed: true }),
    })
  }
}

/**
 * Recomputes the reservations of an account's orders on its mined position. Orders that it cannot pay for
 * end, newest first.
 */
function reserveOnMined(
  { spec, at, orders, positions, fundsOf }: VoidInput,
  account: UserId,
  changes: OrderChanges,
): void {
  const own = orders.filter((order) => order.account === account)
  const live = own.map(({ seq }) => changes.get(seq)).filter(isReservable)
  const before = own.reduce((sum, { reserved, held }) => sum + reserved + held, 0n) as Quote
  reserveLive(changes, { spec, at, live, before, size: positions(account).size, funds: fundsOf(account) })
}
