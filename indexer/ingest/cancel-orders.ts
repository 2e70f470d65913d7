/**
 * Ends orders that the chain has cancelled, or that their account or signer can no longer back: now, or once their settling part is mined.
 * A rollback of the block does not restore them: the trader has asked for the cancel, and may have placed the order again since.
 */
import { changeReserved } from '../../db/accounts.ts'
import { anyOf } from '../../db/any-of.ts'
import type { Tx } from '../../db/client.ts'
import { endOrders, type OrderRow, toOpenOrder } from '../../db/orders.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import { closeOrders } from '../../domain/orders/close-orders.ts'
import type { ClosingReason } from '../../domain/orders/order-state.ts'
import type { Millis } from '../../domain/units.ts'
import type { SaltsCancelled } from './facts.ts'
import type { LockedShards } from './locked-shards.ts'

export interface Cancelling {
  readonly tx: Tx
  /** Of every market that the orders may be in. */
  readonly shards: LockedShards
  readonly at: number
}

/** Orders that are in the book or wait for a trigger: those that have left the book already end by themselves. */
const cancellable = (tx: Tx) =>
  tx
    .selectFrom('orders')
    .selectAll('orders')
    .where('orders.ended_at', 'is', null)
    .where('orders.closing_reason', 'is', null)

/** The caller also holds the lock of the maker's account. */
export async function cancelSalts(
  cancelling: Cancelling,
  { spec, maker, salts }: SaltsCancelled,
): Promise<void> {
  const orders = await cancellable(cancelling.tx)
    .where('market_id', '=', spec.marketId)
    .where('maker', '=', maker)
    .where((where) =>
      'below' in salts
        ? where('salt', '<', Number(salts.below))
        : where('salt', '=', anyOf('bigint', salts.map(Number))),
    )
    .orderBy('seq')
    .execute()
  await cancel(cancelling, orders, 'USER_CANCELLED')
}

/**
 * After a withdrawal request: cancels the orders that the remaining free balance does not cover, the newest of all markets first.
 * Settling fills stay, because the pending withdrawal still backs them.
 */
export async function cancelUncovered(cancelling: Cancelling, userId: number): Promise<void> {
  const { tx } = cancelling
  const { free, reserved } = await tx
    .selectFrom('accounts')
    .select(['free', 'reserved'])
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow()
  let uncovered = reserved - free
  if (uncovered <= 0n) return
  const newestFirst = await cancellable(tx)
    .where('user_id', '=', userId)
    .where('reserved', '>', 0n)
    .orderBy('accepted_at', 'desc')
    .orderBy('market_id')
    .orderBy('seq', 'desc')
    .execute()
  const orders = newestFirst.filter((order) => {
    if (uncovered <= 0n) return false
    uncovered -= order.reserved
    return true
  })
  await cancel(cancelling, orders, 'INSUFFICIENT_MARGIN')
}

/** Cancels every live order that the key signed for the owner, in every market. */
export async function cancelSignedBy(
  cancelling: Cancelling,
  { owner, key }: { readonly owner: string; readonly key: string },
): Promise<void> {
  const orders = await cancellable(cancelling.tx)
    .innerJoin('users', 'users.user_id', 'orders.user_id')
    .innerJoin('markets', 'markets.market_id', 'orders.market_id')
    .where('users.address', '=', owner)
    .where('orders.signer', '=', key)
    .orderBy('orders.market_id')
    .orderBy('orders.seq')
    .execute()
  await cancel(cancelling, orders, 'SIGNER_REVOKED')
}

async function cancel(
  { tx, shards, at }: Cancelling,
  orders: readonly OrderRow[],
  reason: ClosingReason,
): Promise<void> {
  const released = new Map<number, bigint>()
  for (const [marketId, rows] of Map.groupBy(orders, ({ market_id }) => market_id)) {
    const closed = closeOrders(rows.map(toOpenOrder), reason, at as Millis)
    await endOrders(tx, closed.orders)
    for (const [account, delta] of closed.reserved)
      released.set(account, (released.get(account) ?? 0n) + delta)
    for (const row of closed.rows) shards.append(marketShard(marketId), row)
  }
  await changeReserved(tx, released)
}
