/** Candles in the read model, from rows of the longest stored length that divides the interval. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { ReadTableName } from '../../db/read-schema.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import { type MarketSpec, priceOf } from '../../domain/market/market.ts'
import { type Candle, type ShownCandle, toInterval, withGaps } from '../../domain/market-data/candle.ts'
import { INTERVALS, intervalStart, spanOf } from '../../domain/market-data/interval.ts'
import { type Millis, maxOf, type Ticks } from '../../domain/units.ts'
import type { IntervalRange } from './range.ts'

export type PriceType = 'last' | 'mark' | 'oracle'

/** Tables behind a page of candles of either price type: `horizonOf` reads batches and prices. */
export const CANDLE_TABLES = [
  'read.candles',
  'read.batches',
  'read.price_candles',
] as const satisfies readonly ReadTableName[]

export interface CandleRange extends IntervalRange {
  readonly priceType: PriceType
}

export interface CandlePage {
  /** Newest first, for every interval of the page except those before the first price. */
  readonly candles: readonly ShownCandle[]
  /** Whether there are intervals before the page. */
  readonly hasMore: boolean
  /** Candles up to this time are final. */
  readonly horizon: number
}

/** Largest delay of a journal row behind a row with a later time. */
const DISORDER_MS = 60_000

/**
 * As-of time from which candles are not final. It is read before the candles, so that a change between the two
 * statements makes an answer less final than it is, never more.
 */
const horizonOf = (marketId: number) => sql<number>`
  select least(
    coalesce((select min(as_of) from read.batches where market_id = ${marketId} and not is_final), 'infinity'::float8),
    coalesce(greatest(
      (select max(as_of) from read.batches where market_id = ${marketId}),
      -- A price as new as the read model's batches: no older batch can follow.
      (select max(start) from read.price_candles where market_id = ${marketId} and span = ${INTERVALS['1m']} and (
        select count(distinct seq) = 1 from read.places
        where shard = ${marketShard(marketId)} and projection in ('batches', 'price_candles')
      ))
    ) - ${DISORDER_MS}, 0)
  )
`

interface Extent {
  readonly horizon: number
  readonly first: number | null
}

async function extentOf(
  db: Db | Tx,
  table: ReturnType<typeof sql.table>,
  marketId: number,
  span: number,
): Promise<Extent> {
  const { rows } = await sql<Extent>`
    select (${horizonOf(marketId)})::float8 as horizon,
      (select min(start) from ${table} where market_id = ${marketId} and span = ${span}) as first
  `.execute(db)
  return rows[0] as Extent
}

/**
 * The newest page of the range. The horizon is read before the rows, so that the rows contain everything that it
 * declares final.
 */
export async function candlePage(db: Db | Tx, spec: MarketSpec, range: CandleRange): Promise<CandlePage> {
  const { interval, priceType, to } = range
  const { marketId } = spec
  const span = spanOf(interval)
  const { horizon, first } = await extentOf(db, tableOf(priceType), marketId, span)
  const { from, earliest } = pageStart(range, first)
  const { rows, previousClose } = await storedCandles(db, spec, { priceType, span, from, to })
  const candles = withGaps(toInterval(rows, interval), { interval, from, to }, previousClose)
  return { candles: candles.reverse(), hasMore: from > earliest, horizon }
}

/**
 * Start of the newest page (`from`) and of the whole list (`earliest`). `first`: time of the first value; null if there
 * is no value.
 */
export function pageStart(
  { interval, limit, to, from }: IntervalRange,
  first: number | null,
): { readonly from: Millis; readonly earliest: Millis } {
  if (first === null) return { from: to, earliest: to }
  const begin = intervalStart(interval, first)
  const earliest = maxOf(from ?? begin, begin)
  return { from: maxOf((to - limit * INTERVALS[interval]) as Millis, earliest), earliest }
}

const tableOf = (priceType: PriceType) =>
  sql.table(priceType === 'last' ? 'read.candles' : 'read.price_candles')

interface StoredRange {
  readonly priceType: PriceType
  readonly span: number
  readonly from: number
  readonly to: number
}

/** Rows in the range, and the last row before it, in one statement. */
export async function storedCandles(
  db: Db | Tx,
  spec: MarketSpec,
  { priceType, span, from, to }: StoredRange,
): Promise<{ readonly rows: readonly Candle[]; readonly previousClose: bigint | null }> {
  const of = sql`${tableOf(priceType)} where market_id = ${spec.marketId} and span = ${span}`
  const columns = priceType === 'last' ? LAST : published(priceType)
  const { rows } = await sql<Candle>`
    (select ${columns} from ${of} and start < ${from} order by start desc limit 1)
    union all
    (select ${columns} from ${of} and start >= ${from} and start < ${to})
    order by start
  `.execute(db)
  const toWei = (price: bigint): bigint =>
    priceType === 'last' ? priceOf(spec, Number(price) as Ticks) : price
  const candles = rows.map(
    (row): Candle => ({
      ...row,
      ...{ open: toWei(row.open), high: toWei(row.high), low: toWei(row.low), close: toWei(row.close) },
    }),
  )
  const [before] = candles
  return before !== undefined && before.start < from
    ? { rows: candles.slice(1), previousClose: before.close }
    : { rows: candles, previousClose: null }
}

const LAST = sql`start, open::numeric, high::numeric, low::numeric, close::numeric, steps, turnover, auctions, fills`

const published = (of: 'mark' | 'oracle') => sql`
  start, ${sql.ref(`${of}_open`)} as open, ${sql.ref(`${of}_high`)} as high, ${sql.ref(`${of}_low`)} as low,
  ${sql.ref(`${of}_close`)} as close, 0::bigint as steps, 0::numeric as turnover, 0::bigint as auctions, 0::bigint as fills
`
