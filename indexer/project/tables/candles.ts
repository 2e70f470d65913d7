/**
 * `read.candles`: the clearing prices of a market, at every stored length. A candle is computed from the batches of its minute, and each
 * longer one from the candles of the length before, so that a voided batch leaves no trace in it.
 */
import { type RawBuilder, sql } from 'kysely'
import { SPANS, type Span } from '../../../domain/market-data/interval.ts'

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
