/** Users and balances in the read model. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { marginsColumn, type StoredMargin, toMargin } from '../../db/funding.ts'
import type { BalanceParts } from './view.ts'

export const userByAddress = (db: Db | Tx, address: string) =>
  db.selectFrom('read.users').selectAll().where('address', '=', address.toLowerCase()).executeTakeFirst()

/** One statement, so one snapshot. All amounts are 0 for an account that never deposited. */
export async function balanceOfUser(db: Db | Tx, userId: number): Promise<BalanceParts> {
  const { rows } = await sql<Omit<BalanceParts, 'positionMargin'> & { margins: StoredMargin[] }>`
    select
      coalesce(b.free, 0) as free,
      coalesce(b.reserved, 0) as reserved,
      coalesce(b.pending_withdrawal, 0) as "pendingWithdrawal",
      ${sql.raw(marginsColumn('read.positions', 'one.user_id'))} as margins
    from (select ${userId}::bigint as user_id) one left join read.balances b on b.user_id = one.user_id
  `.execute(db)
  const { margins, ...parts } = rows[0] as (typeof rows)[number]
  return { ...parts, positionMargin: toMargin(margins) }
}
