/** Rows that cover a time span: candles of clearing prices and of published prices. */
import { sql } from 'kysely'
import type { Tx } from '../../../db/client.ts'
import { keyColumns } from '../projection.ts'

interface Stretch {
  readonly market_id: number
  readonly span: number
  readonly start: number
}

export const stretchKey = ({ market_id, span, start }: Stretch): string => `${market_id} ${span} ${start}`

/** Existing rows with these keys, by one lookup per key whatever the planner assumes about the table. */
export async function loadStretches<Row>(
  tx: Tx,
  table: 'read.candles' | 'read.price_candles',
  keys: readonly string[],
): Promise<Row[]> {
  const [markets, spans, starts] = keyColumns(keys, 3)
  const { rows } = await sql<Row>`
    select stored.* from unnest(${markets}::integer[], ${spans}::bigint[], ${starts}::bigint[]) as touched (market_id, span, start)
    cross join lateral (
      select * from ${sql.table(table)} where market_id = touched.market_id and span = touched.span and start = touched.start offset 0
    ) stored
  `.execute(tx)
  return rows
}
