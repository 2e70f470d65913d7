/** Reads of API keys. */
import type { Db } from '../../db/client.ts'
import { isoTime } from '../wire/amounts.ts'
import type { Me } from './schema.ts'

/** Undefined if the account has no key. */
export async function currentKey(db: Db, userId: number): Promise<NonNullable<Me['api_key']> | undefined> {
  const row = await db
    .selectFrom('api_keys')
    .select(['prefix', 'scope', 'allowed_addresses', 'created_at', 'last_used_at'])
    .where('user_id', '=', userId)
    .executeTakeFirst()
  if (row === undefined) return undefined
  const { created_at, last_used_at, ...key } = row
  return {
    ...key,
    created_at: isoTime(created_at),
    last_used_at: last_used_at === null ? null : isoTime(last_used_at),
  }
}

/** SHA-256 of the current API key of each account that has one. */
export async function keyHashes(db: Db, userIds: readonly number[]): Promise<ReadonlyMap<number, Buffer>> {
  const rows = await db
    .selectFrom('api_keys')
    .select(['user_id', 'key_hash'])
    .where('user_id', 'in', [...userIds])
    .execute()
  return new Map(rows.map(({ user_id, key_hash }) => [user_id, key_hash]))
}
