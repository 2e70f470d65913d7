/** Lets years pass for a running exchange: for the database, whose clock all processes follow, and for the chain. */
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'
import type { Stack } from '../../../stack/stack.ts'

const READY_MS = 60_000

/** Shadows the clock of Postgres for every session that begins from now on. */
const INSTALL = `
  create schema shifted;
  create table shifted.time (ahead_ms bigint not null);
  insert into shifted.time values (0);
  create function shifted.clock_timestamp() returns timestamptz language sql volatile security definer as $$
    select pg_catalog.clock_timestamp() + make_interval(secs => (select ahead_ms / 1000.0 from shifted.time)::double precision)
  $$;
  grant usage on schema shifted to public;
  do $$ begin
    execute format('alter database %I set search_path = shifted, public, pg_catalog', current_database());
  end $$
`

/** Ends all sessions, so that every session follows the shifted clock. */
export async function shadowClock(db: Db): Promise<void> {
  await sql.raw(INSTALL).execute(db)
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`.execute(
    db,
  )
}

export const setAhead = (db: Db, ms: number): Promise<unknown> =>
  sql`update shifted.time set ahead_ms = ${ms}`.execute(db)

export class ShiftedTime {
  readonly #stack: Stack
  aheadMs = 0

  private constructor(stack: Stack) {
    this.#stack = stack
  }

  /** Also restarts the stack's processes. */
  static async install(stack: Stack): Promise<ShiftedTime> {
    await shadowClock(stack.db)
    const { engine, indexer, keeper, api } = stack
    const processes = [engine, indexer, keeper, api]
    for (const process of processes) await process.restart('SIGTERM')
    for (const process of processes) await process.ready(READY_MS)
    return new ShiftedTime(stack)
  }

  now(): number {
    return Date.now() + this.aheadMs
  }

  /** In whole seconds. The database goes first: an action as of a time that the chain has not reached waits. */
  async pass(ms: number): Promise<void> {
    const seconds = Math.ceil(ms / 1000)
    this.aheadMs += seconds * 1000
    await setAhead(this.#stack.db, this.aheadMs)
    await this.#stack.provider.send('evm_increaseTime', [seconds])
    await this.#stack.provider.send('evm_mine', [])
  }
}
