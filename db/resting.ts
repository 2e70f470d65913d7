/** The `resting` table, which triggers on `orders` maintain. */

import type { Db, Tx } from './client.ts'
import { anyOf } from './values.ts'

/**
 * Ascending ids of the markets in which one of the accounts has an order that has not ended. In a transaction that holds the accounts'
 * locks, the result is final: a placement locks its account.
 */
export async function marketsWithOrders(db: Db | Tx, userIds: Iterable<number>): Promise<number[]> {
  const rows = await db
    .selectFrom('resting')
    .select('market_id')
    .distinct()
    .where('user_id', '=', anyOf('bigint', userIds))
    .where('orders', '>', 0)
    .orderBy('market_id')
    .execute()
  return rows.map(({ market_id }) => market_id)
}
