/** Leases in Postgres, by the database's clock: the owners' clocks need not agree. */
import { sql } from 'kysely'
import type { Db } from './client.ts'
import type { Fence } from './fence.ts'

export interface Leases {
  /** Null while another owner's lease lives. */
  acquire(name: string): Promise<Fence | null>
  /** False where the lease is lost. */
  renew(fence: Fence): Promise<boolean>
  release(fence: Fence): Promise<void>
}

const DB_NOW = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`

/** `owner` must be another one each time a process starts: an owner does not take up again what it held in an earlier life. */
export const createLeases = (db: Db, owner: string, lifeMs: number): Leases => ({
  async acquire(name) {
    const { rows } = await sql<{ token: number }>`
      insert into leases (name, owner, token, expires_at)
      values (${name}, ${owner}, 1, ${DB_NOW} + ${lifeMs})
      on conflict (name) do update set owner = excluded.owner, token = leases.token + 1, expires_at = excluded.expires_at
      where leases.expires_at <= ${DB_NOW}
      returning token
    `.execute(db)
    const row = rows[0]
    return row === undefined ? null : { name, owner, token: row.token }
  },

  async renew({ name, token }) {
    const { numUpdatedRows } = await db
      .updateTable('leases')
      .set({ expires_at: sql<number>`${DB_NOW} + ${lifeMs}` })
      .where('name', '=', name)
      .where('owner', '=', owner)
      .where('token', '=', token)
      .executeTakeFirst()
    return numUpdatedRows === 1n
  },

  async release({ name, token }) {
    await db
      .updateTable('leases')
      .set({ expires_at: 0 })
      .where('name', '=', name)
      .where('owner', '=', owner)
      .where('token', '=', token)
      .execute()
  },
})
