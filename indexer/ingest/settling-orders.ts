/** Reads the orders that a block settles, ends or restores. The caller holds the lock of the market's shard. */
import { sql } from 'kysely'
import type { Tx } from '../../db/client.ts'
import { loadPositions, matchedPosition, minedPosition } from '../../db/positions.ts'
import { anyOf } from '../../db/values.ts'
import { isConditional } from '../../domain/orders/order.ts'
import type { ClosingReason } from '../../domain/orders/order-state.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { UnsettledFill } from '../../domain/settlement/settle-part.ts'
import type { MovedSize, SettlingOrder } from '../../domain/settlement/settling-order.ts'
import type { Address, Steps, UserId } from '../../domain/units.ts'

export const selectOrders = (tx: Tx) =>
  tx
    .selectFrom('orders')
    .select(['order_id', 'user_id', 'maker', 'salt', 'side', 'type', 'reduce_only', 'triggered'])
    .select(['status', 'status_reason', 'closing_reason', 'closed_by', 'quantity', 'filled', 'settling'])
    .select(['reserved', 'held', 'forced'])

type Row = Awaited<ReturnType<ReturnType<typeof selectOrders>['execute']>>[number]

export const toSettlingOrder = (row: Row): SettlingOrder => ({
  orderId: row.order_id,
  userId: row.user_id,
  maker: row.maker as Address,
  salt: BigInt(row.salt),
  isForced: row.forced,
  side: row.side,
  reduceOnly: row.reduce_only,
  status: row.status,
  statusReason: row.status_reason,
  quantity: row.quantity as Steps,
  filled: row.filled as Steps,
  settling: row.settling as Steps,
  closingReason: row.closing_reason as ClosingReason | null,
  closedBy: row.closed_by,
  reserved: row.reserved,
  held: row.held,
  waits: isConditional(row.type) && row.triggered === null,
})

export async function loadOrders(tx: Tx, orderIds: readonly string[]): Promise<SettlingOrder[]> {
  if (orderIds.length === 0) return []
  const rows = await selectOrders(tx).where('order_id', '=', anyOf('text', orderIds)).execute()
  return rows.map(toSettlingOrder)
}

/** Orders of the accounts that left the book with a position which one of the fills closed. */
export async function loadLeaving(
  tx: Tx,
  marketId: number,
  userIds: readonly number[],
  fills: readonly UnsettledFill[],
): Promise<SettlingOrder[]> {
  if (fills.length === 0) return []
  const fillIds = fills.map(({ fillId }) => fillId)
  const rows = await selectOrders(tx)
    .select('market_id')
    .where('ended_at', 'is', null)
    .where('closed_by', '=', anyOf('text', fillIds))
    .orderBy('seq')
    .execute()
  const isOf = ({ market_id, user_id }: (typeof rows)[number]) =>
    market_id === marketId && userIds.includes(user_id)
  return rows.filter(isOf).map(toSettlingOrder)
}

/** A part of a batch. */
interface PartRef {
  readonly batchId: number
  readonly part: number
}

/** What closes reduce-only orders when a block moves positions that no batch had matched. */
export interface MovedOrders {
  readonly moved: ReadonlyMap<number, MovedSize>
  readonly reduceOnly: readonly SettlingOrder[]
}

export const NO_MOVES: MovedOrders = { moved: new Map(), reduceOnly: [] }

/**
 * Reads the reduce-only orders of accounts whose matched positions move with their mined ones. `after`: the new mined positions by user.
 * `part`: the part that moves them, if one does. `asOf`: the time of its batch, or of the action: orders accepted after it reduce the next
 * position. So an action ends no more orders than there were when it was decided.
 */
export async function loadMoved(
  tx: Tx,
  marketId: number,
  after: ReadonlyMap<number, Position>,
  { part, asOf }: { readonly part: PartRef | null; readonly asOf: number | null },
): Promise<MovedOrders> {
  if (after.size === 0) return NO_MOVES
  const users = new Set(after.keys())
  const mined = await loadPositions(tx, marketId, users, minedPosition)
  const matched = await loadPositions(tx, marketId, users, matchedPosition)
  const unsettled = await lastUnsettled(tx, marketId, [...users], part)
  const moved = [...after].map(([userId, { size }]): [number, MovedSize] => {
    const before = mined.get(userId as UserId)?.size ?? 0
    const open = matched.get(userId as UserId)?.size ?? 0
    const sizes = { mined: { before, after: size }, matched: { before: open, after: open + size - before } }
    return [userId, { ...sizes, unsettled: unsettled.get(userId) ?? null }]
  })
  const rows = await selectOrders(tx)
    .where('market_id', '=', marketId)
    .where('user_id', '=', anyOf('bigint', users))
    .where('ended_at', 'is', null)
    .where('reduce_only', '=', true)
    .$if(asOf !== null, (orders) => orders.where('accepted_at', '<=', asOf ?? 0))
    .orderBy('seq')
    .execute()
  return { moved: new Map(moved), reduceOnly: rows.map(toSettlingOrder) }
}

/** Each account's last matched fill that is not mined. The fills of `mining` are mined now. */
async function lastUnsettled(
  tx: Tx,
  marketId: number,
  userIds: readonly number[],
  mining: PartRef | null,
): Promise<Map<number, string>> {
  const { rows } = await sql<{ user_id: number; fill_id: string }>`
    select distinct on (o.user_id) o.user_id, f.fill_id
    from orders o join fills f on f.order_id = o.order_id
    where o.market_id = ${marketId} and o.user_id = any(${userIds}::bigint[]) and o.ended_at is null and o.settling > 0
      and f.status in ('MATCHED', 'SUBMITTED', 'RETRYING')
      and (f.batch_id, f.part) <> (${mining?.batchId ?? 0}, ${mining?.part ?? 0})
    order by o.user_id, f.batch_id desc, f.part desc, f.place desc
  `.execute(tx)
  return new Map(rows.map(({ user_id, fill_id }) => [user_id, fill_id]))
}

/** Those of the fills that are voided. */
export async function loadVoided(tx: Tx, fillIds: readonly string[]): Promise<Set<string>> {
  if (fillIds.length === 0) return new Set()
  const rows = await tx
    .selectFrom('fills')
    .select('fill_id')
    .where('fill_id', '=', anyOf('text', fillIds))
    .where('status', '=', 'FAILED')
    .execute()
  return new Set(rows.map(({ fill_id }) => fill_id))
}
