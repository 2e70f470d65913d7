/** The rows of the read model that one chunk of the projector changed, as a row of the feed contains them. */
import type { Selectable } from 'kysely'
import type { ReadAdjustmentAttemptsTable } from './adjustment-schema.ts'
import type {
  ReadBatchesTable,
  ReadFillsTable,
  ReadLedgerTransactionsTable,
  ReadMarketsTable,
  ReadOrdersTable,
  ReadPositionsTable,
} from './read-schema.ts'

/** `is_known`: it was in the feed before, and is in no removed part of the chunk. */
export type FeedFill = Selectable<ReadFillsTable> & { readonly is_known?: boolean }

/** Rows after the change. */
export interface FeedChanges {
  readonly orders?: readonly Omit<Selectable<ReadOrdersTable>, 'arrival'>[]
  readonly fills?: readonly FeedFill[]
  /** Parts whose fills are removed before those of `fills` are added. */
  readonly removedParts?: readonly { readonly batch_id: number; readonly part: number }[]
  readonly positions?: readonly Selectable<ReadPositionsTable>[]
  readonly transactions?: readonly Selectable<ReadLedgerTransactionsTable>[]
  /** Transactions that were rolled back. */
  readonly removedTransactions?: readonly { readonly id: string; readonly user_id: number }[]
  readonly adjustments?: readonly Selectable<ReadAdjustmentAttemptsTable>[]
  readonly batches?: readonly Selectable<ReadBatchesTable>[]
  readonly markets?: readonly Omit<Selectable<ReadMarketsTable>, 'spec'>[]
}

/** Columns with amounts in wei, which JSON contains as text. */
const AMOUNTS = {
  orders: ['filled_value', 'fee', 'reserved', 'held'],
  fills: ['fee', 'realized_pnl', 'available_margin_delta'],
  removedParts: [],
  positions: ['entry_notional', 'folded_margin', 'realized_pnl', 'fees'],
  transactions: ['amount', 'available_margin_delta'],
  removedTransactions: [],
  adjustments: ['amount'],
  batches: ['oracle_price'],
  markets: ['oracle_price', 'mark_price', 'price_protection', 'next_price_protection'],
} as const satisfies Record<keyof FeedChanges, readonly string[]>

const NAMES = Object.keys(AMOUNTS) as (keyof FeedChanges)[]

type Rows = readonly Record<string, unknown>[]

function convert(changes: FeedChanges, amount: (value: unknown) => unknown): FeedChanges {
  const converted: Record<string, Rows> = {}
  for (const name of NAMES) {
    const rows = changes[name] as Rows | undefined
    if (rows === undefined || rows.length === 0) continue
    converted[name] = rows.map((row) => {
      const copy = { ...row }
      for (const column of AMOUNTS[name]) if (row[column] !== null) copy[column] = amount(row[column])
      return copy
    })
  }
  return converted
}

/** As JSON, without empty lists. */
export const encodeChanges = (changes: FeedChanges): string => JSON.stringify(convert(changes, String))

export const decodeChanges = (text: string): FeedChanges =>
  convert(JSON.parse(text) as FeedChanges, (value) => BigInt(value as string))
