/** The database's clock. All processes share it, so times that decide about orders come from it. */
import { type RawBuilder, sql } from 'kysely'
import type { Millis } from '../domain/units.ts'
import type { Db } from './client.ts'

/** The time when the expression is evaluated, which can be later than the start of its transaction. */
export const DATABASE_NOW = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`

/** SQL of the time by which a store decides. */
export type DatabaseTime = () => RawBuilder<number>

export async function readClock(db: Db): Promise<Millis> {
  const { rows } = await sql<{ now: number }>`select ${DATABASE_NOW} as now`.execute(db)
  return (rows[0] as { now: number }).now as Millis
}
