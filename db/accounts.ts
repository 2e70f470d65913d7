/** The `accounts` table: the bank's ledger per user, and what the user's orders reserve of it. */
import { CompiledQuery, type Selectable, sql } from 'kysely'
import type { Funds } from '../domain/orders/recompute-reservations.ts'
import type { Quote, UserId } from '../domain/units.ts'
import type { Tx } from './client.ts'
import type { Statement } from './round-trip.ts'
import type { AccountsTable } from './schema.ts'
import { anyOf } from './values.ts'

/** Locks account rows in ascending order until the transaction ends, and returns them. Shard locks come first. */
export async function lockAccounts(tx: Tx, userIds: Iterable<number>) {
  const ids = [...new Set(userIds)]
  if (ids.length === 0) return []
  return tx
    .selectFrom('accounts')
    .selectAll()
    .where('user_id', '=', anyOf('bigint', ids))
    .orderBy('user_id')
    .forUpdate()
    .execute()
}

type FundsRow = Pick<Selectable<AccountsTable>, 'user_id' | 'free' | 'reserved'>

const toFunds = (rows: readonly FundsRow[]): ReadonlyMap<UserId, Funds> =>
  new Map(
    rows.map((row) => [row.user_id as UserId, { free: row.free as Quote, reserved: row.reserved as Quote }]),
  )

/** Locks accounts and returns what each can pay with. */
export const lockFunds = async (tx: Tx, accounts: ReadonlySet<UserId>): Promise<ReadonlyMap<UserId, Funds>> =>
  toFunds(await lockAccounts(tx, accounts))

/** What each account can pay with, without a lock: `reserveCovered` checks a decision that depends on it. */
export async function readFunds(tx: Tx, accounts: ReadonlySet<UserId>): Promise<ReadonlyMap<UserId, Funds>> {
  if (accounts.size === 0) return new Map()
  const rows = await tx
    .selectFrom('accounts')
    .select(['user_id', 'free', 'reserved'])
    .where('user_id', '=', anyOf('bigint', accounts))
    .execute()
  return toFunds(rows)
}

const CHANGE_RESERVED = `
  update accounts a set reserved = a.reserved + d.delta
  from unnest($1::bigint[], $2::numeric[]) d (user_id, delta)
  where a.user_id = d.user_id and a.user_id = any($1::bigint[])
`

/** Reserves (positive) or releases (negative) wei of locked accounts. Deltas of 0 must be left out. */
export const changeReservedQuery = (deltas: readonly (readonly [number, bigint])[]): Statement => ({
  name: 'change-reserved',
  text: CHANGE_RESERVED,
  values: [deltas.map(([userId]) => userId), deltas.map(([, delta]) => String(delta))],
})

/** Reserves (positive) or releases (negative) wei of locked accounts. */
export async function changeReserved(tx: Tx, deltas: ReadonlyMap<number, bigint>): Promise<void> {
  const changes = [...deltas].filter(([, delta]) => delta !== 0n)
  if (changes.length === 0) return
  const { text, values } = changeReservedQuery(changes)
  await tx.executeQuery(CompiledQuery.raw(text, [...values]))
}

/** Thrown if an account has less than what the transaction has read of it; the transaction must be rolled back and decided again. */
export class FundsChanged extends Error {
  override readonly name = 'FundsChanged'
}

/** The rows are locked one after the other in the order of the ids. A lock of an account's key would exclude rows that refer to it. */
const RESERVE_COVERED = `
  with locked as materialized (
    select a.user_id, d.delta
    from unnest($1::bigint[], $2::numeric[]) d (user_id, delta)
    join accounts a on a.user_id = d.user_id and a.user_id = any($1::bigint[])
    order by a.user_id for no key update of a
  )
  update accounts a set reserved = a.reserved + l.delta
  from locked l
  where a.user_id = l.user_id and a.user_id = any($1::bigint[]) and (l.delta <= 0 or a.reserved + l.delta <= a.free)
`

/**
 * Reserves or releases wei of accounts that are not locked: the last statement of a transaction that has decided on balances as it has read
 * them. Throws `FundsChanged` if an account cannot pay for what is added to its reservation. A release needs no cover.
 */
export async function reserveCovered(tx: Tx, deltas: ReadonlyMap<number, bigint>): Promise<void> {
  const changes = [...deltas].filter(([, delta]) => delta !== 0n)
  if (changes.length === 0) return
  const values = [changes.map(([userId]) => userId), changes.map(([, delta]) => String(delta))]
  const { numAffectedRows = 0n } = await tx.executeQuery(CompiledQuery.raw(RESERVE_COVERED, values))
  const short = changes.length - Number(numAffectedRows)
  if (short > 0)
    throw new FundsChanged(`${short} of ${changes.length} accounts can no longer pay for their reservations`)
}

/** What is added to each column of an account, in wei as decimal strings. */
export interface LedgerChange {
  readonly user_id: number
  readonly free?: string
  readonly pending_withdrawal?: string
  readonly reserved?: string
}

/**
 * Adds chain facts to accounts, whose rows are locked one after the other in the order of their ids: counting them lets the update wait for all of
 * the locks. Several changes may name the same account.
 */
export async function changeLedger(tx: Tx, changes: readonly LedgerChange[]): Promise<void> {
  if (changes.length === 0) return
  const ids = changes.map(({ user_id }) => user_id)
  await sql`
    with changes as (
      select user_id, sum(coalesce(free, 0)) as free, sum(coalesce(pending_withdrawal, 0)) as pending_withdrawal,
        sum(coalesce(reserved, 0)) as reserved
      from json_to_recordset(${JSON.stringify(changes)}::json)
        as x (user_id bigint, free numeric, pending_withdrawal numeric, reserved numeric)
      group by user_id
    ), locked as materialized (
      select a.user_id from accounts a where a.user_id = any(${ids}::bigint[]) order by a.user_id for no key update
    )
    update accounts set
      free = accounts.free + changes.free,
      pending_withdrawal = accounts.pending_withdrawal + changes.pending_withdrawal,
      reserved = accounts.reserved + changes.reserved
    from changes
    where accounts.user_id = changes.user_id and accounts.user_id = any(${ids}::bigint[])
      and (select count(*) from locked) > 0
  `.execute(tx)
}
