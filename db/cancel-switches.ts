/**
 * The tables `cancel_switches` (armed dead-man switches) and `fired_switches`. Arming and firing meet at the switch's row: its lock decides
 * which of the two comes first.
 */
import { sql } from 'kysely'
import type { Db, Tx } from './client.ts'

export interface ArmedSwitch {
  readonly timeout_seconds: number
  readonly armed_at: number
  readonly fire_at: number
}

/** Arms the account's switch, in place of one that is armed already. */
export async function armSwitch(db: Db, userId: number, armed: ArmedSwitch): Promise<void> {
  await db
    .insertInto('cancel_switches')
    .values({ user_id: userId, ...armed })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(armed))
    .execute()
}

export async function disarmSwitch(db: Db, userId: number): Promise<void> {
  await db.deleteFrom('cancel_switches').where('user_id', '=', userId).execute()
}

/** Moves every switch that is due to `fired_switches`. */
export async function fireDueSwitches(tx: Tx, now: number): Promise<void> {
  await sql`
    with due as (delete from cancel_switches where fire_at <= ${now} returning user_id, fire_at)
    insert into fired_switches (user_id, fired_at) select user_id, fire_at from due
  `.execute(tx)
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
