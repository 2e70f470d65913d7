/** The tables `leases` and `indexer_leases`. Leases expire by the database's clock, so the clocks of their owners need not agree. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db, Tx } from './client.ts'
import { DATABASE_NOW } from './clock.ts'
import type { Fence } from './fence.ts'

export interface Leases {
  /** Null while another owner's lease has not expired. */
  acquire(name: string): Promise<Fence | null>
  /** False if the lease is lost. */
  renew(fence: Fence): Promise<boolean>
  release(fence: Fence): Promise<void>
}

/**
 * Renewals and checks for expired leases of one process share a statement within this time, and within this fraction of
 * a lease's life.
 */
const GROUP_MS = 100
const GROUP_PART = 30

interface RenewalGroup {
  readonly fences: Fence[]
  /** The names of the renewed leases. */
  readonly renewed: Promise<ReadonlySet<string>>
}

/** `owner` must be new at each process start, so that a restarted process does not own its former leases. */
export function createLeases(
  db: Db,
  owner: string,
  lifeMs: number,
  table: 'leases' | 'indexer_leases' = 'leases',
): Leases {
  const leases = sql.table(table)
  let group: RenewalGroup | null = null
  let looks: { readonly names: string[]; readonly free: Promise<ReadonlySet<string>> } | null = null
  const groupEnds = () => sleep(Math.min(GROUP_MS, lifeMs / GROUP_PART))

  /** Sends the group's statement once the group's time is over. */
  function openGroup(): RenewalGroup {
    const fences: Fence[] = []
    const renewed = groupEnds().then(() => {
      group = null
      return fences.length === 1 ? new Set<string>() : renewUnlocked(fences)
    })
    return { fences, renewed }
  }

  /**
   * Skips locked rows, so that a long transaction under one lease delays no renewal and no transaction of another
   * lease.
   */
  async function renewUnlocked(fences: readonly Fence[]): Promise<ReadonlySet<string>> {
    const { rows } = await sql<{ name: string }>`
      update ${leases} lease set expires_at = ${DATABASE_NOW} + ${lifeMs}
      from (select set_config('synchronous_commit', 'off', true)) settings, (
        select l.name from unnest(
          ${fences.map(({ name }) => name)}::text[], ${fences.map(({ token }) => token)}::bigint[]
        ) held (name, token)
        join ${leases} l on l.name = held.name and l.token = held.token and l.owner = ${owner}
        for no key update of l skip locked
      ) unlocked
      where lease.name = unlocked.name
      returning lease.name
    `.execute(db)
    return new Set(rows.map(({ name }) => name))
  }

  // The commit does not wait for the disk. If a database crash loses a renewal, the lease ends early, and its fence
  // still protects.
  async function renewOne({ name, token }: Fence): Promise<boolean> {
    const { rows } = await sql`
      update ${leases} lease set expires_at = ${DATABASE_NOW} + ${lifeMs}
      from (select set_config('synchronous_commit', 'off', true)) settings
      where name = ${name} and owner = ${owner} and token = ${token}
      returning true
    `.execute(db)
    return rows.length === 1
  }

  /** Reads without locks, because standby processes check the leases of all markets often. */
  async function isFree(name: string): Promise<boolean> {
    if (looks === null) {
      const names: string[] = []
      const free = groupEnds().then(() => {
        looks = null
        return readFree(names)
      })
      looks = { names, free }
    }
    looks.names.push(name)
    return (await looks.free).has(name)
  }

  async function readFree(names: readonly string[]): Promise<ReadonlySet<string>> {
    const { rows } = await sql<{ name: string }>`
      select wanted.name from unnest(${names}::text[]) wanted (name)
      left join ${leases} lease on lease.name = wanted.name and lease.expires_at > ${DATABASE_NOW}
      where lease.name is null
    `.execute(db)
    return new Set(rows.map(({ name }) => name))
  }

  return {
    async acquire(name) {
      if (!(await isFree(name))) return null
      const { rows } = await sql<{ token: number }>`
        insert into ${leases} as lease (name, owner, token, expires_at)
        values (${name}, ${owner}, 1, ${DATABASE_NOW} + ${lifeMs})
        on conflict (name) do update set owner = excluded.owner, token = lease.token + 1, expires_at = excluded.expires_at
        where lease.expires_at <= ${DATABASE_NOW}
        returning token
      `.execute(db)
      const row = rows[0]
      return row === undefined ? null : { name, owner, token: row.token }
    },

    async renew(fence) {
      group ??= openGroup()
      group.fences.push(fence)
      const renewed = await group.renewed
      return renewed.has(fence.name) || renewOne(fence)
    },

    async release({ name, token }) {
      await db
        .updateTable(table)
        .set({ expires_at: 0 })
        .where('name', '=', name)
        .where('owner', '=', owner)
        .where('token', '=', token)
        .execute()
    },
  }
}

/** Whether a process holds this lease now. */
export async function hasLiveLease(db: Db | Tx, name: string): Promise<boolean> {
  const { rows } =
    await sql`select from leases where name = ${name} and expires_at > ${DATABASE_NOW}`.execute(db)
  return rows.length > 0
}

/**
 * Makes `owner` the owner for `lifeMs` from `now`, even if the lease has another owner. Only for leases of tools, which
 * no fence checks.
 */
export async function seizeLease(
  db: Db,
  { name, owner, now, lifeMs }: { name: string; owner: string; now: number; lifeMs: number },
): Promise<void> {
  const row = { owner, token: 1, expires_at: now + lifeMs }
  await db
    .insertInto('leases')
    .values({ name, ...row })
    .onConflict((conflict) => conflict.column('name').doUpdateSet(row))
    .execute()
}

/** Deletes a seized lease that is still the owner's. */
export async function deleteLease(db: Db, name: string, owner: string): Promise<void> {
  await db.deleteFrom('leases').where('name', '=', name).where('owner', '=', owner).execute()
}
