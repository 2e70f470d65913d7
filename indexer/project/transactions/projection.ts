/**
 * The projection `transactions`: deposits, withdrawals, liquidations and payouts, what funding payments are derived from, and the open interest, which
 * follows from the same sizes.
 */
import { sql } from 'kysely'
import type { Tx } from '../../../db/client.ts'
import { PROJECTED_TABLES } from '../../../db/read-schema.ts'
import type { MarketFeed } from '../feed.ts'
import type { ChunkWrites, Projection } from '../projection.ts'
import { byMarket, RowChanges, type ShardEntry } from '../row-change.ts'
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
    const ledger = ledgerWrites(entries)
    const funding = await fundingWrites(tx, entries)
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
    feed: [
      ...rows.changed().map((row) => ({ marketId: row.market_id ?? 0, transactions: [row] })),
      ...removedTransactions(entries, rows.removed()),
    ],
  }
}

/** The rolled-back transactions, with the accounts that their rows had. */
function removedTransactions(entries: readonly ShardEntry[], ids: readonly string[]): MarketFeed[] {
  if (ids.length === 0) return []
  const undone = entries.flatMap((entry) =>
    'rollback' in entry.row && entry.row.rollback
      ? ledgerTransactionChanges({ ...entry, row: { ...entry.row, rollback: false } })
      : [],
  )
  const rows = new Map(undone.map(({ key, apply }) => [key, apply(undefined)]))
  return ids.flatMap((id) => {
    const row = rows.get(id)
    if (row === undefined) return []
    return [{ marketId: row.market_id ?? 0, removedTransactions: [{ id, user_id: row.user_id }] }]
  })
}

/** The rows of one market that move its funding, and what they touch. */
interface MarketFunding {
  readonly marketId: number
  readonly entries: readonly ShardEntry[]
  readonly touched: TouchedFunding
}

async function fundingWrites(tx: Tx, entries: readonly ShardEntry[]): Promise<ChunkWrites> {
  const markets = [...byMarket(entries)].flatMap(([marketId, own]) => {
    const touched = touchedFunding(marketId, own)
    const isTouched = touched.updates || touched.users.size > 0
    return marketId > 0 && isTouched ? [{ marketId, entries: own, touched }] : []
  })
  if (markets.length === 0) return NO_WRITES
  const loaded = await load(tx, markets)
  const changed = markets.map(({ marketId, entries: own }) => {
    const changes = new FundingChanges(marketId, loaded(marketId))
    for (const { row } of own) changes.apply(row)
    return { marketId, changes }
  })
  return {
    clauses: [
      FUNDING_INDEXES.replace(changed.flatMap(({ changes }) => changes.indexes)),
      FUNDING_POSITIONS.replace(changed.flatMap(({ changes }) => changes.positions)),
      FUNDING_SPANS.replace(changed.flatMap(({ changes }) => changes.spans)),
      // Also if it adds 0: the row exists once a position was touched, wherever chunks begin.
      OPEN_INTEREST.add(
        changed.map(({ marketId, changes }) => ({
          market_id: marketId,
          steps: sumOf(changes.moves.values()),
        })),
      ),
      OPEN_INTEREST_CHANGES.add(
        changed.flatMap(({ marketId, changes }) => openInterestChanges(marketId, changes.moves)),
      ),
    ],
    async before() {
      await remove(
        tx,
        'read.funding_spans',
        changed.flatMap(({ changes }) => changes.removedSpans),
      )
      for (const { marketId, changes } of changed) {
        if (changes.lastNumber === null) continue
        await sql`
          delete from read.funding_indexes where market_id = ${marketId} and number > ${changes.lastNumber}
        `.execute(tx)
      }
    },
  }
}

const sumOf = (steps: Iterable<number>): number => [...steps].reduce((sum, moved) => sum + moved, 0)

/** Loads what the markets touch. Returns the rows of one market. */
async function load(tx: Tx, markets: readonly MarketFunding[]): Promise<(marketId: number) => LoadedFunding> {
  const holders = markets.flatMap(({ marketId, touched }) =>
    [...touched.users].map((userId) => ({ marketId, userId })),
  )
  const spanIds = markets.flatMap(({ touched }) => touched.rolledBackSpans)
  const [indexes, positions, spans] = await Promise.all([
    sql<FundingIndexRow>`
      select stored.*
      from unnest(
        ${markets.map(({ marketId }) => marketId)}::integer[], ${markets.map(({ touched }) => touched.rolledBackUpdates + 1)}::integer[]
      ) as touched (market_id, most)
      cross join lateral (
        select * from read.funding_indexes where market_id = touched.market_id order by number desc limit touched.most
      ) stored
      order by stored.number
    `.execute(tx),
    sql<FundingPosition>`
      select stored.*
      from unnest(
        ${holders.map(({ marketId }) => marketId)}::integer[], ${holders.map(({ userId }) => userId)}::bigint[]
      ) as touched (market_id, user_id)
      cross join lateral (
        select * from read.funding_positions where user_id = touched.user_id and market_id = touched.market_id offset 0
      ) stored
    `.execute(tx),
    spanIds.length === 0
      ? { rows: [] }
      : sql<FundingSpan>`select * from read.funding_spans where id = any(${spanIds})`.execute(tx),
  ])
  const indexesOf = Map.groupBy(indexes.rows, ({ market_id }) => market_id)
  const positionsOf = Map.groupBy(positions.rows, ({ market_id }) => market_id)
  const spansOf = Map.groupBy(spans.rows, ({ market_id }) => market_id)
  return (marketId) => ({
    indexes: indexesOf.get(marketId) ?? [],
    positions: new Map(positionsOf.get(marketId)?.map((row) => [String(row.user_id), row])),
    spans: new Map(spansOf.get(marketId)?.map((row) => [row.id, row])),
  })
}

async function remove(
  tx: Tx,
  table: 'read.ledger_transactions' | 'read.funding_spans',
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return
  await sql`delete from ${sql.table(table)} where id = any(${ids})`.execute(tx)
}
