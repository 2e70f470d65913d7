/** Parts that the queries of lists share. */
import { type RawBuilder, sql } from 'kysely'
import type { Cursor } from './cursor.ts'
import type { TimeRange } from './times.ts'

export interface Page {
  readonly cursor: Cursor | null
  readonly limit: number
}

/** Whether the time of a row is in the range. */
export const isWithin = (
  at: RawBuilder<unknown>,
  { from = null, to = null }: Partial<TimeRange>,
) => sql<boolean>`true
  ${from === null ? sql`` : sql`and ${at} >= ${from}::bigint`} ${to === null ? sql`` : sql`and ${at} < ${to}::bigint`}
`

/** A filter value that may exceed the range of the column that it is compared with. */
export const anyNumber = (value: number) => sql<number>`${value}::bigint`
