/** Fills in the read model: of an account, of an order, of a market. */
import { type RawBuilder, sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { Side } from '../../domain/orders/order.ts'
import { BATCH_TABLES, firstBatchAt } from '../auctions/query.ts'
import { anyNumber, isWithin, type Page } from '../wire/list-query.ts'
import type { TimeRange } from '../wire/times.ts'
import type { FillRow } from './view.ts'

/** Tables that the queries of fills read. */
export const FILL_TABLES = ['read.fills'] as const

/**
 * Fills of no batch that this database has cleared, such as those that settled after the backup from which it was
 * restored. Their time is that of their block. Two partial indexes have this condition.
 */
export const ONLY_ON_CHAIN = sql`fill_id like '%-c%'`

/** The range is of the time of the auction. */
export interface FillFilter extends Page, Partial<TimeRange> {
  readonly marketId?: number | undefined
  readonly side?: Side | undefined
}

export async function fillsOfUser(db: Db | Tx, userId: number, filter: FillFilter): Promise<FillRow[]> {
  let query = selectFills(db)
    .where('user_id', '=', userId)
    .where(isWithin(sql.ref('matched_at'), filter))
  if (filter.marketId !== undefined) query = query.where('market_id', '=', anyNumber(filter.marketId))
  if (filter.side !== undefined) query = query.where('side', '=', filter.side)
  return newestFills(query, filter).execute()
}

export const fillsOfOrder = (
  db: Db | Tx,
  orderId: string,
  page: Page & Partial<TimeRange>,
): Promise<FillRow[]> =>
  newestFills(
    selectFills(db)
      .where('order_id', '=', orderId)
      .where(isWithin(sql.ref('matched_at'), page)),
    page,
  ).execute()

type FillQuery = ReturnType<typeof selectFills>
const selectFills = (db: Db | Tx) => db.selectFrom('read.fills').selectAll()

function newestFills(query: FillQuery, { cursor, limit }: Page): FillQuery {
  const after =
    cursor === null
      ? query
      : query.where(sql<boolean>`(matched_at, fill_id) < (${cursor.at}::bigint, ${cursor.id})`)
  return after
    .orderBy('matched_at', 'desc')
    .orderBy('fill_id', 'desc')
    .limit(limit + 1)
}

/** Tables that `fillsOfMarket` reads if it has a range of times. */
export const TIMED_FILL_TABLES = [...FILL_TABLES, ...BATCH_TABLES] as const

export interface PublicFillFilter extends TimeRange {
  readonly side?: Side | undefined
  readonly limit: number
  /** Position of the last fill of the previous page. */
  readonly after: PublicPlace | null
}

/** The position of a fill among all fills of its market. */
export interface PublicPlace {
  readonly batch: number
  readonly part: number
  readonly place: number
}

/** The batch of the market's first fill of the chain in the range of times. */
const firstOfChain = (marketId: number, from: number): RawBuilder<number> => sql`(
  select batch_id from read.fills where ${ONLY_ON_CHAIN} and market_id = ${marketId} and matched_at >= ${from}
  order by matched_at, batch_id limit 1
)`

/** The batch of the market's last fill of the chain before the time. */
const lastOfChain = (marketId: number, to: number): RawBuilder<number> => sql`(
  select batch_id from read.fills where ${ONLY_ON_CHAIN} and market_id = ${marketId} and matched_at < ${to}
  order by matched_at desc, batch_id desc limit 1
)`

/**
 * Bounds of `batch_id`, which the index of the pages has, for a range of times. Parts settle in the order of their
 * batches, so that the times of the chain's fills ascend with the batches too.
 */
const hasBatchNear = (marketId: number, { from, to }: TimeRange): RawBuilder<boolean> => sql`true
  ${from === null ? sql`` : sql`and batch_id >= least(${firstBatchAt(marketId, from)}, ${firstOfChain(marketId, from)})`}
  ${to === null ? sql`` : sql`and batch_id <= greatest(${firstBatchAt(marketId, to)} - 1, ${lastOfChain(marketId, to)})`}
`

/** A case, so that the planner does not expect too few rows to read them in the order of the page. */
const isMatchedWithin = (times: TimeRange): RawBuilder<boolean> =>
  sql`case when ${isWithin(sql.ref('matched_at'), times)} then true else false end`

/** Newest batch first; one row more than `limit` if there is a next page. */
export async function fillsOfMarket(
  db: Db | Tx,
  marketId: number,
  { side, limit, after, ...times }: PublicFillFilter,
): Promise<FillRow[]> {
  let query = selectFills(db)
    .where('market_id', '=', marketId)
    .where(isMatchedWithin(times))
    .where(hasBatchNear(marketId, times))
  if (side !== undefined) query = query.where('side', '=', side)
  if (after !== null) {
    const { batch, part, place } = after
    query = query.where(
      sql<boolean>`(batch_id, part, place) < (${batch}::bigint, ${part}::bigint, ${place}::bigint)`,
    )
  }
  return query
    .orderBy('batch_id', 'desc')
    .orderBy('part', 'desc')
    .orderBy('place', 'desc')
    .limit(limit + 1)
    .execute()
}

/** Number of fills of an order at each stage. */
export async function fillStages(db: Db | Tx, orderId: string): Promise<Map<FillRow['status'], number>> {
  const rows = await db
    .selectFrom('read.fills')
    .select(['status', sql<number>`count(*)`.as('fills')])
    .where('order_id', '=', orderId)
    .groupBy('status')
    .execute()
  return new Map(rows.map(({ status, fills }) => [status, Number(fills)]))
}
