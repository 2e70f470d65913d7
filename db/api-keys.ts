/** The `api_keys` table. Keys themselves are never stored, only their SHA-256. */
import { sql } from 'kysely'
import type { Db, Tx } from './client.ts'
import type { KeyScope } from './credentials-schema.ts'

/**
 * Notified with the user's id when a key is replaced: every process then drops the old key from its cache. Whatever stays open after its
 * credential was checked, such as a live connection, must listen too and close the connections of that user.
 */
export const API_KEYS_CHANNEL = 'api_keys'

/** What a key allows, chosen by its owner when it is created. */
export interface KeyTerms {
  readonly scope: KeyScope
  /** IP addresses and networks from which the key is accepted; null: from all. */
  readonly allowed_addresses: readonly string[] | null
}

export interface HashedApiKey extends KeyTerms {
  readonly key_hash: Buffer
  /** Shown to the user to recognize the key. */
  readonly prefix: string
  readonly created_at: number
}

/** Stores the user's key in place of any older one. */
export async function replaceApiKey(db: Db | Tx, userId: number, key: HashedApiKey): Promise<void> {
  const { allowed_addresses, ...rest } = key
  const row = {
    ...{ ...rest, allowed_addresses: allowed_addresses && [...allowed_addresses], last_used_at: null },
  }
  await db
    .insertInto('api_keys')
    .values({ user_id: userId, ...row })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(row))
    .execute()
  await sql`select pg_notify(${API_KEYS_CHANNEL}, ${String(userId)})`.execute(db)
}

export interface KeyUse {
  readonly userId: number
  readonly keyHash: Buffer
  readonly at: number
}

/** Least time between two recorded uses of a key. */
export const BETWEEN_USES_MS = 60_000

/** Records uses of keys, at most once a minute per key whatever the number of processes. Uses of replaced keys are skipped. */
export async function recordUses(db: Db, uses: readonly KeyUse[]): Promise<void> {
  const column = <Key extends keyof KeyUse>(key: Key) => uses.map((use) => use[key])
  await sql`
    update api_keys k set last_used_at = used.at
    from unnest(${column('userId')}::bigint[], ${column('keyHash')}::bytea[], ${column('at')}::bigint[]) used (user_id, key_hash, at)
    where k.user_id = used.user_id and k.key_hash = used.key_hash
      and (k.last_used_at is null or k.last_used_at <= used.at - ${BETWEEN_USES_MS}::bigint)
  `.execute(db)
}
