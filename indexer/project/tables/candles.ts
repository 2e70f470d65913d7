/**
 * `read.candles`: a market's clearing prices at every stored length. The newest batches extend candles; any other
 * change recomputes them, so that voided batches leave no trace.
 */
import { type RawBuilder, type Selectable, sql } from 'kysely'
import type { Tx } from '../../../db/client.ts'
import type { ReadCandlesTable } from '../../../db/read-market-data-schema.ts'
import { type Candle, candleOfBatch, joined } from '../../../domain/market-data/candle.ts'
import { SPANS, type Span, spanStart } from '../../../domain/market-data/interval.ts'
import { tableOf, type WriteClause } from '../read-table.ts'
import { RowChanges } from '../row-change.ts'
import { loadStretches, stretchKey } from './spans.ts'

type StoredCandle = Selectable<ReadCandlesTable>

const CANDLES = tableOf<StoredCandle>({
  table: 'read.candles',
  key: ['market_id', 'span', 'start'],
  columns: {
    market_id: 'integer',
    span: 'bigint',
    start: 'bigint',
    open: 'bigint',
    high: 'bigint',
    low: 'bigint',
    close: 'bigint',
    steps: 'bigint',
    turnover: 'numeric',
    auctions: 'bigint',
    fills: 'bigint',
  },
})

/** A batch that has cleared. */
export interface ClearedBatch {
  readonly market_id: number
  readonly batch_id: number
  readonly as_of: number
  readonly price: number
  /** Steps of one side, and fills of both. */
  readonly filled: number
  readonly fills: number
}

/**
 * Candles extended by each market's batches. `computed`: markets to recompute from stored batches, because a batch is
 * voided (null) or does not follow all stored batches.
 */
export async function extendedCandles(
  tx: Tx,
  markets: ReadonlyMap<number, readonly ClearedBatch[] | null>,
): Promise<{ readonly clause: WriteClause; readonly computed: readonly number[] }> {
  const batches = [...markets.values()].flatMap((own) => own ?? [])
  const voided = [...markets].flatMap(([marketId, own]) => (own === null ? [marketId] : []))
  if (batches.length === 0) return { clause: CANDLES.replace([]), computed: voided }
  const places = batches.flatMap((batch) => stretchesOf(batch).map(stretchKey))
  const [newest, stored] = await Promise.all([
    readNewest(tx, [...new Set(batches.map(({ market_id }) => market_id))]),
    loadStretches<StoredCandle>(tx, 'read.candles', [...new Set(places)]),
  ])
  // The first and last price of a candle would otherwise depend on where chunks end.
  const unordered = newest.filter((last) => !isAscending(last, markets.get(last.market_id) ?? []))
  const computed = [...voided, ...unordered.map(({ market_id }) => market_id)]
  const candles = new RowChanges(stored.map((candle) => [stretchKey(candle), candle] as const))
  for (const batch of batches) {
    if (batch.filled === 0 || computed.includes(batch.market_id)) continue
    const { as_of: at, price, filled: steps, fills } = batch
    const added = candleOfBatch({ at, price, steps, fills })
    for (const place of stretchesOf(batch)) {
      const apply = (before: Candle<number> | undefined) => ({
        ...(before === undefined ? added : joined(before, added)),
        ...place,
      })
      candles.apply({ key: stretchKey(place), apply })
    }
  }
  return { clause: CANDLES.replace(candles.changed()), computed }
}

const stretchesOf = ({ market_id, as_of }: ClearedBatch) =>
  SPANS.map((span) => ({ market_id, span, start: spanStart(span, as_of) }))

interface NewestBatch {
  readonly market_id: number
  readonly batch_id: number
  readonly minute: number
}

function isAscending(newest: NewestBatch, batches: readonly ClearedBatch[]): boolean {
  const cleared = batches.map(({ batch_id, as_of }) => ({ batch_id, minute: spanStart(SPANS[0], as_of) }))
  const all = [newest, ...cleared]
  return cleared.every((each, at) => {
    const before = all[at] as Omit<NewestBatch, 'market_id'>
    return before.batch_id < each.batch_id && before.minute <= each.minute
  })
}

/** The newest stored batch of each market, and its newest minute with a candle; -1 for none. */
async function readNewest(tx: Tx, markets: readonly number[]): Promise<NewestBatch[]> {
  const { rows } = await sql<NewestBatch>`
    select m.market_id, coalesce((select max(batch_id) from read.batches where market_id = m.market_id), -1) as batch_id,
      coalesce((select max(start) from read.candles where market_id = m.market_id and span = ${SPANS[0]}), -1) as minute
    from unnest(${markets}::integer[]) as m (market_id)
  `.execute(tx)
  return rows
}

const COLUMNS = sql`start, open, high, low, close, steps, turnover, auctions, fills`

const MINUTE_SPAN = SPANS[0]

/** The candles of the touched minutes, from the batches as the chunk has left them. */
const minutes = (marketId: number) => sql`
  select touched.start, (array_agg(price order by batch_id))[1] as open, max(price) as high, min(price) as low,
    (array_agg(price order by batch_id desc))[1] as close, sum(filled)::bigint as steps, sum(price::numeric * filled) as turnover,
    count(*) as auctions, sum(fills)::bigint as fills
  from touched join read.batches b on b.market_id = ${marketId} and b.filled > 0
    and b.as_of >= touched.start and b.as_of < touched.start + ${MINUTE_SPAN}::bigint
  group by touched.start
`

const level = (span: Span) => sql.id(`level_${span}`)

/** The candles of the touched rows of `span`, from those of the length before: as computed here where the chunk touches them, else as stored. */
const folded = (marketId: number, span: Span, finer: Span) => sql`
  select bucket as start, (array_agg(open order by start))[1] as open, max(high) as high, min(low) as low,
    (array_agg(close order by start desc))[1] as close, sum(steps)::bigint as steps, sum(turnover) as turnover,
    sum(auctions)::bigint as auctions, sum(fills)::bigint as fills
  from (
    select start - start % ${span}::bigint as bucket, ${COLUMNS} from ${level(finer)}
    union all
    select bucket, ${COLUMNS}
    from (select distinct start - start % ${span}::bigint as bucket from touched) buckets
    join read.candles c on c.market_id = ${marketId} and c.span = ${finer}
      and c.start >= bucket and c.start < bucket + ${span}::bigint
      and c.start not in (select start - start % ${finer}::bigint from touched)
  ) parts
  group by bucket
`

/** The statements that compute the candles of the minutes, which are times at their start, and the longer ones that contain them. */
export function candlesOf(marketId: number, touched: readonly number[]): RawBuilder<unknown>[] {
  const levels = SPANS.map((span, at) => {
    const finer = SPANS[at - 1]
    const rows = finer === undefined ? minutes(marketId) : folded(marketId, span, finer)
    return sql`${level(span)} as materialized (${rows})`
  })
  const all = sql.join(
    SPANS.map((span) => sql`select ${span}::bigint as span, ${COLUMNS} from ${level(span)}`),
    sql` union all `,
  )
  const write = sql`
    with touched as (select start from unnest(${touched}::bigint[]) as t (start)),
    ${sql.join(levels)},
    computed as (${all}),
    emptied as (
      delete from read.candles stored
      using (select distinct span, start - start % span as start from touched, unnest(${SPANS}::bigint[]) as s (span)) gone
      where stored.market_id = ${marketId} and stored.span = gone.span and stored.start = gone.start
        and not exists (select from computed where computed.span = gone.span and computed.start = gone.start)
    )
    insert into read.candles (market_id, span, ${COLUMNS})
    select ${marketId}, span, ${COLUMNS} from computed
    on conflict (market_id, span, start) do update set
      open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close, steps = excluded.steps,
      turnover = excluded.turnover, auctions = excluded.auctions, fills = excluded.fills
  `
  // A plan for any minutes expects many batches in each and reads whole tables; planning for these takes about a millisecond.
  return [
    sql`set local plan_cache_mode = 'force_custom_plan'`,
    write,
    sql`set local plan_cache_mode to default`,
  ]
}
