/** Dumps the whole read model for comparison, and appends journal rows without a write side. */
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'
import { ACCOUNTS_SHARD, type JournalRow } from '../../../domain/journal/journal-row.ts'
import { appendRows, createShard, lockShard } from '../../support/rows/journal.ts'

const TABLES = [
  'read.users',
  'read.markets',
  'read.orders',
  'read.order_events',
  'read.fills',
  'read.positions',
  'read.balances',
  'read.withdrawal_events',
  'read.position_states',
  'read.cash_flows',
  'read.book_levels',
  'read.builder_days',
  'read.batches',
  'read.funding_rates',
  'read.candles',
  'read.price_candles',
  'read.ledger_transactions',
  'read.funding_indexes',
  'read.funding_positions',
  'read.funding_spans',
  'read.open_interest',
  'read.open_interest_changes',
  'read.market_risk',
  'read.liquidations',
  'read.liquidation_steps',
  'read.liquidation_legs',
  'read.places',
] as const

/** Every row of every read table as sorted text, without epochs, arrivals and the state of fills, which a rebuild changes. */
export async function dumpReadModel(db: Db): Promise<Record<string, string[]>> {
  const dump: Record<string, string[]> = {}
  for (const table of TABLES) {
    const { rows } = await sql<{ line: string }>`
      select (to_jsonb(t) - 'epoch' - 'arrival' - 'fill_to')::text as line from ${sql.table(table)} t order by 1
    `.execute(db)
    dump[table] = rows.map(({ line }) => line)
  }
  return dump
}

export async function appendToJournal(db: Db, shard: string, rows: readonly JournalRow[]): Promise<void> {
  await createShard(db, shard)
  await db.transaction().execute(async (tx) => {
    await appendRows(tx, await lockShard(tx, shard), rows)
  })
}

/**
 * Empties the journal and the read model, while other connections may read: a truncation would lock several tables against readers, which lock
 * them in another order.
 */
export async function clearJournal(db: Db): Promise<void> {
  const tables = TABLES.map((table) =>
    sql.table(table === 'read.order_events' ? 'read.order_changes' : table),
  )
  // Rows that a rollback has emptied stay, so that dumps leave this table out.
  const feed = [
    'read.realized_profits',
    'read.feed',
    'read.feed_heads',
    'read.feed_state',
    'engine_groups',
    'journal_spans',
    'spanned_commands',
    'shards',
  ]
  await db.transaction().execute(async (tx) => {
    // Rows are deleted without regard to the tables that refer to them: all of these are emptied.
    await sql`set local session_replication_role = replica`.execute(tx)
    for (const table of [...tables, ...feed.map((name) => sql.table(name))])
      await sql`delete from ${table}`.execute(tx)
    await sql`update engine_tables set written = 0`.execute(tx)
  })
  await createShard(db, ACCOUNTS_SHARD)
}
