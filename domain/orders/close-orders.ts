/** Ends orders for one reason, whatever state they are in. */
import type { MarketPlan } from '../auction/batch-plan.ts'
import type { Millis } from '../units.ts'
import { leaveBook, type OpenOrder } from './open-order.ts'
import { OrderChanges } from './order-changes.ts'
import type { ClosingReason } from './order-state.ts'

/** None of the orders may have ended, or be leaving. What settles of one is waited for. */
export function closeOrders(
  orders: readonly OpenOrder[],
  reason: ClosingReason,
  at: Millis,
): Pick<MarketPlan, 'orders' | 'reserved' | 'rows'> {
  const changes = new OrderChanges(new Map(orders.map((order) => [order.seq, order])))
  for (const order of orders) changes.put(leaveBook(order, reason, at))
  return { orders: changes.changed(), reserved: changes.reservedDeltas(), rows: changes.rows }
}
