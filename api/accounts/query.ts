/** Users and balances in the read model. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { BalanceParts } from './view.ts'

export const userByAddress = (db: Db | Tx, address: string) =>
  db.selectFrom('read.users').selectAll().where('address', '=', address.toLowerCase()).executeTakeFirst()

/** One statement, so one snapshot. All amounts are 0 for an account that never deposited. */
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
