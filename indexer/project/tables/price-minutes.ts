/** `read.price_minutes`: the published oracle and mark prices of a market per minute. */
import { type Selectable, sql } from 'kysely'
import { PROJECTED_TABLES, type ReadPriceMinutesTable } from '../../../db/read-schema.ts'
import type { PricesUpdated } from '../../../domain/journal/journal-row.ts'
import type { Projection } from '../projection.ts'
import { tableOf } from '../read-table.ts'
import { type RowChange, RowChanges, type ShardEntry } from '../row-change.ts'

type PriceMinute = Selectable<ReadPriceMinutesTable>

const MINUTE = 60_000

/**
 * Rows older than this, counted from the market's newest row, are deleted: what the table has follows from the journal alone, like all
 * other read tables. The journal keeps every price.
 */
export const PRICE_MINUTES_KEPT = 31 * 24 * 60

const PRICE_MINUTES = tableOf<PriceMinute>({
  table: 'read.price_minutes',
  key: ['market_id', 'minute'],
  columns: {
    market_id: 'integer',
    minute: 'bigint',
    oracle_open: 'numeric',
    oracle_high: 'numeric',
    oracle_low: 'numeric',
    oracle_close: 'numeric',
    mark_open: 'numeric',
    mark_high: 'numeric',
    mark_low: 'numeric',
    mark_close: 'numeric',
  },
})

export const priceMinutes: Projection = {
  name: 'price_minutes',
  version: 1,
  tables: PROJECTED_TABLES.price_minutes,
  async project(tx, entries) {
    const changes = entries.flatMap(priceChanges)
    if (changes.length === 0) return { clauses: [] }
    const marketId = (entries[0] as ShardEntry).marketId
    const minutes = [...new Set(changes.map(({ key }) => key))]
    const { rows } = await sql<PriceMinute>`
      select * from read.price_minutes where market_id = ${marketId} and minute = any(${minutes}::bigint[])
    `.execute(tx)
    const stored = new RowChanges(rows.map((row) => [String(row.minute), row] as const))
    for (const change of changes) stored.apply(change)
    const prune = async (): Promise<void> => {
      await sql`
        delete from read.price_minutes where market_id = ${marketId} and minute <= (
          select max(minute) from read.price_minutes where market_id = ${marketId}
        ) - ${PRICE_MINUTES_KEPT * MINUTE}::bigint
      `.execute(tx)
    }
    const isNew = rows.length < minutes.length
    return { clauses: [PRICE_MINUTES.replace(stored.changed())], ...(isNew && { after: prune }) }
  },
}

function priceChanges({ marketId, row }: ShardEntry): RowChange<PriceMinute>[] {
  if (row.kind !== 'prices_updated') return []
  const minute = row.at - (row.at % MINUTE)
  return [{ key: String(minute), apply: (before) => withPrices(before, marketId, minute, row) }]
}

function withPrices(
  before: PriceMinute | undefined,
  market_id: number,
  minute: number,
  { oracle_price, mark_price }: PricesUpdated,
): PriceMinute {
  const [oracle, mark] = [BigInt(oracle_price), BigInt(mark_price)]
  if (before === undefined) {
    return {
      ...{ market_id, minute, oracle_open: oracle, oracle_high: oracle, oracle_low: oracle },
      ...{ oracle_close: oracle, mark_open: mark, mark_high: mark, mark_low: mark, mark_close: mark },
    }
  }
  return {
    ...before,
    oracle_high: oracle > before.oracle_high ? oracle : before.oracle_high,
    oracle_low: oracle < before.oracle_low ? oracle : before.oracle_low,
    oracle_close: oracle,
    mark_high: mark > before.mark_high ? mark : before.mark_high,
    mark_low: mark < before.mark_low ? mark : before.mark_low,
    mark_close: mark,
  }
}
