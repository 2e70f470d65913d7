/**
 * The projection `transactions`: deposits, withdrawals, liquidations and payouts, what funding payments are derived from, and the open interest, which
 * follows from the same sizes.
 */
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
  OPEN_INTEREST,
  OPEN_INTEREST_CHANGES,
  openInterestChanges,
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
  version: 5,
  tables: PROJECTED_TABLES.transactions,
  async project(tx, entries) {
    const marketId = entries[0]?.marketId ?? 0
    const ledger = ledgerWrites(entries)
    const funding = marketId === 0 ? NO_WRITES : await fundingWrites(tx, marketId, entries)
    return {
      ...ledger,
      clauses: [...ledger.clauses, ...funding.clauses],
      async before(tx) {
        await ledger.before?.(tx)
        await funding.before?.(tx)
      },
    }
  },
}

const NO_WRITES: ChunkWrites = { clauses: [] }

function ledgerWrites(entries: readonly ShardEntry[]): ChunkWrites {
  const changes = entries.flatMap(ledgerTransactionChanges)
  if (changes.length === 0) return NO_WRITES
  const rows = new RowChanges<LedgerTransaction>([])
  for (const change of changes) rows.apply(change)
  return {
    clauses: [LEDGER_TRANSACTIONS.replace(rows.changed())],
    before: (tx) => remove(tx, 'read.ledger_transactions', rows.removed()),
    feed: { transactions: rows.changed(), removedTransactions: removedTransactions(entries, rows.removed()) },
  }
}

/** The rolled-back transactions, with the accounts that their rows had. */
function removedTransactions(entries: readonly ShardEntry[], ids: readonly string[]) {
  if (ids.length === 0) return []
  const undone = entries.flatMap((entry) =>
    'rollback' in entry.row && entry.row.rollback
      ? ledgerTransactionChanges({ ...entry, row: { ...entry.row, rollback: false } })
      : [],
  )
  const rows = new Map(undone.map(({ key, apply }) => [key, apply(undefined)]))
  return ids.flatMap((id) => {
    const row = rows.get(id)
    return row === undefined ? [] : [{ id, user_id: row.user_id }]
  })
}

async function fundingWrites(tx: Tx, marketId: number, entries: readonly ShardEntry[]): Promise<ChunkWrites> {
  const touched = touchedFunding(marketId, entries)
  if (!touched.updates && touched.users.size === 0) return NO_WRITES
  const loaded = await load(tx, marketId, touched)
  const changes = new FundingChanges(marketId, loaded)
  for (const { row } of entries) changes.apply(row)
  const { positions } = changes
  const steps = [...changes.moves.values()].reduce((sum, moved) => sum + moved, 0)
  return {
    clauses: [
      FUNDING_INDEXES.replace(changes.indexes),
      FUNDING_POSITIONS.replace(positions),
      FUNDING_SPANS.replace(changes.spans),
      // Also if it adds 0: the row exists once a position was touched, wherever chunks begin.
      OPEN_INTEREST.add([{ market_id: marketId, steps }]),
      OPEN_INTEREST_CHANGES.add(openInterestChanges(marketId, changes.moves)),
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
