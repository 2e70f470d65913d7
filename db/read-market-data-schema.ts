/** The tables of the schema `read` about the history of markets, at the lengths of `domain/market-data/interval.ts`. Only the projector writes them. */

import type { Span } from '../domain/market-data/interval.ts'
import type { Side } from '../domain/orders/order.ts'

interface SpanColumns {
  market_id: number
  span: Span
  start: number
}

/** The clearing prices of a stretch of time, in ticks, and what was matched and not voided. Without such a batch there is no row. */
export interface ReadCandlesTable extends SpanColumns {
  open: number
  high: number
  low: number
  close: number
  steps: number
  /** Sum of price times steps. */
  turnover: bigint
  auctions: number
  fills: number
}

/** The published prices of a stretch of time. Without a published price there is no row: the close before it continues. */
export interface ReadPriceCandlesTable extends SpanColumns {
  oracle_open: bigint
  oracle_high: bigint
  oracle_low: bigint
  oracle_close: bigint
  mark_open: bigint
  mark_high: bigint
  mark_low: bigint
  mark_close: bigint
}

/** By how many steps the open interest changed in a stretch of time. Without a mined change there is no row. */
export interface ReadOpenInterestChangesTable extends SpanColumns {
  steps: number
}

/** The state of one part of a batch. `RETRYING`: its block has left the chain. */
export interface BatchPartState {
  readonly status: 'MATCHED' | 'SUBMITTED' | 'MINED' | 'CONFIRMED' | 'RETRYING' | 'VOIDED'
  /** Hash of the transaction that was sent or mined last. */
  readonly tx_hash: string | null
}

/** Sums of a builder's orders on a day (UTC). */
export interface ReadBuilderDaysTable {
  builder: string
  /** Its start. */
  day: number
  /** Notional of the mined fills of auctions of the day, in wei. */
  volume: bigint
  fills: number
  /** Accepted on the day. */
  orders: number
}

/** Steps of the open limit orders that can execute, by price; orders without such a step are not counted. */
export interface ReadBookLevelsTable {
  market_id: number
  side: Side
  price: number
  quantity: number
  order_count: number
}
