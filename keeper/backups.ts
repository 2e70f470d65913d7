/** Reads the ages of the newest base backup and of the newest archived WAL, for monitoring. */
import { sql } from 'kysely'
import type { Db } from '../db/client.ts'
import { type BackgroundPorts, BackgroundTask } from './background-task.ts'

export interface BackupMetrics {
  /** Unix milliseconds; 0 without any. */
  backups(completedAt: number, archivedAt: number): void
}

export interface BackupWatch {
  stop(): Promise<void>
}

const POLL_MS = 30_000

interface Times {
  readonly completed_at: number
  readonly archived_at: number
}

export function watchBackups(db: Db, metrics: BackupMetrics, ports: BackgroundPorts): BackupWatch {
  async function read(): Promise<void> {
    // Statistics of the archiver are those of the primary: a new primary has none until it has archived its first file.
    const { rows } = await sql<Times>`
      select coalesce((select max(completed_at) from backups), 0) as completed_at,
        coalesce((select extract(epoch from last_archived_time) * 1000 from pg_stat_archiver), 0)::bigint as archived_at
    `.execute(db)
    const { completed_at, archived_at } = rows[0] as Times
    metrics.backups(completed_at, archived_at)
  }
  const reading = new BackgroundTask(ports, 'ages of backups not read; will retry', {})
  const poll = (): void => reading.poll(0, read)
  poll()
  const timer = setInterval(poll, POLL_MS)
  return {
    async stop() {
      clearInterval(timer)
      await reading.settled()
    },
  }
}
