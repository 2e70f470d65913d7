/** Compares each free balance with what an account's transactions and fills say they moved. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'

interface Unexplained {
  readonly user_id: number
  readonly free: bigint
  readonly moved: bigint
}

/**
 * Accounts whose free balance is not the sum of `available_margin_delta` over their transactions and unforced fills.
 * Forced fills are among the transactions of liquidations.
 */
export async function unexplainedBalances(db: Db | Tx): Promise<readonly Unexplained[]> {
  const { rows } = await sql<Unexplained>`
    with moved as (
      select user_id, sum(delta) as moved from (
        select user_id, available_margin_delta as delta from read.ledger_transactions
        union all
        select user_id, available_margin_delta from read.fills where not forced and available_margin_delta is not null
      ) deltas group by user_id
    )
    select user_id, coalesce(free, 0) as free, coalesce(moved, 0) as moved
    from read.balances full join moved using (user_id)
    where coalesce(free, 0) <> coalesce(moved, 0) order by user_id
  `.execute(db)
  return rows
}

/** One line per such account. */
export const deltaDifferences = async (db: Db | Tx): Promise<string[]> =>
  (await unexplainedBalances(db)).map(
    ({ user_id, free, moved }) => `user ${user_id} free: read model ${free}, transactions and fills ${moved}`,
  )
