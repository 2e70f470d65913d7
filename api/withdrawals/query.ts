/** Withdrawals of an account in the read model: each request, and the payout that paid it. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { lastRequest, PAUSE_ENDS_AT } from '../accounts/query.ts'
import type { Cursor } from '../wire/cursor.ts'
import { isWithin } from '../wire/list-query.ts'
import type { TimeRange } from '../wire/times.ts'

/** Tables that `withdrawalsOfUser` reads. */
export const WITHDRAWAL_TABLES = ['read.withdrawal_events', 'read.balances'] as const

export interface WithdrawalRow {
  readonly id: string
  readonly amount: bigint
  readonly tx_hash: string
  readonly log_index: number
  readonly block: number
  readonly at: number
  /** Total of the payout, which also paid the requests since the previous payout; null while pending. */
  readonly paid_amount: bigint | null
  readonly paid_tx_hash: string | null
  readonly paid_at: number | null
}

export interface Withdrawals {
  readonly rows: readonly WithdrawalRow[]
  readonly pending: bigint
  /** Time of the account's last request. */
  readonly requestedAt: number | null
  readonly pauseEndsAt: number
}

/** The range is of the time of the request. */
export interface WithdrawalFilter extends TimeRange {
  readonly limit: number
  /** Block and log index of the last request of the page before. */
  readonly after: Cursor | null
}

/** An account without requests has one row without one. */
type Found = Omit<Withdrawals, 'rows'> & (WithdrawalRow | { readonly id: null })

/** Newest first; one row more than the limit, if there is one. One statement, so one snapshot. */
export async function withdrawalsOfUser(
  db: Db | Tx,
  userId: number,
  { limit, after, ...range }: WithdrawalFilter,
): Promise<Withdrawals> {
  const isOlder =
    after === null ? sql`true` : sql`(r.block, r.log_index) < (${after.at}::bigint, ${after.id}::integer)`
  const { rows } = await sql<Found>`
    select coalesce((select pending_withdrawal from read.balances where user_id = one.user_id), 0) as pending,
      ${lastRequest(sql`one.user_id`)} as "requestedAt", ${PAUSE_ENDS_AT} as "pauseEndsAt", page.*
    from (select ${userId}::bigint as user_id) one
    left join lateral (
      select r.id, r.amount, r.tx_hash, r.log_index, r.block, r.at,
        p.amount as paid_amount, p.tx_hash as paid_tx_hash, p.at as paid_at
      from read.withdrawal_events r
      left join lateral (
        select * from read.withdrawal_events p
        where p.user_id = r.user_id and p.is_payout and (p.block, p.log_index) > (r.block, r.log_index)
        order by p.block, p.log_index limit 1
      ) p on true
      where r.user_id = one.user_id and not r.is_payout and ${isOlder} and ${isWithin(sql`r.at`, range)}
      order by r.block desc, r.log_index desc limit ${limit + 1}
    ) page on true
  `.execute(db)
  const { pending = 0n, requestedAt = null, pauseEndsAt = 0 } = rows[0] ?? {}
  return { rows: rows.filter((row) => row.id !== null) as WithdrawalRow[], pending, requestedAt, pauseEndsAt }
}
