/** Reads the ages of the newest base backup and of the newest archived WAL, for monitoring. */
import { sql } from 'kysely'
import type { Db } from '../db/client.ts'
import { elapsed } from '../service/clock.ts'
import { type BackgroundPorts, BackgroundTask } from './background-task.ts'

export interface BackupMetrics {
  /** Unix milliseconds; 0 without any. */
  backups(completedAt: number, archivedAt: number): void
}

export interface BackupWatch {
  stop(): Promise<void>
}

const POLL_MS = 5_000
/** As in the alert BackupStale. */
const MOST_AGE_MS = 26 * 3_600_000
/** Between two log lines about a stale backup. */
const REPORT_MS = 3_600_000

interface Times {
  readonly completed_at: number
  readonly archived_at: number
}

/** A database without any backup is a new one, or one of a developer: the metric alone states it. */
function createReport({ clock, logger }: BackgroundPorts): (completedAt: number) => void {
  let reportedAt = Number.NEGATIVE_INFINITY
  return (completedAt) => {
    const isStale = completedAt > 0 && clock.now() - completedAt > MOST_AGE_MS
    if (!isStale) reportedAt = Number.NEGATIVE_INFINITY
    if (!isStale || elapsed(clock, reportedAt) < REPORT_MS) return
    reportedAt = clock.now()
    const completed_at = new Date(completedAt).toISOString()
    logger.error({ completed_at, expected_hours: MOST_AGE_MS / 3_600_000 }, 'newest base backup is stale')
  }
}

export function watchBackups(db: Db, metrics: BackupMetrics, ports: BackgroundPorts): BackupWatch {
  const report = createReport(ports)
  async function read(): Promise<void> {
    // Statistics of the archiver are those of the primary: a new primary has none until it has archived its first file.
    const { rows } = await sql<Times>`
      select coalesce((select max(completed_at) from backups), 0) as completed_at,
        coalesce((select extract(epoch from last_archived_time) * 1000 from pg_stat_archiver), 0)::bigint as archived_at
    `.execute(db)
    const { completed_at, archived_at } = rows[0] as Times
    metrics.backups(completed_at, archived_at)
    report(completed_at)
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
