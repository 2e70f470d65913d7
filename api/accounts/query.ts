/** What belongs to one account in the read model. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { anyNumber } from '../orders/query.ts'
import type { BalanceParts } from './view.ts'

export const userByAddress = (db: Db | Tx, address: string) =>
  db.selectFrom('read.users').selectAll().where('address', '=', address.toLowerCase()).executeTakeFirst()

/** Positions that are not flat, or about to be not. */
export function positionsOfUser(db: Db | Tx, userId: number, marketId?: number) {
  const query = db
    .selectFrom('read.positions as p')
    .innerJoin('read.markets as m', 'm.market_id', 'p.market_id')
    .selectAll('p')
    .select(['m.oracle_price', 'm.mark_price'])
    .where('p.user_id', '=', userId)
    .where((where) => where.or([where('p.size', '!=', 0), where('p.pending', '!=', 0)]))
    .orderBy('p.market_id')
  return (marketId === undefined ? query : query.where('p.market_id', '=', anyNumber(marketId))).execute()
}

/** One statement, so one snapshot. An account that never deposited has zeros. */
export async function balanceOfUser(db: Db | Tx, userId: number): Promise<BalanceParts> {
  const { rows } = await sql<BalanceParts>`
    select
      coalesce(b.free, 0) as free,
      coalesce(b.reserved, 0) as reserved,
      coalesce(b.pending_withdrawal, 0) as "pendingWithdrawal",
      coalesce((select sum(folded_margin) from read.positions where user_id = ${userId}), 0) as "positionMargin"
    from (select 1) one left join read.balances b on b.user_id = ${userId}
  `.execute(db)
  return rows[0] as BalanceParts
}
