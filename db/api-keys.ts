/** The `api_keys` table. Keys themselves are never stored, only their SHA-256. */
import { sql } from 'kysely'
import type { Db, Tx } from './client.ts'
import type { KeyScope } from './credentials-schema.ts'

/**
 * Notified with the user's id when a key is replaced or revoked: processes drop the user's keys from their caches, and
 * close connections that a former key has opened.
 */
export const API_KEYS_CHANNEL = 'api_keys'

/** Name of the key that the endpoints for a single key create, replace and show. */
export const DEFAULT_KEY = 'default'
/** Maximum keys of an account. One place is reserved for the key named `default`. */
export const MOST_KEYS = 20

/** Rights of a key, chosen by its owner at its creation. */
export interface KeyTerms {
  readonly scope: KeyScope
  /** IP addresses and networks from which the key is accepted; null: from all. */
  readonly allowed_addresses: readonly string[] | null
}

export interface HashedApiKey extends KeyTerms {
  readonly name: string
  readonly key_hash: Buffer
  /** Start of the key, shown to the user to recognize it. */
  readonly prefix: string
  readonly created_at: number
}

const rowOf = (userId: number, { allowed_addresses, ...rest }: HashedApiKey) => ({
  ...rest,
  user_id: userId,
  allowed_addresses: allowed_addresses && [...allowed_addresses],
  last_used_at: null,
})

const announce = (db: Db | Tx, userId: number) =>
  sql`select pg_notify(${API_KEYS_CHANNEL}, ${String(userId)})`.execute(db)

/** Stores the user's key and replaces an older key of the same name. */
export async function replaceApiKey(db: Db | Tx, userId: number, key: HashedApiKey): Promise<void> {
  const { user_id, name, ...changed } = rowOf(userId, key)
  await db
    .insertInto('api_keys')
    .values({ user_id, name, ...changed })
    .onConflict((conflict) => conflict.columns(['user_id', 'name']).doUpdateSet(changed))
    .execute()
  await announce(db, userId)
}

/** `taken`: the account has a key of this name. `full`: the account has the maximum number of keys. */
export type KeyAddition = 'added' | 'taken' | 'full'

/** Stores a further key of the user. The transaction serializes additions of the user's keys. */
export async function addApiKey(tx: Tx, userId: number, key: HashedApiKey): Promise<KeyAddition> {
  await sql`select pg_advisory_xact_lock(hashtextextended('api_keys', ${userId}::bigint))`.execute(tx)
  const rows = await tx.selectFrom('api_keys').select('name').where('user_id', '=', userId).execute()
  if (rows.some(({ name }) => name === key.name)) return 'taken'
  const others = rows.filter(({ name }) => name !== DEFAULT_KEY).length
  if (key.name !== DEFAULT_KEY && others >= MOST_KEYS - 1) return 'full'
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('api_keys')
    .values(rowOf(userId, key))
    // A replacement of the key named `default` takes no lock and may be the first to create it.
    .onConflict((conflict) => conflict.columns(['user_id', 'name']).doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n ? 'added' : 'taken'
}

/** False if the user has no key of this name. */
export async function deleteApiKey(db: Db, userId: number, name: string): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    const { numDeletedRows } = await tx
      .deleteFrom('api_keys')
      .where('user_id', '=', userId)
      .where('name', '=', name)
      .executeTakeFirstOrThrow()
    if (numDeletedRows === 0n) return false
    await announce(tx, userId)
    return true
  })
}

export interface KeyUse {
  readonly userId: number
  readonly keyHash: Buffer
  readonly at: number
}

/** Minimum time between two recorded uses of a key. */
export const BETWEEN_USES_MS = 60_000

/** Records uses of keys, at most once a minute per key whatever the number of processes. Uses of replaced and revoked keys are skipped. */
export async function recordUses(db: Db, uses: readonly KeyUse[]): Promise<void> {
  const column = <Key extends keyof KeyUse>(key: Key) => uses.map((use) => use[key])
  await sql`
    update api_keys k set last_used_at = used.at
    from unnest(${column('userId')}::bigint[], ${column('keyHash')}::bytea[], ${column('at')}::bigint[]) used (user_id, key_hash, at)
    where k.user_id = used.user_id and k.key_hash = used.key_hash
      and (k.last_used_at is null or k.last_used_at <= used.at - ${BETWEEN_USES_MS}::bigint)
  `.execute(db)
}
