/** Fills in the read model: of an account, of an order, of a market. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { Side } from '../../domain/orders/order.ts'
import { BATCH_TABLES, isBatchIn } from '../auctions/query.ts'
import { anyNumber, isWithin, type Page } from '../wire/list-query.ts'
import type { TimeRange } from '../wire/times.ts'
import type { FillRow } from './view.ts'

/** Tables that the queries of fills read. */
export const FILL_TABLES = ['read.fills'] as const

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

/** Newest batch first; one row more than `limit` if there is a next page. */
export async function fillsOfMarket(
  db: Db | Tx,
  marketId: number,
  { side, limit, after, ...times }: PublicFillFilter,
): Promise<FillRow[]> {
  let query = selectFills(db)
    .where('market_id', '=', marketId)
    .where(isBatchIn(sql.ref('batch_id'), marketId, times))
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
