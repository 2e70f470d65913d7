/** What oracle and chain would do, for markets that run without them. */
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'

/** The same prices, observed now. */
export const renewReports = (db: Db, now: number) =>
  sql`update oracle_reports set observed_at = ${now}`.execute(db)

/** Nothing queued waits for settlement any more. Positions stay as they were mined before. */
export const endQueuedActions = (db: Db) =>
  sql`update actions set status = 'MINED' where status = 'QUEUED'`.execute(db)
