/** The `keepers` table: what each running keeper announces, by the database's clock. */
import { sql } from 'kysely'
import type { Db } from './client.ts'
import { DATABASE_NOW } from './clock.ts'
import type { KeepersTable } from './lease-schema.ts'
import { constant } from './values.ts'

export type KeeperRow = Pick<KeepersTable, 'owner' | 'capacity' | 'is_late'> & {
  readonly markets: readonly number[]
}

/** Valid for `lifeMs` from now. Deletes what has expired. */
export async function announceKeeper(db: Db, row: KeeperRow, lifeMs: number): Promise<void> {
  const { owner, capacity, is_late, markets } = row
  await db.transaction().execute(async (tx) => {
    await sql`
      insert into keepers (owner, expires_at, capacity, is_late, markets)
      values (${owner}, ${DATABASE_NOW} + ${lifeMs}, ${capacity}, ${is_late}, ${[...markets]}::integer[])
      on conflict (owner) do update set
        expires_at = excluded.expires_at, capacity = excluded.capacity, is_late = excluded.is_late, markets = excluded.markets
    `.execute(tx)
    // A keeper that renews its row at the same time keeps it: nothing waits for a lock.
    await sql`
      delete from keepers where owner in (
        select owner from keepers where expires_at <= ${DATABASE_NOW} for update skip locked
      )
    `.execute(tx)
    await sql`set local synchronous_commit = off`.execute(tx)
  })
}

export async function deleteKeeper(db: Db, owner: string): Promise<void> {
  await db.deleteFrom('keepers').where('owner', '=', owner).execute()
}

export async function liveKeepers(db: Db): Promise<KeeperRow[]> {
  return db
    .selectFrom('keepers')
    .select(['owner', 'capacity', 'is_late', 'markets'])
    .where('expires_at', '>', DATABASE_NOW)
    .execute()
}

/** The owners of the valid leases whose names start with `prefix`, by the rest of the name. */
export async function leaseOwners(db: Db, prefix: string): Promise<Map<string, string>> {
  const rows = await db
    .selectFrom('leases')
    .select(['name', 'owner'])
    .where('name', 'like', constant(`${prefix}%`))
    .where('expires_at', '>', DATABASE_NOW)
    .execute()
  return new Map(rows.map(({ name, owner }) => [name.slice(prefix.length), owner]))
}
