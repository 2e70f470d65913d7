/** Reads of API keys. */
import { DEFAULT_KEY } from '../../db/api-keys.ts'
import type { Db } from '../../db/client.ts'
import { isoTime } from '../wire/amounts.ts'
import type { ApiKey, Me } from './schema.ts'

/** The account's keys by name, ascending. */
export async function apiKeysOf(db: Db, userId: number): Promise<ApiKey[]> {
  const rows = await db
    .selectFrom('api_keys')
    .select(['name', 'prefix', 'scope', 'allowed_addresses', 'created_at', 'last_used_at'])
    .where('user_id', '=', userId)
    .orderBy('name')
    .execute()
  return rows.map(({ created_at, last_used_at, ...key }) => ({
    ...key,
    created_at: isoTime(created_at),
    last_used_at: last_used_at === null ? null : isoTime(last_used_at),
  }))
}

/** The account's key named `default`; null if there is none. */
export async function defaultKey(db: Db, userId: number): Promise<Me['api_key']> {
  const key = (await apiKeysOf(db, userId)).find(({ name }) => name === DEFAULT_KEY)
  if (key === undefined) return null
  const { name: _, ...rest } = key
  return rest
}

/** SHA-256 of the keys of these accounts. */
export const currentKeys = (db: Db, userIds: readonly number[]) =>
  db
    .selectFrom('api_keys')
    .select(['user_id', 'name', 'key_hash'])
    .where('user_id', 'in', [...userIds])
    .execute()
