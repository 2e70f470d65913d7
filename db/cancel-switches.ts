/**
 * The tables `cancel_switches` (dead-man switches that accounts arm by requests), `connection_switches` (those of connections to the live
 * feed) and `fired_switches`. Arming and firing meet at the switch's row: its lock decides which of the two comes first.
 */
import { sql } from 'kysely'
import type { AccountsRow } from '../domain/journal/accounts-row.ts'
import { ACCOUNTS_SHARD } from '../domain/journal/journal-row.ts'
import type { SwitchesFired } from '../domain/journal/switch-rows.ts'
import type { Db, Tx } from './client.ts'
import { appendRows, lockShard } from './journal.ts'

export interface ArmedSwitch {
  readonly timeout_seconds: number
  readonly armed_at: number
  readonly fire_at: number
}

/** Runs `change` under the lock of the accounts' shard, and appends the rows that it returns. */
const withRows = (db: Db, change: (tx: Tx) => Promise<readonly AccountsRow[]>): Promise<void> =>
  db.transaction().execute(async (tx) => {
    const head = await lockShard(tx, ACCOUNTS_SHARD)
    await appendRows(tx, head, await change(tx))
  })

/** Arms the account's switch, in place of one that is armed already. */
export const armSwitch = (db: Db, userId: number, armed: ArmedSwitch): Promise<void> =>
  withRows(db, async (tx) => {
    await tx
      .insertInto('cancel_switches')
      .values({ user_id: userId, ...armed })
      .onConflict((conflict) => conflict.column('user_id').doUpdateSet(armed))
      .execute()
    return [{ kind: 'switch_armed', user_id: userId, ...armed }]
  })

export interface ConnectionSwitch {
  readonly connection_id: string
  readonly user_id: number
  readonly timeout_seconds: number
  readonly fire_at: number
}

/** Arms the switches of connections. */
export const armConnectionSwitches = (db: Db, switches: readonly ConnectionSwitch[]): Promise<void> =>
  withRows(db, async (tx) => {
    await renewConnectionSwitches(tx, switches)
    return switches.map(armedRow)
  })

const armedRow = ({ connection_id, user_id, timeout_seconds }: ConnectionSwitch): AccountsRow => ({
  kind: 'connection_switch_armed',
  connection_id,
  user_id,
  timeout_seconds,
})

/** Renews the switches of connections. One that has fired in the meantime is armed again, until its connection ends. */
export async function renewConnectionSwitches(
  db: Db | Tx,
  switches: readonly ConnectionSwitch[],
): Promise<void> {
  if (switches.length === 0) return
  await sql`
    insert into connection_switches (connection_id, user_id, timeout_seconds, fire_at)
    select * from unnest(
      ${switches.map((one) => one.connection_id)}::text[], ${switches.map((one) => one.user_id)}::bigint[],
      ${switches.map((one) => one.timeout_seconds)}::integer[], ${switches.map((one) => one.fire_at)}::bigint[]
    )
    on conflict (connection_id) do update
      set timeout_seconds = excluded.timeout_seconds, fire_at = excluded.fire_at
  `.execute(db)
}

/**
 * Moves every switch that is due to `fired_switches`. The due switch of a connection fires only if the database has been reachable for its
 * grace, since `reachableSince`: the connection's process could have renewed it. And only if the account has no other connection whose
 * switch is not due: otherwise the account is still connected. Returns the row for the journal.
 */
export async function fireDueSwitches(tx: Tx, now: number, reachableSince: number): Promise<SwitchesFired> {
  const reachableMs = now - reachableSince
  const isDue = sql`fire_at <= ${now} and timeout_seconds * 1000::bigint <= ${reachableMs}::bigint`
  const { rows } = await sql<Omit<SwitchesFired, 'kind'>>`
    with due as (delete from cancel_switches where fire_at <= ${now} returning user_id, fire_at),
    ended as (delete from connection_switches where ${isDue} returning connection_id, user_id, fire_at),
    disconnected as (
      select user_id, max(fire_at) as fire_at from ended
      where not exists (
        select from connection_switches other where other.user_id = ended.user_id and not (${isDue})
      )
      group by user_id
    ), fired as (
      insert into fired_switches (user_id, fired_at)
      select user_id, fire_at from due union select user_id, fire_at from disconnected
      on conflict do nothing
      returning user_id, fired_at
    )
    select
      (select coalesce(json_agg(fired order by user_id, fired_at), '[]') from fired) as fired,
      (select coalesce(json_agg(user_id order by user_id), '[]') from due) as accounts,
      (select coalesce(json_agg(connection_id order by connection_id), '[]') from ended) as connections
  `.execute(tx)
  return { kind: 'switches_fired', ...(rows[0] as (typeof rows)[number]) }
}

/** Deletes fired switches whose orders are all cancelled. */
export async function deleteFiredSwitches(
  tx: Tx,
  fired: readonly { readonly account: number; readonly firedAt: number }[],
): Promise<void> {
  await sql`
    delete from fired_switches
    using unnest(${fired.map(({ account }) => account)}::bigint[], ${fired.map(({ firedAt }) => firedAt)}::bigint[])
      as done (user_id, fired_at)
    where fired_switches.user_id = done.user_id and fired_switches.fired_at = done.fired_at
  `.execute(tx)
}
