/** Waiting for what a test has set up to have come about. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'

/** Gives up quietly after some seconds: what is expected next fails then. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 300 && !(await isSo()); tries++) await sleep(10)
}

/** Resolves when somebody in this database waits for a lock. Asked outside of any transaction: within one the answer never changes. */
export const untilLockWait = (db: Db): Promise<void> =>
  until(async () => {
    const { rows } = await sql<{ waiting: boolean }>`
      select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock') as waiting
    `.execute(db)
    return rows[0]?.waiting ?? false
  })
