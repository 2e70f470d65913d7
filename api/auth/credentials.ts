/** API keys: random, shown once, kept as SHA-256 only. */
import { hash, randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'

/** Told with the user's id when a key changes, so that no process goes on taking the old one. */
export const API_KEYS_CHANNEL = 'api_keys'

const PREFIX_LENGTH = 10

/** 256 random bits need no slow hash: there is nothing to guess. */
export const hashApiKey = (key: string): Buffer => hash('sha256', key, 'buffer')

/** Gives the user a new key, which replaces the current one. The answer is the only time that it is seen. */
export async function createApiKey(db: Db | Tx, userId: number): Promise<string> {
  const key = `cb_${randomBytes(32).toString('base64url')}`
  const values = { key_hash: hashApiKey(key), prefix: key.slice(0, PREFIX_LENGTH), created_at: Date.now() }
  await db
    .insertInto('api_keys')
    .values({ user_id: userId, ...values })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(values))
    .execute()
  await sql`select pg_notify(${API_KEYS_CHANNEL}, ${String(userId)})`.execute(db)
  return key
}
