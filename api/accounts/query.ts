/** Users and balances in the read model. */
import { type RawBuilder, sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import {
  fundingOfMargins,
  type MarketFunding,
  marginsColumn,
  type StoredMargin,
  toFundings,
  toMargin,
} from '../../db/funding.ts'
import type { Millis } from '../../domain/units.ts'
import type { AccountBalance } from './view.ts'

/** Tables that `userByAddress` reads. */
export const USER_TABLES = ['read.users'] as const
/** Tables of the read model that `balanceOfUser` reads. */
export const BALANCE_TABLES = ['read.balances', 'read.positions', 'read.withdrawal_events'] as const

export const userByAddress = (db: Db | Tx, address: string) =>
  db.selectFrom('read.users').selectAll().where('address', '=', address.toLowerCase()).executeTakeFirst()

interface BalanceRow extends Omit<AccountBalance, 'positionMargin'> {
  readonly margins: readonly StoredMargin[]
  readonly fundings: readonly MarketFunding[]
}

/** The time of the account's last request of a withdrawal. */
export const lastRequest = (userId: RawBuilder<unknown>) => sql<number | null>`(
  select at from read.withdrawal_events where user_id = ${userId} and not is_payout order by block desc, log_index desc limit 1
)`

export const PAUSE_ENDS_AT = sql<number>`coalesce((select bank_pause_ends_at from chain_progress limit 1), 0)`

/** One statement, so one snapshot. Funding accrues until `now`. All amounts are 0 for an account that never deposited. */
export async function balanceOfUser(db: Db | Tx, userId: number, now: Millis): Promise<AccountBalance> {
  const { rows } = await sql<BalanceRow>`
    select
      coalesce(b.free, 0) as free,
      coalesce(b.reserved, 0) as reserved,
      coalesce(b.pending_withdrawal, 0) as "pendingWithdrawal",
      ${lastRequest(sql`one.user_id`)} as "requestedAt",
      ${PAUSE_ENDS_AT} as "pauseEndsAt",
      ${sql.raw(marginsColumn('read.positions', 'one.user_id'))} as margins,
      (
        select coalesce(json_agg(f), '[]') from (${sql.raw(fundingOfMargins('read.positions', 'array[one.user_id]'))}) f
      ) as fundings
    from (select ${userId}::bigint as user_id) one left join read.balances b on b.user_id = one.user_id
  `.execute(db)
  const { margins, fundings, ...parts } = rows[0] as BalanceRow
  return { ...parts, positionMargin: toMargin(margins, toFundings(fundings), now) }
}
