/** The projection `transactions`: deposits and withdrawals, and what funding payments are derived from. */
import { sql } from 'kysely'
import type { Tx } from '../../../db/client.ts'
import { PROJECTED_TABLES } from '../../../db/read-schema.ts'
import type { ChunkWrites, Projection } from '../projection.ts'
import { RowChanges, type ShardEntry } from '../row-change.ts'
import {
  FUNDING_INDEXES,
  FUNDING_POSITIONS,
  FUNDING_SPANS,
  FundingChanges,
  type FundingIndexRow,
  type FundingPosition,
  type FundingSpan,
  type LoadedFunding,
  type TouchedFunding,
  touchedFunding,
} from '../tables/funding-payments.ts'
import {
  LEDGER_TRANSACTIONS,
  type LedgerTransaction,
  ledgerTransactionChanges,
} from '../tables/ledger-transactions.ts'

export const transactions: Projection = {
  name: 'transactions',
  version: 1,
  tables: PROJECTED_TABLES.transactions,
  async project(tx, entries) {
    const marketId = entries[0]?.marketId ?? 0
    return marketId === 0 ? ledgerWrites(entries) : fundingWrites(tx, marketId, entries)
  },
}

function ledgerWrites(entries: readonly ShardEntry[]): ChunkWrites {
  const rows = new RowChanges<LedgerTransaction>([])
  for (const change of entries.flatMap(ledgerTransactionChanges)) rows.apply(change)
  return {
    clauses: [LEDGER_TRANSACTIONS.replace(rows.changed())],
    before: (tx) => remove(tx, 'read.ledger_transactions', rows.removed()),
  }
}

async function fundingWrites(tx: Tx, marketId: number, entries: readonly ShardEntry[]): Promise<ChunkWrites> {
  const touched = touchedFunding(marketId, entries)
  if (!touched.updates && touched.users.size === 0) return { clauses: [] }
  const changes = new FundingChanges(marketId, await load(tx, marketId, touched))
  for (const { row } of entries) changes.apply(row)
  return {
    clauses: [
      FUNDING_INDEXES.replace(changes.indexes),
      FUNDING_POSITIONS.replace(changes.positions),
      FUNDING_SPANS.replace(changes.spans),
    ],
    async before() {
      await remove(tx, 'read.funding_spans', changes.removedSpans)
      if (changes.lastNumber === null) return
      await sql`
        delete from read.funding_indexes where market_id = ${marketId} and number > ${changes.lastNumber}
      `.execute(tx)
    },
  }
}

async function load(
  tx: Tx,
  marketId: number,
  { rolledBackUpdates, users, rolledBackSpans }: TouchedFunding,
): Promise<LoadedFunding> {
  const indexes = await sql<FundingIndexRow>`
    select * from read.funding_indexes where market_id = ${marketId} order by number desc limit ${rolledBackUpdates + 1}
  `.execute(tx)
  const positions = await sql<FundingPosition>`
    select * from read.funding_positions where market_id = ${marketId} and user_id = any(${[...users]}::bigint[])
  `.execute(tx)
  const spans =
    rolledBackSpans.length === 0
      ? []
      : (
          await sql<FundingSpan>`select * from read.funding_spans where id = any(${rolledBackSpans})`.execute(
            tx,
          )
        ).rows
  return {
    indexes: indexes.rows.reverse(),
    positions: new Map(positions.rows.map((position) => [String(position.user_id), position])),
    spans: new Map(spans.map((span) => [span.id, span])),
  }
}

async function remove(
  tx: Tx,
  table: 'read.ledger_transactions' | 'read.funding_spans',
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return
  await sql`delete from ${sql.table(table)} where id = any(${ids})`.execute(tx)
}
