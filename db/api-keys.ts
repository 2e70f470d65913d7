/** The `api_keys` table. Keys themselves are never stored, only their SHA-256. */
import { sql } from 'kysely'
import type { Db, Tx } from './client.ts'

/** Notified with the user's id when a key changes, so that every process drops the old key from its cache. */
export const API_KEYS_CHANNEL = 'api_keys'

export interface HashedApiKey {
  readonly key_hash: Buffer
  /** Shown to the user to recognize the key. */
  readonly prefix: string
  readonly created_at: number
}

/** Stores the user's key in place of any older one. */
export async function replaceApiKey(db: Db | Tx, userId: number, key: HashedApiKey): Promise<void> {
  await db
    .insertInto('api_keys')
    .values({ user_id: userId, ...key })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(key))
    .execute()
  await sql`select pg_notify(${API_KEYS_CHANNEL}, ${String(userId)})`.execute(db)
}
