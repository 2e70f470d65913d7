/** The final days of a market's history, and the rows of its files. */
import { type Selectable, sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { FileKey } from '../../db/history-files.ts'
import type { ReadCandlesTable } from '../../db/read-market-data-schema.ts'
import type {
  ReadBatchesTable,
  ReadFillsTable,
  ReadFundingRatesTable,
  ReadTableName,
} from '../../db/read-schema.ts'
import type { StoredEnd } from '../../domain/journal/ending-rows.ts'
import { INTERVALS } from '../../domain/market-data/interval.ts'
import { ONLY_ON_CHAIN } from '../fills/query.ts'
import { DAY } from '../wire/days.ts'

/** Tables that the queries of the history read. */
export const HISTORY_TABLES = [
  ...(['read.batches', 'read.candles', 'read.fills', 'read.funding_rates', 'read.price_candles'] as const),
] as const satisfies readonly ReadTableName[]

/** The projections of these tables. */
const PROJECTIONS = ['batches', 'orders', 'funding_rates', 'price_candles']

// ---------------------------------------------------------------------- days

interface ProgressRow {
  readonly market_id: number
  readonly ended: StoredEnd | null
  /** Time of the first batch, published price, funding rate or fill of the chain; null if there is none. */
  readonly first_at: number | null
  /** Time of the oldest batch or fill of the chain that can still change; null if there is none. */
  readonly open_at: number | null
  /** Time of the newest batch or published price. */
  readonly reached_at: number | null
  /** Whether all projections of the market have reached the same row of its journal. */
  readonly is_level: boolean
  /** Whether the reached row is the last row. */
  readonly is_at_head: boolean
  /** Time up to which the chain was read. */
  readonly chain_at: number
  /** Start of the newest day with a built file; null if no file was built. */
  readonly built_day: number | null
}

/** The days of a market's history. */
export interface HistoryDays {
  readonly marketId: number
  /** Start of the first day; null if nothing has happened. */
  readonly first: number | null
  /** Start of the last day of an ended market; null while it has not ended. */
  readonly last: number | null
  /** Days that end at this time or before are final. */
  readonly finalUntil: number
}

const startOfDayAt = (at: number): number => at - (at % DAY)

/** Journal rows are projected in their order, and times in it go back by less than the grace. A market without further rows is complete as it stands. */
function daysOf(row: ProgressRow, now: number, graceMs: number): HistoryDays {
  const { open_at, reached_at, is_level, is_at_head, chain_at, built_day } = row
  const projected = is_at_head ? now : (reached_at ?? 0)
  const complete = is_level ? Math.min(now, chain_at, projected) - graceMs : 0
  return {
    marketId: row.market_id,
    first: row.first_at === null ? null : startOfDayAt(row.first_at),
    last: row.ended === null ? null : startOfDayAt(row.ended.ended_at),
    // A final day stays final, also while a projection has stopped or the chain cannot be read.
    finalUntil: Math.max(
      Math.min(complete, open_at ?? Number.POSITIVE_INFINITY),
      built_day === null ? 0 : built_day + DAY,
    ),
  }
}

export interface Finality {
  readonly now: number
  readonly graceMs: number
}

/**
 * The days of one market, or of all markets by number, by a few index look-ups per market. Blocks become final in order: fills
 * of the chain that are older than the newest confirmed fill do not change.
 */
export async function historyDays(
  db: Db | Tx,
  { now, graceMs }: Finality,
  marketId?: number,
): Promise<HistoryDays[]> {
  const { rows } = await sql<ProgressRow>`
    select m.market_id, m.ended,
      least(
        (select as_of from read.batches where market_id = m.market_id order by as_of limit 1),
        (select start from read.price_candles where market_id = m.market_id and span = ${DAY} order by start limit 1),
        (select as_of from read.funding_rates where market_id = m.market_id and is_mined order by as_of limit 1),
        (select matched_at from read.fills where market_id = m.market_id and ${ONLY_ON_CHAIN} order by matched_at limit 1)
      ) as first_at,
      least(
        (select as_of from read.batches where market_id = m.market_id and not is_final order by as_of limit 1),
        (
          select matched_at from read.fills where market_id = m.market_id and ${ONLY_ON_CHAIN} and status <> 'CONFIRMED'
            and matched_at >= coalesce(
              (
                select matched_at from read.fills where market_id = m.market_id and ${ONLY_ON_CHAIN} and status = 'CONFIRMED'
                order by matched_at desc limit 1
              ),
              0
            )
          order by matched_at limit 1
        )
      ) as open_at,
      greatest(
        (select as_of from read.batches where market_id = m.market_id order by as_of desc limit 1),
        (
          select start from read.price_candles where market_id = m.market_id and span = ${INTERVALS['1m']}
          order by start desc limit 1
        )
      ) as reached_at,
      (select max(day) from history_files where market_id = m.market_id) as built_day,
      p.is_level, p.is_at_head, coalesce((select completed_at from chain_progress limit 1), 0) as chain_at
    from markets m
    join shards s on s.shard = 'm' || m.market_id
    cross join lateral (
      select count(distinct seq) = 1 and count(*) = ${PROJECTIONS.length}::bigint as is_level,
        coalesce(min(seq) >= s.head, false) as is_at_head
      from read.places where shard = s.shard and epoch = s.epoch and fill_to is null and projection = any(${PROJECTIONS})
    ) p
    where ${marketId === undefined ? sql`true` : sql`m.market_id = ${marketId}`}
    order by m.market_id
  `.execute(db)
  return rows.map((row) => daysOf(row, now, graceMs))
}

// ---------------------------------------------------------------------- rows of a file

export interface RowPage<Row> {
  readonly limit: number
  /** The last row of the page before. */
  readonly after: Row | null
}

export type HistoryFill = Pick<
  Selectable<ReadFillsTable>,
  | 'market_id'
  | 'batch_id'
  | 'part'
  | 'place'
  | 'side'
  | 'forced'
  | 'price'
  | 'steps'
  | 'taker_steps'
  | 'tx_hash'
  | 'block'
  | 'matched_at'
>

/**
 * Confirmed fills by batch, part and place. Fills known only from the chain widen the range of batches, because their
 * batch has no row or an auction on the day before.
 */
export async function fillsOfDay(
  db: Db | Tx,
  { marketId, day }: FileKey,
  { limit, after }: RowPage<HistoryFill>,
): Promise<HistoryFill[]> {
  const isOfChain = sql`market_id = ${marketId} and ${ONLY_ON_CHAIN} and matched_at >= ${day} and matched_at < ${day + DAY}`
  // One lower bound: with a second one, Postgres starts each page at the first batch of the day.
  const from =
    after === null
      ? sql`batch_id >= days.first`
      : sql`(batch_id, part, place) > (${after.batch_id}::bigint, ${after.part}::bigint, ${after.place}::bigint)`
  const { rows } = await sql<HistoryFill>`
    with days as (
      select
        least(
          (select batch_id from read.batches where market_id = ${marketId} and as_of >= ${day} order by as_of, batch_id limit 1),
          (select batch_id from read.fills where ${isOfChain} order by matched_at, batch_id limit 1)
        ) as first,
        greatest(
          (
            select batch_id from read.batches where market_id = ${marketId} and as_of < ${day + DAY}
            order by as_of desc, batch_id desc limit 1
          ),
          (select batch_id from read.fills where ${isOfChain} order by matched_at desc, batch_id desc limit 1)
        ) as last
    )
    select f.market_id, f.batch_id, f.part, f.place, f.side, f.forced, f.price, f.steps, f.taker_steps, f.tx_hash, f.block, f.matched_at
    from days
    cross join lateral (
      select * from read.fills
      where market_id = ${marketId} and ${from} and batch_id <= days.last and status = 'CONFIRMED'
        and matched_at >= ${day} and matched_at < ${day + DAY}
      order by batch_id, part, place limit ${limit}
    ) f
  `.execute(db)
  return rows
}

export type HistoryBatch = Selectable<ReadBatchesTable>

export async function batchesOfDay(
  db: Db | Tx,
  { marketId, day }: FileKey,
  { limit, after }: RowPage<HistoryBatch>,
): Promise<HistoryBatch[]> {
  const { rows } = await sql<HistoryBatch>`
    select * from read.batches
    where market_id = ${marketId} and as_of >= ${after?.as_of ?? day} and as_of < ${day + DAY}
      ${after === null ? sql`` : sql`and (as_of, batch_id) > (${after.as_of}::bigint, ${after.batch_id}::bigint)`}
    order by as_of, batch_id limit ${limit}
  `.execute(db)
  return rows
}

export type HistoryCandle = Selectable<ReadCandlesTable>

/** Minute candles of clearing prices; candles of published prices are not kept for good. */
export async function candlesOfDay(
  db: Db | Tx,
  { marketId, day }: FileKey,
  { limit, after }: RowPage<HistoryCandle>,
): Promise<HistoryCandle[]> {
  const { rows } = await sql<HistoryCandle>`
    select * from read.candles
    where market_id = ${marketId} and span = ${INTERVALS['1m']} and start > ${after?.start ?? day - 1} and start < ${day + DAY}
    order by start limit ${limit}
  `.execute(db)
  return rows
}

export type HistoryFundingRate = Selectable<ReadFundingRatesTable>

export async function fundingRatesOfDay(
  db: Db | Tx,
  { marketId, day }: FileKey,
  { limit, after }: RowPage<HistoryFundingRate>,
): Promise<HistoryFundingRate[]> {
  const { rows } = await sql<HistoryFundingRate>`
    select * from read.funding_rates
    where market_id = ${marketId} and is_mined and as_of >= ${after?.as_of ?? day} and as_of < ${day + DAY}
      ${after === null ? sql`` : sql`and (as_of, action_id) > (${after.as_of}::bigint, ${after.action_id}::bigint)`}
    order by as_of, action_id limit ${limit}
  `.execute(db)
  return rows
}
