/** Orders as the engine has written them, with what the read model adds: average price, fee and protection price. */
import { CompiledQuery, type Selectable } from 'kysely'
import type { Db } from '../../db/client.ts'
import type { OrdersTable } from '../../db/schema.ts'
import { createSharedRead } from './shared-read.ts'

export type StoredOrder = Selectable<OrdersTable> & {
  readonly filled_value: bigint
  readonly fee: bigint
  readonly protection_price: number | null
  readonly updated_at: number
}

/** The orders by their hashes; hashes without an order are omitted. */
export type FindOrders = (hashes: readonly string[]) => Promise<ReadonlyMap<string, StoredOrder>>

/** $1: hashes. The limits force each join to be a lookup by key. */
const STORED_BY_HASH = `
  select
    o.*, coalesce(r.filled_value, 0) as filled_value, coalesce(r.fee, 0) as fee, r.protection_price,
    coalesce(o.ended_at, r.updated_at, o.accepted_at) as updated_at
  from unnest($1::text[]) k (hash)
  cross join lateral (select * from orders where hash = k.hash limit 1) o
  left join lateral (select * from read.orders where order_id = o.order_id limit 1) r on true
`

/** $1: ids. */
const STORED_BY_ID = `
  select
    o.*, coalesce(r.filled_value, 0) as filled_value, coalesce(r.fee, 0) as fee, r.protection_price,
    coalesce(o.ended_at, r.updated_at, o.accepted_at) as updated_at
  from unnest($1::text[]) k (order_id)
  cross join lateral (select * from orders where order_id = k.order_id limit 1) o
  left join lateral (select * from read.orders where order_id = o.order_id limit 1) r on true
`

/** The orders by their ids. */
export async function findOrdersById(
  db: Db,
  ids: readonly string[],
): Promise<ReadonlyMap<string, StoredOrder>> {
  if (ids.length === 0) return new Map()
  const { rows } = await db.executeQuery<StoredOrder>(CompiledQuery.raw(STORED_BY_ID, [ids]))
  return new Map(rows.map((order) => [order.order_id, order]))
}

async function readOrders(db: Db, hashes: readonly string[]): Promise<Map<string, StoredOrder>> {
  const { rows } = await db.executeQuery<StoredOrder>(CompiledQuery.raw(STORED_BY_HASH, [hashes]))
  return new Map(rows.map((order) => [order.hash, order]))
}

export function createFindOrders(db: Db): FindOrders {
  const find = createSharedRead<string, StoredOrder>(
    (hash) => hash,
    (hashes) => readOrders(db, hashes),
  )
  return async (hashes) => {
    const found = await Promise.all(hashes.map(find))
    return new Map(found.flatMap((order) => (order === undefined ? [] : [[order.hash, order] as const])))
  }
}
