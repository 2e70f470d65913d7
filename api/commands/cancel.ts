/** Decides one cancel. Cancels are accepted in every state of market, oracle and chain. */
import { toOpenOrder } from '../../db/orders.ts'
import { type ClosingReason, isClosable, statusFor } from '../../domain/orders/order-state.ts'
import type { Millis } from '../../domain/units.ts'
import { ApiError } from '../errors.ts'
import type { CancelAllItem, CancelItem, Cancelled } from './command.ts'
import type { GroupChanges } from './group-changes.ts'
import type { StoredOrder } from './group-state.ts'
import { holdingKey } from './state-keys.ts'

/** Throws an ApiError if the cancel is rejected. */
export function cancel(
  { hash, reason }: CancelItem,
  userId: number,
  changes: GroupChanges,
  now: Millis,
): Cancelled {
  const stored = changes.state.byHash.get(hash)
  if (stored === undefined || !changes.state.markets.has(stored.market_id)) {
    throw new ApiError('ORDER_NOT_FOUND', { field: 'order_hash', received: hash })
  }
  if (stored.user_id !== userId)
    throw new ApiError('NOT_YOURS', { field: 'order_hash', expected: 'an order of your own', received: hash })
  return cancelOwn(stored, reason, changes, now)
}

/** Includes orders that wait for their batch to settle: this command does not change them, but they are not cancelled yet. */
export function cancelAll(
  { reason }: CancelAllItem,
  { userId, marketIds }: { readonly userId: number; readonly marketIds: readonly number[] },
  changes: GroupChanges,
  now: Millis,
): Cancelled[] {
  const hashes = marketIds.flatMap((marketId) => changes.state.live.get(holdingKey(marketId, userId)) ?? [])
  return hashes.map((hash) => cancelOwn(changes.state.byHash.get(hash) as StoredOrder, reason, changes, now))
}

function cancelOwn(
  stored: StoredOrder,
  reason: string | null,
  changes: GroupChanges,
  now: Millis,
): Cancelled {
  if (stored.forced) throw new ApiError('ORDER_FORCED', { field: 'order_hash', received: stored.hash })
  const isEnding = !isClosable(toOpenOrder(stored))
  const order = isEnding ? stored : changes.end(stored, 'USER_CANCELLED', reason, now)
  const ending = order.status === 'CANCEL_PENDING_FINALIZE' && order.closing_reason !== null
  const cancelled = (ending ? statusFor(order.closing_reason as ClosingReason) : order.status) === 'CANCELLED'
  const read_after = changes.bookmark(stored.market_id)
  return { kind: 'cancelled', order, cancelled, isDuplicate: isEnding && cancelled, read_after }
}
