/**
 * Orders as the engine has written them, with prices, fees and a live order's fills from the read model. Rows follow
 * the engine's answers: they are read once the tables have caught up.
 */
import { CompiledQuery, type Selectable } from 'kysely'
import type { Db } from '../../db/client.ts'
import type { OrdersTable } from '../../db/schema.ts'
import { createSharedRead } from './shared-read.ts'
import { requireCaughtUp, type TableProgress } from './table-progress.ts'

export type StoredOrder = Selectable<OrdersTable> & {
  readonly filled_value: bigint
  readonly fee: bigint
  readonly protection_price: number | null
  readonly updated_at: number
}

/** The orders by their hashes or ids, which are the keys of the result; keys without an order are omitted. Throws OUTCOME_UNKNOWN if the tables do not catch up. */
export type FindOrders = (keys: readonly string[]) => Promise<ReadonlyMap<string, StoredOrder>>

/** The read model's `reserved` includes the held amount, the engine's does not. */
const inReadModel = (name: string): string => (name === 'reserved' ? 'r.reserved - r.held' : `r.${name}`)

/** Columns that the engine's table has from the order's end on, and the read model always. */
const LIVE_COLUMNS = ['status', 'status_reason', 'filled', 'settling', 'openable', 'reserved', 'held']
  .map(
    (name) =>
      `case when o.ended_at is null and r.order_id is not null then ${inReadModel(name)} else o.${name} end as ${name}`,
  )
  .join(', ')

/**
 * $1: hashes or ids. The limits force lookups by key. The subselect hides the number of keys from Postgres, which would
 * plan each call. Of two columns with one name the later counts.
 */
const storedBy = (key: 'hash' | 'order_id'): string => `
  select
    o.*, ${LIVE_COLUMNS}, coalesce(r.filled_value, 0) as filled_value, coalesce(r.fee, 0) as fee, r.protection_price,
    coalesce(o.ended_at, r.updated_at, o.accepted_at) as updated_at
  from unnest((select $1::text[])) k (${key})
  cross join lateral (select * from orders where ${key} = k.${key} limit 1) o
  left join lateral (select * from read.orders where order_id = o.order_id limit 1) r on true
`
const STORED_BY_HASH = storedBy('hash')
const STORED_BY_ID = storedBy('order_id')

const readOrders = async (db: Db, statement: string, keys: readonly string[]): Promise<StoredOrder[]> =>
  (await db.executeQuery<StoredOrder>(CompiledQuery.raw(statement, [keys]))).rows

export const createFindOrdersById =
  (db: Db, tables: TableProgress): FindOrders =>
  async (ids) => {
    if (ids.length === 0) return new Map()
    await requireCaughtUp(tables)
    return new Map((await readOrders(db, STORED_BY_ID, ids)).map((order) => [order.order_id, order]))
  }

export function createFindOrders(db: Db, tables: TableProgress): FindOrders {
  const find = createSharedRead<string, StoredOrder>(
    (hash) => hash,
    async (hashes) =>
      new Map((await readOrders(db, STORED_BY_HASH, hashes)).map((order) => [order.hash, order])),
  )
  return async (hashes) => {
    if (hashes.length === 0) return new Map()
    await requireCaughtUp(tables)
    const found = await Promise.all(hashes.map(find))
    return new Map(found.flatMap((order) => (order === undefined ? [] : [[order.hash, order] as const])))
  }
}
