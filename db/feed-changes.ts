/** The rows of the read model that one chunk of the projector changed, as a row of the feed contains them. */
import type { Selectable } from 'kysely'
import type { ReadAdjustmentAttemptsTable } from './adjustment-schema.ts'
import { weiAsText } from './json.ts'
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

type Name = keyof FeedChanges
type Row = Record<string, unknown>

/**
 * One line per non-empty list: name, space, JSON of columns and rows. Column names appear once, because they would be
 * most of the text. Generated columns of stored rows are left out.
 */
export function encodeChanges(changes: FeedChanges): string {
  const lines = (Object.keys(AMOUNTS) as Name[]).flatMap((name) => {
    const rows = (changes[name] ?? []) as readonly Row[]
    if (rows.length === 0) return []
    return `${name} ${JSON.stringify(packed(rows))}`
  })
  return lines.join('\n')
}

/** A list is parsed when it is first read: most readers of a row need a small part of it. */
export function decodeChanges(text: string): FeedChanges {
  const changes: FeedChanges = {}
  for (const line of text === '' ? [] : linesOf(text)) {
    const name = line.slice(0, line.indexOf(' ')) as Name
    Object.defineProperty(changes, name, {
      ...{ enumerable: true, configurable: true },
      get() {
        const value = unpacked(name, JSON.parse(line.slice(name.length + 1)))
        Object.defineProperty(changes, name, { value, enumerable: true })
        return value
      },
    })
  }
  return changes
}

/** Rows of the feed that older versions have written are one JSON object. They are gone a minute after the last chunk of such a version. */
const linesOf = (text: string): string[] =>
  text.startsWith('{')
    ? Object.entries(JSON.parse(text)).map(([name, rows]) => `${name} ${JSON.stringify(rows)}`)
    : text.split('\n')

type Packed = readonly [columns: readonly string[], ...rows: (readonly unknown[])[]]

/** Amounts are converted here and not by `toJson`, which takes twice as long: it asks for every value and every row. */
function packed(rows: readonly Row[]): Packed {
  const columns = Object.keys(rows[0] ?? {})
  return [columns, ...rows.map((row) => columns.map((column) => weiAsText(row[column])))]
}

/** Older versions have written rows as objects. */
const isPacked = (stored: Packed | readonly Row[]): stored is Packed => Array.isArray(stored[0])

function unpacked(name: Name, stored: Packed | readonly Row[]): Row[] {
  const [columns, ...rows] = isPacked(stored) ? stored : packed(stored)
  const areAmounts = columns.map((column) => (AMOUNTS[name] as readonly string[]).includes(column))
  return rows.map((values) => {
    const row: Row = {}
    columns.forEach((column, index) => {
      const value = values[index]
      row[column] = areAmounts[index] && value !== null ? BigInt(value as string) : value
    })
    return row
  })
}
