/**
 * Orders that the chain has killed, or whose margin has left: they end here too, or once what settles of them is mined. Not taken back
 * when the block is: the order may have been sent again since, and its maker has asked for it.
 */
import { sql } from 'kysely'
import type { Tx } from '../../db/client.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import { type ClosingReason, transition } from '../../domain/orders/order-state.ts'
import type { SettlingOrder } from '../../domain/settlement/settle-part.ts'
import type { SaltsCancelled } from './facts.ts'
import type { LockedShards } from './locked-shards.ts'
import { loadOrders } from './write-part.ts'

export interface Cancelling {
  readonly tx: Tx
  /** Of every market that the orders may be in. */
  readonly shards: LockedShards
  readonly at: number
}

/** The caller holds the lock of the maker's account, too. */
export async function cancelSalts(
  cancelling: Cancelling,
  { spec, maker, salts }: SaltsCancelled,
): Promise<void> {
  const { marketId } = spec
  const ids = await cancelling.tx
    .selectFrom('orders')
    .select('order_id')
    .where('market_id', '=', marketId)
    .where('maker', '=', maker)
    .where('ended_at', 'is', null)
    .where((where) =>
      'below' in salts ? where('salt', '<', Number(salts.below)) : where('salt', 'in', salts.map(Number)),
    )
    .orderBy('seq')
    .execute()
  const orders = await loadOrders(
    cancelling.tx,
    ids.map(({ order_id }) => order_id),
  )
  for (const order of orders) await cancel(cancelling, marketId, order, 'USER_CANCELLED')
}

/**
 * After a withdrawal request: orders that the rest of the free balance does not cover are cancelled, the newest of all markets first.
 * What settles already stays: the pending withdrawal still backs it.
 */
export async function cancelUncovered(cancelling: Cancelling, userId: number): Promise<void> {
  const { tx } = cancelling
  const { free, reserved } = await tx
    .selectFrom('accounts')
    .select(['free', 'reserved'])
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow()
  let short = reserved - free
  if (short <= 0n) return
  const open = await tx
    .selectFrom('orders')
    .select(['order_id', 'market_id'])
    .where('user_id', '=', userId)
    .where('ended_at', 'is', null)
    .where('closing_reason', 'is', null)
    .where('reserved', '>', 0n)
    .orderBy('accepted_at', 'desc')
    .orderBy('market_id')
    .orderBy('seq', 'desc')
    .execute()
  for (const { order_id, market_id } of open) {
    if (short <= 0n) return
    const [order] = await loadOrders(tx, [order_id])
    if (order === undefined) continue
    short -= order.reserved
    await cancel(cancelling, market_id, order, 'INSUFFICIENT_MARGIN')
  }
}

/** Every live order that the key signed for the owner, in whatever market. */
export async function cancelSignedBy(
  cancelling: Cancelling,
  { owner, key }: { readonly owner: string; readonly key: string },
): Promise<void> {
  const live = await cancelling.tx
    .selectFrom('markets')
    .innerJoin('users', (join) => join.on('users.address', '=', owner))
    .innerJoin('orders', (join) =>
      join
        .onRef('orders.market_id', '=', 'markets.market_id')
        .onRef('orders.user_id', '=', 'users.user_id')
        .on('orders.ended_at', 'is', null),
    )
    .select(['orders.order_id', 'orders.market_id'])
    .where('orders.signer', '=', key)
    .orderBy('orders.market_id')
    .orderBy('orders.seq')
    .execute()
  for (const { order_id, market_id } of live) {
    const [order] = await loadOrders(cancelling.tx, [order_id])
    if (order !== undefined) await cancel(cancelling, market_id, order, 'SIGNER_REVOKED')
  }
}

async function cancel(
  { tx, shards, at }: Cancelling,
  marketId: number,
  order: SettlingOrder,
  reason: ClosingReason,
): Promise<void> {
  const closed = transition(order, { kind: 'close', reason })
  if (!closed.ok) return
  const { status, statusReason, closingReason } = closed.value.life
  const isEnded = status === 'CANCELLED' || status === 'EXPIRED'
  await tx
    .updateTable('orders')
    .set({ status, status_reason: statusReason, closing_reason: closingReason, openable: 0, reserved: 0n })
    .set({ ended_at: isEnded ? at : null })
    .where('order_id', '=', order.orderId)
    .execute()
  await tx
    .updateTable('accounts')
    .set({ reserved: sql`reserved - ${order.reserved}::numeric` })
    .where('user_id', '=', order.userId)
    .execute()
  const reserved_delta = (-order.reserved).toString()
  const told = { order_id: order.orderId, user_id: order.userId, reason, note: null, reserved_delta, at }
  const row = isEnded
    ? ({ kind: 'order_ended', status, ...told } as const)
    : ({ kind: 'order_ending', status, ...told } as const)
  shards.append(marketShard(marketId), row)
}
