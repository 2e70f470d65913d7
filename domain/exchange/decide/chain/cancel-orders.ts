/**
 * Ends orders that the chain cancelled, or that their account or signer can no longer back.
 * A rollback of the block does not restore them.
 */
import type { SaltsCancelled } from '../../../chain/facts.ts'
import { closeOrders } from '../../../orders/close-orders.ts'
import type { ClosingReason } from '../../../orders/order-state.ts'
import type { Address, MarketId, Millis, UserId } from '../../../units.ts'
import type { Draft } from '../../draft.ts'
import { toOpenOrder } from '../../open-orders.ts'
import type { ExchangeState } from '../../state.ts'
import type { OrderRow } from '../../tables/orders.ts'
import { marketIds } from './read.ts'

/**
 * Whether the order is in the book, waits for a trigger, or leaves with its position. Other orders already end.
 */
const isCancellable = ({ forced, closingReason, status }: OrderRow): boolean =>
  !forced &&
  (closingReason === null || (closingReason === 'POSITION_CLOSED' && status !== 'CANCEL_PENDING_FINALIZE'))

/** Cancellable orders, by market and seq. */
const cancellable = (state: ExchangeState, account: UserId, markets: readonly MarketId[]): OrderRow[] =>
  markets.flatMap((marketId) => state.orderIndex.liveOf(marketId, account)).filter(isCancellable)

/** Cancels orders by salt. An account without a user has no orders. */
export function cancelSalts(draft: Draft, { spec, maker, salts }: SaltsCancelled, at: Millis): void {
  const { state } = draft
  const account = state.userIds.get(maker)
  if (account === undefined) return
  const isNamed = ({ salt }: OrderRow): boolean =>
    'below' in salts ? salt < Number(salts.below) : salts.includes(BigInt(salt))
  cancel(draft, cancellable(state, account, [spec.marketId]).filter(isNamed), 'USER_CANCELLED', at)
}

/**
 * Cancels the newest orders, over all markets, that the free balance no longer covers after a withdrawal request.
 */
export function cancelUncovered(draft: Draft, account: UserId, at: Millis): void {
  const { state } = draft
  const { free, reserved } = state.accounts.need(account)
  let uncovered = reserved - free
  if (uncovered <= 0n) return
  const newestFirst = cancellable(state, account, marketIds(state))
    .filter((order) => order.reserved > 0n)
    .sort((a, b) => b.acceptedAt - a.acceptedAt || a.marketId - b.marketId || b.seq - a.seq)
  const orders = newestFirst.filter((order) => {
    if (uncovered <= 0n) return false
    uncovered -= order.reserved
    return true
  })
  cancel(draft, orders, 'INSUFFICIENT_MARGIN', at)
}

/** Every live order that the key signed for the owner, in every market. */
export function cancelSignedBy(
  draft: Draft,
  { owner, key }: { readonly owner: string; readonly key: string },
  at: Millis,
): void {
  const { state } = draft
  const account = state.userIds.get(owner as Address)
  if (account === undefined) return
  const orders = cancellable(state, account, marketIds(state)).filter(
    ({ marketId, accepted }) => state.signatures.need(marketId, accepted).signer === key,
  )
  cancel(draft, orders, 'SIGNER_REVOKED', at)
}

function cancel(draft: Draft, orders: readonly OrderRow[], reason: ClosingReason, at: Millis): void {
  const { state } = draft
  const groups = [...Map.groupBy(orders, ({ marketId }) => marketId)].map(
    ([marketId, rows]) => [marketId, rows.map((row) => toOpenOrder(state, row))] as const,
  )
  for (const [marketId, open] of groups)
    for (const row of closeOrders(open, reason, at).rows) draft.write(marketId, row)
}
