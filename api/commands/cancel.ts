/** What becomes of one cancel. Cancels are taken whatever the state of market, oracle and chain. */
import { type ClosingReason, statusFor } from '../../domain/orders/order-state.ts'
import type { Millis } from '../../domain/units.ts'
import { ApiError } from '../errors.ts'
import type { CancelAllItem, CancelItem, Cancelled } from './command.ts'
import type { GroupChanges } from './group-changes.ts'
import { holdingKey, type StoredOrder } from './group-state.ts'

/** Throws the ApiError where it is refused. */
export function cancel(
  { hash, reason }: CancelItem,
  userId: number,
  draft: GroupChanges,
  now: Millis,
): Cancelled {
  const stored = draft.state.byHash.get(hash)
  if (stored === undefined || !draft.state.markets.has(stored.market_id)) {
    throw new ApiError('ORDER_NOT_FOUND', { field: 'order_hash', received: hash })
  }
  if (stored.user_id !== userId)
    throw new ApiError('NOT_YOURS', { field: 'order_hash', expected: 'an order of your own', received: hash })
  return cancelOwn(stored, reason, draft, now)
}

/** Also orders that a batch still holds some of, though nothing new happens to them: they are not cancelled yet. */
export function cancelAll(
  { reason }: CancelAllItem,
  { userId, marketIds }: { readonly userId: number; readonly marketIds: readonly number[] },
  draft: GroupChanges,
  now: Millis,
): Cancelled[] {
  const hashes = marketIds.flatMap((marketId) => draft.state.live.get(holdingKey(marketId, userId)) ?? [])
  return hashes.map((hash) => cancelOwn(draft.state.byHash.get(hash) as StoredOrder, reason, draft, now))
}

function cancelOwn(stored: StoredOrder, reason: string | null, draft: GroupChanges, now: Millis): Cancelled {
  const isLeaving = stored.ended_at !== null || stored.closing_reason !== null
  const order = isLeaving ? stored : draft.end(stored, 'USER_CANCELLED', reason, now)
  const ending = order.status === 'CANCEL_PENDING_FINALIZE' && order.closing_reason !== null
  const cancelled = (ending ? statusFor(order.closing_reason as ClosingReason) : order.status) === 'CANCELLED'
  const read_after = draft.bookmark(stored.market_id)
  return { kind: 'cancelled', order, cancelled, isDuplicate: isLeaving && cancelled, read_after }
}
