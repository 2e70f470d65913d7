/** Orders as the write side has them, with what the read model adds: average price, fee and protection price. */
import { CompiledQuery } from 'kysely'
import type { Db } from '../../db/client.ts'
import type { StoredOrder } from './group-state.ts'
import { STORED_BY_HASH } from './group-statements.ts'
import { createSharedRead } from './shared-read.ts'

/** The orders by their hashes; hashes without an order are omitted. */
export type FindOrders = (hashes: readonly string[]) => Promise<ReadonlyMap<string, StoredOrder>>

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
