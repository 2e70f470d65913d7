/** The open interest of a market over time: that of now less the changes since. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { ReadTableName } from '../../db/read-schema.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { toInterval, withGaps } from '../../domain/market-data/candle.ts'
import { INTERVALS, intervalStart, spanOf } from '../../domain/market-data/interval.ts'
import { windowUntilNow } from '../../domain/market-data/window.ts'
import { pageStart, storedCandles } from '../candles/query.ts'
import type { IntervalRange } from '../candles/range.ts'

/** Tables that `openInterestPage` reads. */
export const OPEN_INTEREST_TABLES = [
  'read.open_interest',
  'read.open_interest_changes',
  'read.price_candles',
] as const satisfies readonly ReadTableName[]

/** At the end of an interval, or now if it is running. */
export interface OpenInterestPoint {
  readonly start: number
  readonly steps: number
  /** Null before the first price. */
  readonly oraclePrice: bigint | null
}

export interface OpenInterestPage {
  /** Newest first, of every interval from the first mined position on. */
  readonly points: readonly OpenInterestPoint[]
  readonly hasMore: boolean
}

interface Change {
  readonly start: number
  readonly steps: number
}

/** One statement: the changes of the page's intervals, the open interest at its end, and the first change of all. */
async function changesIn(db: Db | Tx, marketId: number, { interval, limit, to }: IntervalRange) {
  const span = spanOf(interval)
  const later = windowUntilNow(to)
  const of = sql`from read.open_interest_changes where market_id = ${marketId} and span = ${span}`
  const { rows } = await sql<{ changes: Change[]; total: number; first: number | null }>`
    select
      (select coalesce(jsonb_agg(jsonb_build_object('start', start, 'steps', steps) order by start), '[]') ${of}
        and start >= ${to - limit * INTERVALS[interval]} and start < ${to}) as changes,
      (coalesce((select steps from read.open_interest where market_id = ${marketId}), 0) - coalesce((
        select sum(c.steps)
        from unnest(
          ${later.map((part) => part.span)}::bigint[], ${later.map((part) => part.from)}::bigint[], ${later.map((part) => part.to)}::bigint[]
        ) as part (of_span, from_start, to_start)
        join read.open_interest_changes c on c.market_id = ${marketId} and c.span = of_span
          and c.start >= from_start and c.start < to_start
      ), 0))::bigint as total,
      (select min(start) ${of}) as first
  `.execute(db)
  return rows[0] as { changes: Change[]; total: number; first: number | null }
}

export async function openInterestPage(
  db: Db | Tx,
  spec: MarketSpec,
  range: IntervalRange,
): Promise<OpenInterestPage> {
  const { interval, to } = range
  const { changes, total, first } = await changesIn(db, spec.marketId, range)
  const { from, earliest } = pageStart(range, first)
  const stored = await storedCandles(db, spec, { priceType: 'oracle', span: spanOf(interval), from, to })
  const candles = withGaps(toInterval(stored.rows, interval), { interval, from, to }, stored.previousClose)
  const prices = new Map(candles.map(({ start, close }) => [start, close]))
  const moved = new Map<number, number>()
  for (const { start, steps } of changes) {
    const of = intervalStart(interval, start)
    moved.set(of, (moved.get(of) ?? 0) + steps)
  }
  const points: OpenInterestPoint[] = []
  let steps = total
  for (let start = to - INTERVALS[interval]; start >= from; start -= INTERVALS[interval]) {
    points.push({ start, steps, oraclePrice: prices.get(start) ?? null })
    steps -= moved.get(start) ?? 0
  }
  return { points, hasMore: from > earliest }
}
