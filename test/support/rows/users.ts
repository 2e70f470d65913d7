/** Users that a test creates. */
import { sql } from 'kysely'
import type { Tx } from '../../../db/client.ts'
import { findUsers } from '../../../db/users.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import type { Address } from '../../../domain/units.ts'

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
