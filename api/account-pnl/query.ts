/** Realized profits of an account in the read model. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { INTERVALS } from '../../domain/market-data/interval.ts'
import type { IntervalRange } from '../candles/range.ts'
import { anyNumber } from '../wire/list-query.ts'

/** Tables that `profitsOfUser` reads. */
export const PROFIT_TABLES = ['read.realized_profits'] as const

/** Profit of one interval, summed over the account's markets. */
export interface ProfitRow {
  readonly start: number
  readonly realized_pnl: bigint
  readonly fees: bigint
  readonly funding: bigint
}

export interface ProfitFilter extends IntervalRange {
  readonly marketId?: number | undefined
}

/** Newest first, without intervals in which nothing was realized; one row more than `limit` if there is a next page. */
export function profitsOfUser(
  db: Db | Tx,
  userId: number,
  { interval, from, to, limit, marketId }: ProfitFilter,
): Promise<ProfitRow[]> {
  let query = db
    .selectFrom('read.realized_profits')
    .select(['start', sql<bigint>`sum(realized_pnl)`.as('realized_pnl')])
    .select([sql<bigint>`sum(fees)`.as('fees'), sql<bigint>`sum(funding)`.as('funding')])
    .where('user_id', '=', userId)
    .where('span', '=', anyNumber(INTERVALS[interval]))
    .where('start', '<', anyNumber(to))
  if (from !== null) query = query.where('start', '>=', anyNumber(from))
  if (marketId !== undefined) query = query.where('market_id', '=', anyNumber(marketId))
  return query
    .groupBy('start')
    .orderBy('start', 'desc')
    .limit(limit + 1)
    .execute()
}
