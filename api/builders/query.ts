/** The sums of builders in the read model. */
import { type Selectable, sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { ReadBuilderDaysTable } from '../../db/read-market-data-schema.ts'

/** Tables that the queries of builders read. */
export const BUILDER_TABLES = ['read.builder_days'] as const

export type BuilderDayRow = Selectable<ReadBuilderDaysTable>

export interface DayPage {
  readonly day: number
  readonly limit: number
  /** Last row of the previous page. */
  readonly after: Pick<BuilderDayRow, 'volume' | 'builder'> | null
}

/** Builders of a day, largest volume first; `limit` + 1 rows if there is a next page. */
export async function buildersOfDay(
  db: Db | Tx,
  { day, limit, after }: DayPage,
): Promise<readonly BuilderDayRow[]> {
  let query = db.selectFrom('read.builder_days').selectAll().where('day', '=', day)
  if (after !== null) {
    const { volume, builder } = after
    // Bounds the index scan; the next condition excludes rows of the previous page.
    query = query.where('volume', '<=', volume)
    query = query.where(sql<boolean>`(volume < ${volume}::numeric or builder > ${builder})`)
  }
  return query
    .orderBy('volume', 'desc')
    .orderBy('builder')
    .limit(limit + 1)
    .execute()
}

export interface BuilderPage {
  readonly builder: string
  /** Null: all days. */
  readonly day: number | null
  readonly limit: number
  /** Day of the previous page's last row. */
  readonly before: number | null
}

/** Days of a builder, newest first; `limit` + 1 rows if there is a next page. */
export async function daysOfBuilder(
  db: Db | Tx,
  { builder, day, limit, before }: BuilderPage,
): Promise<readonly BuilderDayRow[]> {
  let query = db.selectFrom('read.builder_days').selectAll().where('builder', '=', builder)
  if (day !== null) query = query.where('day', '=', day)
  if (before !== null) query = query.where('day', '<', before)
  return query
    .orderBy('day', 'desc')
    .limit(limit + 1)
    .execute()
}
