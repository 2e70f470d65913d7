/** `read.price_candles`: open, high, low and close of the published oracle and mark prices of a market, at every stored length. */
import { type Selectable, sql } from 'kysely'
import type { ReadPriceCandlesTable } from '../../../db/read-market-data-schema.ts'
import { PROJECTED_TABLES } from '../../../db/read-schema.ts'
import type { PricesUpdated } from '../../../domain/journal/journal-row.ts'
import { SPANS, spanStart } from '../../../domain/market-data/interval.ts'
import type { Projection } from '../projection.ts'
import { tableOf } from '../read-table.ts'
import { type RowChange, RowChanges, type ShardEntry } from '../row-change.ts'
import { loadStretches, stretchKey } from './spans.ts'

type PriceCandle = Selectable<ReadPriceCandlesTable>

const DAY = 24 * 60 * 60_000

/**
 * Retention of the three shortest lengths, from the market's newest row of that length; other lengths stay. Like all
 * read tables this follows from the journal, which keeps every price.
 */
export const PRICES_KEPT = [31 * DAY, 92 * DAY, 731 * DAY] as const

const PRICE_CANDLES = tableOf<PriceCandle>({
  table: 'read.price_candles',
  key: ['market_id', 'span', 'start'],
  columns: {
    market_id: 'integer',
    span: 'bigint',
    start: 'bigint',
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

export const priceCandles: Projection = {
  name: 'price_candles',
  version: 1,
  tables: PROJECTED_TABLES.price_candles,
  async project(tx, entries) {
    const changes = entries.flatMap(priceChanges)
    if (changes.length === 0) return { clauses: [] }
    const keys = [...new Set(changes.map(({ key }) => key))]
    const rows = await loadStretches<PriceCandle>(tx, 'read.price_candles', keys)
    const stored = new RowChanges(rows.map((row) => [stretchKey(row), row] as const))
    for (const change of changes) stored.apply(change)
    const known = new Set(rows.map(stretchKey))
    const begun = stored.changed().filter((row) => !known.has(stretchKey(row)))
    const clauses = [PRICE_CANDLES.replace(stored.changed())]
    return begun.length === 0 ? { clauses } : { clauses, after: [prune(begun)] }
  },
}

/** Deletes the rows that are too old, in the markets in which a row has begun. */
const prune = (begun: readonly PriceCandle[]) => sql`
  delete from read.price_candles old using (
    select market_id, span, newest.start - kept as until
    from unnest(${[...new Set(begun.map(({ market_id }) => market_id))]}::integer[]) as m (market_id)
    cross join unnest(${PRICES_KEPT.map((_, at) => SPANS[at])}::bigint[], ${PRICES_KEPT}::bigint[]) as k (span, kept)
    cross join lateral (
      select max(start) as start from read.price_candles where market_id = m.market_id and span = k.span
    ) newest
  ) pruned
  where old.market_id = pruned.market_id and old.span = pruned.span and old.start <= pruned.until
`

function priceChanges({ marketId, row }: ShardEntry): RowChange<PriceCandle>[] {
  if (row.kind !== 'prices_updated') return []
  return SPANS.map((span) => {
    const stretch = { market_id: marketId, span, start: spanStart(span, row.at) }
    const apply = (before: PriceCandle | undefined) => withPrices(before, stretch, row)
    return { key: stretchKey(stretch), apply }
  })
}

function withPrices(
  before: PriceCandle | undefined,
  key: Pick<PriceCandle, 'market_id' | 'span' | 'start'>,
  { oracle_price, mark_price }: PricesUpdated,
): PriceCandle {
  const [oracle, mark] = [BigInt(oracle_price), BigInt(mark_price)]
  if (before === undefined) {
    return {
      ...{ ...key, oracle_open: oracle, oracle_high: oracle, oracle_low: oracle, oracle_close: oracle },
      ...{ mark_open: mark, mark_high: mark, mark_low: mark, mark_close: mark },
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
