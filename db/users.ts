/** The `users` table. The engine writes it. */
import type { Address, UserId } from '../domain/units.ts'
import type { Db, Tx } from './client.ts'
import { anyOf } from './values.ts'

export async function findUsers(db: Db | Tx, addresses: readonly Address[]): Promise<Map<Address, number>> {
  if (addresses.length === 0) return new Map()
  const rows = await db
    .selectFrom('users')
    .select(['user_id', 'address'])
    .where('address', '=', anyOf('text', addresses))
    .execute()
  return new Map(rows.map(({ user_id, address }) => [address as Address, user_id]))
}

export async function loadAddresses(db: Db | Tx, userIds: Iterable<UserId>): Promise<Map<UserId, Address>> {
  const wanted = [...userIds]
  if (wanted.length === 0) return new Map()
  const rows = await db
    .selectFrom('users')
    .select(['user_id', 'address'])
    .where('user_id', '=', anyOf('bigint', wanted))
    .execute()
  return new Map(rows.map(({ user_id, address }) => [user_id as UserId, address as Address]))
}
