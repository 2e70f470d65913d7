/** Statistics of markets over the last day, from candles, so that the cost does not depend on the number of fills. */
import { type RawBuilder, sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { fundingColumn, type StoredFunding } from '../../db/funding.ts'
import { averagesColumn, type StoredAverages } from '../../db/price-averages.ts'
import type { ReadTableName } from '../../db/read-schema.ts'
import { TERMS_COLUMNS, type TermsColumns } from '../../db/terms.ts'
import type { CalendarName } from '../../domain/market/trading-calendar.ts'
import { intervalStart, SPANS } from '../../domain/market-data/interval.ts'
import { windowUntilNow } from '../../domain/market-data/window.ts'
import type { Millis } from '../../domain/units.ts'

export const DAY = 24 * 60 * 60_000

/** Tables of the read model that `marketDays` reads. */
export const DAY_TABLES = ['read.markets', 'read.candles'] as const satisfies readonly ReadTableName[]
/** Tables of the read model that `marketStats` reads. */
export const STATS_TABLES = [...DAY_TABLES, 'read.open_interest'] as const
/** Tables of the read model that `tickers` reads. */
export const TICKER_TABLES = [...DAY_TABLES, 'read.book_levels'] as const

/** The last 24 hours of a market, of its batches that were not voided. Prices in ticks; null without one. */
export interface DayColumns extends TermsColumns {
  readonly market_id: number
  readonly oracle_price: bigint | null
  readonly mark_price: bigint | null
  readonly steps: number
  readonly turnover: bigint
  readonly auctions: number
  readonly fills: number
  readonly high: number | null
  readonly low: number | null
  /** Price at the start of the day: of the last earlier batch, or otherwise of the day's first batch. */
  readonly open: number | null
  readonly last: number | null
}

export interface StatsRow extends DayColumns {
  readonly open_steps: number
  readonly calendar: CalendarName | null
  readonly impact_notional: bigint | null
  readonly funding: StoredFunding
  readonly averages: StoredAverages
}

export interface TickerRow extends DayColumns {
  readonly bid: Quote | null
  readonly ask: Quote | null
}

/** The best price of one side, in ticks, and its executable steps. */
interface Quote {
  readonly price: number
  readonly quantity: number
}

/** The first minute of the last 24 hours. */
export const dayStart = (now: Millis): Millis => intervalStart('1m', now - DAY)

const MINUTE_SPAN = SPANS[0]

const close = (order: RawBuilder<unknown>) => sql`
  select close from read.candles c where c.market_id = m.market_id and c.span = ${MINUTE_SPAN} ${order} limit 1
`

interface DaysQuery {
  readonly columns: RawBuilder<unknown>
  readonly joins: RawBuilder<unknown>
  /** All markets unless set. */
  readonly marketId?: number | undefined
}

function days<Row>(db: Db | Tx, now: Millis, { columns, joins, marketId }: DaysQuery) {
  const from = dayStart(now)
  const window = windowUntilNow(from)
  return sql<Row>`
    select m.market_id, r.oracle_price, r.mark_price, day.*, before.close as before, last.close as last,
      ${sql.join(TERMS_COLUMNS.map((column) => sql.ref(`m.${column}`)))}, ${columns}
    from markets m
    left join read.markets r on r.market_id = m.market_id
    ${joins}
    left join lateral (${close(sql`order by start desc`)}) last on true
    left join lateral (${close(sql`and start < ${from} order by start desc`)}) before on true
    cross join lateral (
      select coalesce(sum(steps), 0)::bigint as steps, coalesce(sum(turnover), 0) as turnover, coalesce(sum(auctions), 0)::bigint as auctions,
        coalesce(sum(fills), 0)::bigint as fills, max(high) as high, min(low) as low, (array_agg(open order by start))[1] as first
      from unnest(
        ${window.map(({ span }) => span)}::bigint[], ${window.map((part) => part.from)}::bigint[],
        ${window.map(({ to }) => to)}::bigint[]
      ) as part (of_span, from_start, to_start)
      join read.candles c on c.market_id = m.market_id and c.span = of_span and c.start >= from_start and c.start < to_start
    ) day
    where ${marketId === undefined ? sql`true` : sql`m.market_id = ${marketId}`}
    order by m.market_id
  `.execute(db)
}

const withOpen = <Row extends DayColumns>(
  row: Row & { before: number | null; first: number | null },
): Row => ({
  ...row,
  open: row.before ?? row.first,
})

/** Statistics of one market, or of all if `marketId` is left out. */
export async function marketStats(db: Db | Tx, now: Millis, marketId?: number): Promise<StatsRow[]> {
  const columns = sql`
    coalesce(o.steps, 0) as open_steps, m.calendar, m.impact_notional,
    ${sql.raw(fundingColumn('m.market_id'))} as funding, ${sql.raw(averagesColumn('m.market_id'))} as averages
  `
  const joins = sql`left join read.open_interest o on o.market_id = m.market_id`
  const { rows } = await days<StatsRow & { before: number | null; first: number | null }>(db, now, {
    columns,
    joins,
    marketId,
  })
  return rows.map((row) => withOpen<StatsRow>(row))
}

const best = (side: 'LONG' | 'SHORT', order: RawBuilder<unknown>) => sql`
  left join lateral (
    select jsonb_build_object('price', price, 'quantity', quantity) as quote from read.book_levels l
    where l.market_id = m.market_id and side = ${side} and quantity > 0 order by ${order} limit 1
  ) ${sql.id(side)} on true
`

export async function tickers(db: Db | Tx, now: Millis): Promise<TickerRow[]> {
  const columns = sql`${sql.ref('LONG.quote')} as bid, ${sql.ref('SHORT.quote')} as ask`
  const joins = sql`${best('LONG', sql`price desc`)} ${best('SHORT', sql`price`)}`
  const { rows } = await days<TickerRow & { before: number | null; first: number | null }>(db, now, {
    columns,
    joins,
  })
  return rows.map((row) => withOpen<TickerRow>(row))
}
