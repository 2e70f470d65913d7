/**
 * Transactions of an account. The parts of the view `read.account_transactions` are queried one by one, at most a page
 * each, because a query of the view computes it completely.
 */
import { type RawBuilder, sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { TRANSACTION_TYPES, type TransactionType } from '../../domain/journal/transaction-type.ts'
import type { Cursor } from '../wire/cursor.ts'
import type { TransactionRow } from './view.ts'

/** Tables that `transactionsOfUser` reads. */
export const TRANSACTION_TABLES = [
  ...(['read.ledger_transactions', 'read.funding_indexes', 'read.funding_positions'] as const),
  'read.funding_spans',
] as const

export interface TransactionFilter {
  readonly marketId?: number | undefined
  readonly type?: TransactionType | undefined
  readonly limit: number
  /** Times of the first and after the last transaction. */
  readonly from?: number | null
  readonly to?: number | null
  /** The last transaction of the page before. */
  readonly after: Cursor | null
}

/** Newest first. */
export async function transactionsOfUser(
  db: Db | Tx,
  userId: number,
  asked: TransactionFilter,
): Promise<TransactionRow[]> {
  const filter = { ...asked, after: startOf(asked) }
  const parts = filter.type === 'funding_payment' ? [] : [ledger(userId, filter)]
  if (filter.type === undefined || filter.type === 'funding_payment') parts.push(payments(userId, filter))
  const { rows } = await sql<TransactionRow>`
    select * from (${sql.join(parts, sql` union all `)}) transactions order by at desc, id desc limit ${filter.limit}
  `.execute(db)
  return rows
}

/** No id sorts before the empty one, so that `to` is the cursor of everything before it. */
const startOf = ({ after, to = null }: TransactionFilter): Cursor | null =>
  to !== null && (after === null || to <= after.at) ? { at: to, id: '' } : after

/** A condition on the time and the id of a row: that it comes after the page before, and not before `from`. */
function isInRange(
  { after, from = null }: TransactionFilter,
  at: RawBuilder<unknown>,
  id: RawBuilder<unknown>,
) {
  const isOlder = after === null ? sql`true` : sql`(${at}, ${id}) < (${after.at}::bigint, ${after.id})`
  return from === null ? isOlder : sql`${isOlder} and ${at} >= ${from}::bigint`
}

const inMarket = ({ marketId }: TransactionFilter) =>
  marketId === undefined ? sql`true` : sql`market_id = ${marketId}::bigint`

const LEDGER_TYPES = TRANSACTION_TYPES.filter((type) => type !== 'funding_payment')

/** In one market it merges a page of each kind, since the index of a market's transactions begins with their kind. */
function ledger(userId: number, filter: TransactionFilter) {
  const isMerge = filter.marketId !== undefined && filter.type === undefined
  const pages = (isMerge ? LEDGER_TYPES : [filter.type]).map((type) =>
    pageOfLedger(userId, { ...filter, type }),
  )
  return sql`(select * from (${sql.join(pages, sql` union all `)}) kinds order by at desc, id desc limit ${filter.limit})`
}

const pageOfLedger = (userId: number, filter: TransactionFilter) => sql`
  (
    select id, user_id, type, amount, available_margin_delta, null::numeric as funding_payment_delta, market_id,
      tx_hash, log_index, block, at
    from read.ledger_transactions
    where user_id = ${userId} and ${isInRange(filter, sql`at`, sql`id`)} and ${inMarket(filter)}
      and ${filter.type === undefined ? sql`true` : sql`type = ${filter.type}`}
    order by at desc, id desc limit ${filter.limit}
  )
`

/** A page of each market in which the account has ever had a position. */
const payments = (userId: number, filter: TransactionFilter) => sql`
  (
    select p.id, m.user_id, 'funding_payment' as type, abs(p.payment) as amount, 0::numeric as available_margin_delta,
      p.payment as funding_payment_delta, m.market_id, p.tx_hash, p.log_index, p.block, p.at
    from (
      select * from read.funding_positions where user_id = ${userId} and ${inMarket(filter)}
    ) m
    cross join lateral (${paymentsOfChanges(filter)} union all ${paymentsOfUpdates(filter)}) p
    order by p.at desc, p.id desc limit ${filter.limit}
  )
`

/** Payments at changes of the position. */
const paymentsOfChanges = (filter: TransactionFilter) => sql`
  (
    select id, payment, tx_hash, log_index, block, at from read.funding_spans s
    where s.user_id = m.user_id and s.market_id = m.market_id and payment <> 0 and ${isInRange(filter, sql`at`, sql`id`)}
    order by at desc, id desc limit ${filter.limit}
  )
`

/**
 * Funding payments, newest span first. Update number, time and payment id have the same order. Only the newest span may
 * have no payment in range, so limit + 1 spans suffice.
 */
const paymentsOfUpdates = (filter: TransactionFilter) => sql`
  (
    select u.* from (
      select n.number from read.funding_indexes n
      where n.market_id = m.market_id and ${filter.after === null ? sql`true` : sql`n.at <= ${filter.after.at}::bigint`}
        and ${isInRange(filter, sql`n.at`, paymentId(sql`n`))}
      order by n.at desc, n.number desc limit 1
    ) newest
    cross join lateral (
      select m.size, m.from_index, m.from_number, newest.number as to_number where m.size <> 0
      union all (
        select s.size, s.from_index, s.from_number, least(s.to_number, newest.number) from read.funding_spans s
        where s.user_id = m.user_id and s.market_id = m.market_id and s.has_updates and s.from_number < newest.number
        order by s.from_number desc limit ${filter.limit + 1}
      )
    ) p
    cross join lateral (
      select * from (
        select ${paymentId(sql`i`)} as id, p.size * (
          case when i.number = p.from_number + 1 then p.from_index else i.previous_index end - i.funding_index
        ) as payment, tx_hash, log_index, block, at
        from read.funding_indexes i
        where i.market_id = m.market_id and i.number > p.from_number and i.number <= p.to_number
          and ${filter.from == null ? sql`true` : sql`i.at >= ${filter.from}::bigint`}
        order by i.number desc limit ${filter.limit + 1}
      ) own where payment <> 0
    ) u
    order by u.at desc, u.id desc limit ${filter.limit}
  )
`

const paymentId = (index: RawBuilder<unknown>) =>
  sql`${index}.market_id || '-' || lpad(${index}.action_id::text, 12, '0') || '-' || m.user_id`
