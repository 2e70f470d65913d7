/** Waits for conditions in the database. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'
import { PATIENCE, waitFor } from '../../support/patience.ts'

/** Polls for 15 s on a quiet machine; on timeout it returns, and the next expectation of the test fails. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1_500 * PATIENCE && !(await condition()); tries++) await sleep(10)
}

/**
 * Resolves when so many connections wait for a lock, and throws if they do not. Must run outside a transaction: within one, pg_stat_activity is a
 * fixed snapshot.
 */
export async function untilLockWait(db: Db, connections = 1): Promise<void> {
  const read = async (): Promise<number> => {
    const { rows } = await sql<{ waiting: number }>`
      select count(*) as waiting from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
    `.execute(db)
    return rows[0]?.waiting ?? 0
  }
  await waitFor(read, (waiting) => waiting >= connections, { everyMs: 10 })
}
