/** Ends a list of orders for one reason. */
import type { Millis } from '../units.ts'
import { leaveBook, type OpenOrder } from './open-order.ts'
import { OrderChanges, type OrderPlan } from './order-changes.ts'
import type { ClosingReason } from './order-state.ts'

/**
 * Ends orders that have neither ended nor left the book. An order with settling fills ends once they have settled.
 */
export function closeOrders(orders: readonly OpenOrder[], reason: ClosingReason, at: Millis): OrderPlan {
  const changes = new OrderChanges(new Map(orders.map((order) => [order.seq, order])))
  for (const order of orders) changes.put(leaveBook(order, reason, at))
  return changes.plan()
}
