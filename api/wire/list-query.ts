/** Parts that the queries of lists share. */
import { sql } from 'kysely'
import type { Cursor } from './cursor.ts'

export interface Page {
  readonly cursor: Cursor | null
  readonly limit: number
}

/** A filter value that may exceed the range of the column that it is compared with. */
export const anyNumber = (value: number) => sql<number>`${value}::bigint`
