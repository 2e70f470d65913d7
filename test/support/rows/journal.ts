/** Journals in which a test writes rows in the place of an engine that does not run. */
import { CompiledQuery, sql } from 'kysely'
import type { Db, Tx } from '../../../db/client.ts'
import {
  BATCH_NOTICE,
  hasBatch,
  JOURNAL_CHANNEL,
  type PlacedRow,
  type ShardHead,
  shardEnds,
} from '../../../db/journal.ts'
import { AppliedRows } from '../../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import { createState } from '../../../domain/exchange/state.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { GROUP_VERSION } from '../../../keeper/engine/ports.ts'

/** Locks the shard until the transaction ends. Throws if the shard does not exist. */
export async function lockShard(tx: Tx, shard: string): Promise<ShardHead> {
  return tx.selectFrom('shards').selectAll().where('shard', '=', shard).forUpdate().executeTakeFirstOrThrow()
}

export async function createShard(tx: Tx | Db, shard: string): Promise<void> {
  await tx
    .insertInto('shards')
    .values({ shard })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

const STORE_GROUP = `
  with spanned as (
    insert into spanned_commands (seq, shards)
    select seq, "row" -> 'shards' from json_to_recordset($1::json) as placed (shard text, seq bigint, "row" json)
    where shard = 'accounts' and "row" ->> 'kind' = 'command_spanned'
    on conflict do nothing
  ), head as materialized (
    select coalesce(max(number), 0) as number from engine_groups
  ), grouped as (
    insert into engine_groups (number, token, version, rows, before, digest) select number + 1, 0, 0, $1::json, '', '' from head
  )
  select advance_engine_tables(0, (select written from engine_tables), number + 1, $2::json) from head
`

/** Stores a group that no engine can read, and advances the tables to it. Transactions that call it take turns until their end. */
export async function storeGroup(tx: Tx, rows: readonly PlacedRow[]): Promise<void> {
  if (rows.length === 0) return
  await sql`lock table engine_tables in exclusive mode`.execute(tx)
  const values = [JSON.stringify(rows), JSON.stringify(shardEnds(rows))]
  await tx.executeQuery(CompiledQuery.raw(STORE_GROUP, values))
}

/** Completes the stored groups as an engine would have stored them, so that an engine can start behind them. */
export async function sealGroups(db: Db): Promise<void> {
  const groups = await db.selectFrom('engine_groups').select(['number', 'rows']).orderBy('number').execute()
  const applied = new AppliedRows(createState())
  for (const { number, rows } of groups) {
    const before = applied.digest()
    for (const row of rows) applied.apply(row as Entry)
    const digest = applied.digest()
    await db
      .updateTable('engine_groups')
      .set({ version: GROUP_VERSION, before, digest })
      .where('number', '=', number)
      .execute()
  }
}

/** Changes stored rows, or removes those for which `change` returns null. */
export async function changeRows(db: Db, change: (placed: PlacedRow) => PlacedRow | null): Promise<void> {
  for (const { number, rows } of await db.selectFrom('engine_groups').select(['number', 'rows']).execute()) {
    const changed = (rows as unknown as PlacedRow[]).map(change).filter((row) => row !== null)
    await db
      .updateTable('engine_groups')
      .set({ rows: JSON.stringify(changed) })
      .where('number', '=', number)
      .execute()
  }
}

/**
 * Appends rows behind `at.head`; the caller holds the shard's lock. Returns the new head: row i has the sequence `at.head + 1 + i`.
 * Listeners on `journal` are notified after the commit.
 */
export async function appendRows(tx: Tx, at: ShardHead, rows: readonly JournalRow[]): Promise<number> {
  const { shard } = at
  if (rows.length === 0) return at.head
  await storeGroup(
    tx,
    rows.map((row, index) => ({ shard, seq: at.head + 1 + index, row })),
  )
  const head = at.head + rows.length
  const notice = hasBatch(rows) ? `:${BATCH_NOTICE}` : ''
  await sql`select pg_notify(${JOURNAL_CHANNEL}, ${`${shard}:${head}${notice}`})`.execute(tx)
  return head
}
