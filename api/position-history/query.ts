/** Positions of an account from their opening on, in the read model. */
import { type Selectable, sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { ReadPositionStatesTable } from '../../db/read-schema.ts'
import { anyNumber, isWithin } from '../wire/list-query.ts'
import type { TimeRange } from '../wire/times.ts'

/** Tables that `closedPositions` reads. */
export const CLOSED_TABLES = ['read.position_states'] as const
/** Tables that `openedPositions` reads. */
export const OPENED_TABLES = ['read.position_states', 'read.positions'] as const

/** The newest state of a position. */
export type PositionRow = Selectable<ReadPositionStatesTable>
export type ClosedPositionRow = PositionRow & { readonly closed_at: number }

/** Place of a position among its account's closed positions. */
export interface ClosedPlace {
  readonly closedAt: number
  readonly marketId: number
  readonly number: number
}

/** The range is of the time of the end. */
export interface PositionHistoryFilter extends TimeRange {
  readonly marketId?: number | undefined
  readonly limit: number
  readonly after: ClosedPlace | null
}

/** Last closed first; one row more than `limit` if there is a next page. */
export async function closedPositions(
  db: Db | Tx,
  userId: number,
  { marketId, limit, after, ...range }: PositionHistoryFilter,
): Promise<ClosedPositionRow[]> {
  let query = db
    .selectFrom('read.position_states')
    .selectAll()
    .where('user_id', '=', userId)
    .where('closed_at', 'is not', null)
    .where(isWithin(sql.ref('closed_at'), range))
  if (marketId !== undefined) query = query.where('market_id', '=', anyNumber(marketId))
  if (after !== null) {
    const { closedAt, marketId: market, number } = after
    query = query.where(
      sql<boolean>`(closed_at, market_id, number) < (${closedAt}::bigint, ${market}::bigint, ${number}::bigint)`,
    )
  }
  const rows = await query
    .orderBy('closed_at', 'desc')
    .orderBy('market_id', 'desc')
    .orderBy('number', 'desc')
    .limit(limit + 1)
    .execute()
  return rows as ClosedPositionRow[]
}

/** The open positions, by market: at most one in each. */
export async function openedPositions(
  db: Db | Tx,
  userId: number,
  marketId?: number,
): Promise<PositionRow[]> {
  const { rows } = await sql<PositionRow>`
    select s.* from read.positions p
    cross join lateral (
      select * from read.position_states where user_id = p.user_id and market_id = p.market_id order by number desc limit 1
    ) s
    where p.user_id = ${userId} and p.size <> 0 and s.closed_at is null
      and ${marketId === undefined ? sql`true` : sql`p.market_id = ${marketId}::bigint`}
    order by p.market_id
  `.execute(db)
  return rows
}
