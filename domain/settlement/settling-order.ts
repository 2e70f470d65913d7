/**
 * A stored order in the form that block settlement reads, and the effect of a block that closes its position.
 */
import type { SettledOrder } from '../journal/batch-rows.ts'
import type { Side } from '../orders/order.ts'
import {
  isInBook,
  isLeaving,
  isTerminal,
  isWaiting,
  type OrderLife,
  transition,
} from '../orders/order-state.ts'
import { closedSide, endsWith, leaveWithPosition, restoreWithPosition } from '../orders/position-closing.ts'
import type { Address } from '../units.ts'

export interface SettlingOrder extends OrderLife {
  readonly orderId: string
  readonly userId: number
  readonly maker: Address
  readonly salt: bigint
  readonly isForced: boolean
  readonly side: Side
  readonly reduceOnly: boolean
  readonly reserved: bigint
  readonly held: bigint
  /** True for a conditional order that has not triggered. */
  readonly waits: boolean
}

/** An account with a position that a block moves without a match. Sizes are signed. */
export interface MovedSize {
  readonly mined: { readonly before: number; readonly after: number }
  readonly matched: { readonly before: number; readonly after: number }
  /** Id of the account's last unmined fill. */
  readonly unsettled: string | null
}

/** `released`: reservation that the order no longer needs. */
export interface ClosedOrder {
  readonly order: SettlingOrder
  readonly released: bigint
}

/**
 * Ends the order because its position closed on chain. Null if it has ended, or is ending, for another reason.
 */
export function closeWithPosition(order: SettlingOrder): ClosedOrder | null {
  const closed = transition(order, { kind: 'close', reason: 'POSITION_CLOSED' })
  return closed.ok ? { order: { ...closed.value.life, reserved: 0n }, released: order.reserved } : null
}

/**
 * Effect of a position move on a reduce-only order; null if none. It ends if the mined position closes or flips. If
 * only the matched position does, it leaves the book until the fills are mined.
 */
export function closeWithMove(
  order: SettlingOrder,
  { mined, matched, unsettled }: MovedSize,
): ClosedOrder | null {
  const isMinedClosed = endsWith(order, closedSide(mined.before, mined.after))
  if (isLeaving(order)) return isMinedClosed ? closeWithPosition(order) : null
  if (!endsWith(order, closedSide(matched.before, matched.after))) return null
  if (isMinedClosed || unsettled === null) return closeWithPosition(order)
  if (!isInBook(order) && !isWaiting(order)) return null
  return { order: leaveWithPosition(order, unsettled), released: 0n }
}

/**
 * The order before the block closed its position. `closed`: its status after the block.
 * If a match had removed the order from the book earlier, it waits again for the fill that closed its position.
 */
export function reopenWithPosition(order: SettlingOrder, closed: SettledOrder): SettlingOrder {
  const leftHere = closed.status === 'OPEN' || closed.status === 'PENDING_TRIGGER'
  return restoreWithPosition(order, { waits: order.waits, closedBy: leftHere ? null : order.closedBy })
}

/** `released`: wei of reservation that the block releases. */
export const settledOrder = (order: SettlingOrder, released: bigint): SettledOrder => ({
  order_id: order.orderId,
  user_id: order.userId,
  status: order.status,
  reason: isTerminal(order.status) ? order.statusReason : reasonToEnd(order),
  reserved_delta: (-released).toString(),
  ...(order.closingReason !== null && reasonToEnd(order) === null && { closing_reason: order.closingReason }),
  ...(order.closedBy !== null && { closed_by: order.closedBy }),
})

/** Reason to end. A remainder states its reason only after it has ended. */
const reasonToEnd = (order: SettlingOrder): SettledOrder['reason'] =>
  order.status === 'CANCEL_PENDING_FINALIZE' || isLeaving(order) ? order.closingReason : null
