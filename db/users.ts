/** The `users` table, and each user's row in `accounts`. */
import { sql } from 'kysely'
import type { JournalRow } from '../domain/journal/journal-row.ts'
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

export interface CreatedUsers {
  /** Of all addresses, those that existed before included. */
  readonly users: Map<Address, number>
  /** One per created user. The caller appends them to the `accounts` shard. */
  readonly rows: JournalRow[]
}

/** Creates the users that do not exist yet, with ids in the order of `addresses`. The caller holds the lock of the `accounts` shard. */
export async function createUsers(tx: Tx, addresses: readonly Address[], at: number): Promise<CreatedUsers> {
  const users = await findUsers(tx, addresses)
  const missing = [...new Set(addresses)].filter((address) => !users.has(address))
  if (missing.length === 0) return { users, rows: [] }
  const { rows: created } = await sql<{ user_id: number; address: string }>`
    insert into users (address, created_at)
    select address, ${at}::bigint from unnest(${missing}::text[]) with ordinality missing (address, place) order by place
    returning user_id, address
  `.execute(tx)
  const ids = created.map(({ user_id }) => user_id)
  await sql`insert into accounts (user_id) select unnest(${ids}::bigint[])`.execute(tx)
  const rows: JournalRow[] = []
  for (const { user_id, address } of created) {
    users.set(address as Address, user_id)
    rows.push({ kind: 'user_created', user_id, address, at })
  }
  return { users, rows }
}
