/** The feed of the read model: what each chunk of the projector changed for readers, as the live feed sends it. */
import type { Selectable } from 'kysely'
import type {
  ReadBatchesTable,
  ReadFillsTable,
  ReadLedgerTransactionsTable,
  ReadMarketsTable,
  ReadOrdersTable,
  ReadPositionsTable,
} from './read-schema.ts'

/** One row: where the feed stands. It is missing until the first chunk, and after a crash of the database. */
export interface FeedStateTable {
  id: 1
  /** Milliseconds at which the epoch began: a projection was filled, or the database has lost rows of the feed. */
  epoch: number
  /** Rows up to this one are of earlier epochs. */
  first_seq: number
  seq: number
}

/** The last row that concerned a topic, and the one before it. See `feedTopics`. */
export interface FeedHeadsTable {
  topic: string
  seq: number
  prev_seq: number
}

/** What one chunk changed. Rows are numbered in the order in which they become visible to readers. */
export interface FeedTable {
  seq: number
  at: number
  /** The journal up to which the chunk projected. */
  shard: string
  shard_epoch: number
  shard_seq: number
  /** The newest batch that cleared in the chunk. */
  batch_id: number | null
  /** The topics that the row concerns, each with the seq of its row before. */
  heads: Record<string, number>
  levels: FeedLevel[] | null
  balances: FeedBalance[] | null
  /** See `encodeChanges`. */
  changes: string
}

/** Side, price, quantity and orders of a level after the change; the quantity of a level that is gone is 0. */
export type FeedLevel = readonly [side: 'LONG' | 'SHORT', price: number, quantity: number, orders: number]
/** Account, free balance, reservation and pending withdrawal after the change. */
export type FeedBalance = readonly [userId: number, free: string, reserved: string, pendingWithdrawal: string]

/** Rows after the change. */
export interface FeedChanges {
  readonly orders?: readonly Omit<Selectable<ReadOrdersTable>, 'arrival'>[]
  readonly fills?: readonly Selectable<ReadFillsTable>[]
  /** Parts whose fills are removed before those of `fills` are added. */
  readonly removedParts?: readonly { readonly batch_id: number; readonly part: number }[]
  readonly positions?: readonly Selectable<ReadPositionsTable>[]
  readonly transactions?: readonly Selectable<ReadLedgerTransactionsTable>[]
  /** Transactions that were rolled back. */
  readonly removedTransactions?: readonly { readonly id: string; readonly user_id: number }[]
  readonly batches?: readonly Selectable<ReadBatchesTable>[]
  readonly markets?: readonly Selectable<ReadMarketsTable>[]
}

/** Columns with amounts in wei, which JSON contains as text. */
const AMOUNTS = {
  orders: ['filled_value', 'fee', 'reserved', 'held'],
  fills: ['fee', 'realized_pnl', 'available_margin_delta'],
  removedParts: [],
  positions: ['entry_notional', 'folded_margin', 'realized_pnl', 'fees'],
  transactions: ['amount', 'available_margin_delta'],
  removedTransactions: [],
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

/** A channel of one market in `heads`. `candles` concerns the candles of all intervals. */
export const marketHead = (marketId: number, channel: 'book' | 'trades' | 'auction' | 'stats' | 'candles') =>
  `${channel} ${marketId}`
export const userHead = (userId: number): string => `user ${userId}`
export const MARKETS_HEAD = 'markets'
