/**
 * Ends orders that the chain has cancelled, or that their account or signer can no longer back: now, or once their settling part is mined.
 * A rollback of the block does not restore them: the trader has asked for the cancel, and may have placed the order again since.
 */
import { changeReserved } from '../../db/accounts.ts'
import type { Tx } from '../../db/client.ts'
import { CLOSABLE, endOrders, type OrderRow, toOpenOrder } from '../../db/orders.ts'
import { marketsWithOrders } from '../../db/resting.ts'
import { findUsers } from '../../db/users.ts'
import { anyOf } from '../../db/values.ts'
import type { SaltsCancelled } from '../../domain/chain/facts.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import { closeOrders } from '../../domain/orders/close-orders.ts'
import type { ClosingReason } from '../../domain/orders/order-state.ts'
import type { Address, Millis } from '../../domain/units.ts'
import type { LockedShards } from './locked-shards.ts'

export interface Cancelling {
  readonly tx: Tx
  /** Of every market that the orders may be in. */
  readonly shards: LockedShards
  readonly at: number
}

/** The account's orders that are in the book, wait for a trigger or leave with their position: the others end by themselves. */
const cancellable = (tx: Tx, userId: number, marketIds: readonly number[]) =>
  tx
    .selectFrom('orders')
    .selectAll()
    .where('market_id', '=', anyOf('bigint', marketIds))
    .where('user_id', '=', userId)
    .where(CLOSABLE)

/** The caller also holds the lock of the maker's account. An account without a user has no orders. */
export async function cancelSalts(
  cancelling: Cancelling,
  { spec, salts }: SaltsCancelled,
  maker: number | undefined,
): Promise<void> {
  if (maker === undefined) return
  const orders = await cancellable(cancelling.tx, maker, [spec.marketId])
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
  const newestFirst = await cancellable(tx, userId, await marketsWithOrders(tx, [userId]))
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
  { owner, key }: { readonly owner: Address; readonly key: string },
): Promise<void> {
  const { tx } = cancelling
  const userId = (await findUsers(tx, [owner])).get(owner)
  if (userId === undefined) return
  const orders = await cancellable(tx, userId, await marketsWithOrders(tx, [userId]))
    .where('signer', '=', key)
    .orderBy('market_id')
    .orderBy('seq')
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
