/** The `session_keys` table: what each key may sign for its owner, by the chain's events. */
import { sql } from 'kysely'
import type { SessionKeyStatus, SigningKey } from '../domain/session-keys/session-key.ts'
import type { Db, Tx } from './client.ts'

export interface SessionKeyId {
  readonly owner: string
  readonly key: string
}

/** Whether the key's newest revocation that was accepted is not on the chain. `owner` and `key` are columns. */
const REVOKING = (owner: string, key: string): string => `coalesce((
  select r.status <> 'CONFIRMED' from relay_operations r
  where r.owner = ${owner} and r.session_key = ${key} and r.kind = 'revoke_session_key'
  order by r.created_at desc limit 1
), false)`

/** A key with its owner, as `signerRefusal` needs it. */
export type SigningKeyRow = SigningKey & SessionKeyId

/** The key as it may sign for its owner now; null if the chain has never named it. */
export async function loadSigningKey(
  db: Db | Tx,
  { owner, key }: SessionKeyId,
): Promise<SigningKeyRow | null> {
  const found = await db
    .selectFrom('session_keys as s')
    .select(['s.owner', 's.key', 's.permissions', 's.expires_at', 's.revoked_at'])
    .select(sql<boolean>`${sql.raw(REVOKING('s.owner', 's.key'))}`.as('is_revoking'))
    .where('s.owner', '=', owner)
    .where('s.key', '=', key)
    .executeTakeFirst()
  return found ?? null
}

export interface ListedKey extends SigningKeyRow {
  readonly registered_at: number
}

export interface WantedKeys {
  /** Null: keys of every status. */
  readonly status: SessionKeyStatus | null
  /** Unix seconds. */
  readonly now: number
  readonly after: { readonly registeredAt: number; readonly key: string } | null
  /** Registered within these times, in milliseconds; `to` is exclusive. */
  readonly from?: number | null
  readonly to?: number | null
  readonly limit: number
}

/** The owner's keys, the newest registration first. */
export async function listSessionKeys(
  db: Db,
  owner: string,
  { status, now, after, limit, from = null, to = null }: WantedKeys,
): Promise<readonly ListedKey[]> {
  const ofStatus = {
    ACTIVE: sql`and s.revoked_at is null and s.expires_at > ${now}::bigint`,
    EXPIRED: sql`and s.revoked_at is null and s.expires_at <= ${now}::bigint`,
    REVOKED: sql`and s.revoked_at is not null`,
  }
  const { rows } = await sql<ListedKey>`
    select s.owner, s.key, s.permissions, s.registered_at, s.expires_at, s.revoked_at,
      ${sql.raw(REVOKING('s.owner', 's.key'))} as is_revoking
    from session_keys s
    where s.owner = ${owner} ${status === null ? sql`` : ofStatus[status]}
      ${after === null ? sql`` : sql`and (s.registered_at, s.key) < (${after.registeredAt}::bigint, ${after.key}::text)`}
      ${from === null ? sql`` : sql`and s.registered_at >= ${Math.ceil(from / 1000)}::bigint`}
      ${to === null ? sql`` : sql`and s.registered_at < ${Math.ceil(to / 1000)}::bigint`}
    order by s.registered_at desc, s.key desc limit ${limit}
  `.execute(db)
  return rows
}

export async function countActiveKeys(tx: Tx, owner: string, now: number): Promise<number> {
  const { count } = await tx
    .selectFrom('session_keys')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('owner', '=', owner)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirstOrThrow()
  return Number(count)
}
