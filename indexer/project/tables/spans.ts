/** Rows of a market that each describe a stretch of time: candles of clearing prices, and of published prices. */
import { sql } from 'kysely'
import type { Tx } from '../../../db/client.ts'

interface Stretch {
  readonly span: number
  readonly start: number
}

/** The row's key among those of its market. */
export const stretchKey = ({ span, start }: Stretch): string => `${span} ${start}`

/** The existing rows with these keys: one look-up for each, whatever the planner assumes about the table. */
export async function loadStretches<Row>(
  tx: Tx,
  table: 'read.candles' | 'read.price_candles',
  marketId: number,
  keys: readonly string[],
): Promise<Row[]> {
  const [spans, starts] = [0, 1].map((at) => keys.map((key) => key.split(' ')[at]))
  const { rows } = await sql<Row>`
    select stored.* from unnest(${spans}::bigint[], ${starts}::bigint[]) as touched (span, start)
    cross join lateral (
      select * from ${sql.table(table)} where market_id = ${marketId} and span = touched.span and start = touched.start offset 0
    ) stored
  `.execute(tx)
  return rows
}
