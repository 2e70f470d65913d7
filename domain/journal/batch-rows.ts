/** Rows of a market's journal about batches: what an auction has cleared, and how its parts are settled, confirmed or voided. */
import type { OrderStatus, Side, StatusReason } from '../orders/order.ts'
import type { Wei } from './wei.ts'

/** One order's share of one part. `fill_id` is `<market>-<batch>-<part>-<order seq>`. */
export interface MatchedFill {
  readonly fill_id: string
  readonly order_id: string
  readonly user_id: number
  readonly part: number
  readonly side: Side
  readonly steps: number
  readonly taker_steps: number
  /** The share of the order's reservation that is held until this fill's settlement is mined. */
  readonly held: Wei
  /** Steps that open a position, if there are any. Only in `batch_cleared`, like the next field. */
  readonly opening?: number
  /** The slot of a partly filled order: see `PartialSlots`. */
  readonly partial_slot?: number
}

/** The position of an account with all fills that are matched, mined or not. */
export interface MatchedPosition {
  readonly user_id: number
  readonly size: number
  readonly entry_notional: Wei
  readonly folded_margin: Wei
  readonly leverage: number
}

/** What the settlement of a batch and the state of its market need beside the result of the auction. */
export interface BatchTerms {
  /** The head of the journal that the auction read: orders up to it stood there. */
  readonly head: number
  readonly maker_fee: Wei
  readonly taker_fee: Wei
  readonly oracle_signatures: string
  /** Every account with a fill, after the batch. */
  readonly matched: readonly MatchedPosition[]
}

/**
 * The protection of the market orders that an auction fills or ends, and what it was computed from. It precedes
 * the rows of the auction's result, also of an auction in which no orders crossed.
 */
export interface OrdersProtected {
  readonly kind: 'orders_protected'
  readonly as_of: number
  readonly rule_version: number
  readonly oracle_price: Wei
  readonly oracle_at: number
  /** The head of the journal in the market's previous auction: limit orders up to it counted. */
  readonly standing_seq: number
  /** The width of the market's price protection in force. */
  readonly price_protection: Wei
  /** Prices in ticks, `reference` in wei. `best` and `level` are null if the standing quotes do not suffice. */
  readonly orders: readonly {
    readonly order_id: string
    readonly user_id: number
    readonly best: number | null
    readonly level: number | null
    readonly reference: Wei
    readonly price: number
  }[]
}

export interface BatchCleared extends Partial<BatchTerms> {
  readonly kind: 'batch_cleared'
  readonly batch_id: number
  readonly as_of: number
  readonly oracle_price: Wei
  readonly oracle_at: number
  readonly lo: number
  readonly hi: number
  readonly price: number
  readonly volume: number
  readonly demand: number
  readonly supply: number
  readonly rule: string
  /** See `RULE_VERSION`. Rows from before it was recorded do not have it. */
  readonly rule_version?: number
  readonly parts: number
  readonly fills: readonly MatchedFill[]
  /**
   * Orders that leave the book with this batch and end once it is mined: the remainders of market orders, and
   * reduce-only orders whose position the batch closes or turns (POSITION_CLOSED).
   */
  readonly closing: readonly {
    readonly order_id: string
    readonly reason: StatusReason
    /** The fill that closes the position, if the order leaves with it. */
    readonly closed_by?: string
  }[]
}

export interface PartSubmitted {
  readonly kind: 'part_submitted'
  readonly batch_id: number
  readonly part: number
  readonly action_id: number
  readonly tx_hash: string
  readonly at: number
}

export interface PositionChange {
  readonly user_id: number
  readonly size_delta: number
  readonly entry_notional_delta: Wei
  readonly folded_margin_delta: Wei
  readonly leverage_before: number
  readonly leverage_after: number
}

export interface FillSettled {
  readonly fill_id: string
  /**
   * Whether a `batch_cleared` row contains this fill. False if only the chain has it (after a database
   * restore): it was never settling here and holds nothing. Its order may be unknown; then `order_id` is
   * `<market>-<maker>-<salt>`.
   */
  readonly matched: boolean
  readonly order_id: string
  /** Of a forced order. If it is unknown, `order_id` is `<market>-liquidation-<account>-<number>`. */
  readonly forced?: true
  readonly user_id: number
  readonly side: Side
  readonly steps: number
  readonly taker_steps: number
  readonly fee: Wei
  /** As emitted by the chain, fee included. */
  readonly free_delta: Wei
  /**
   * The share of a debit that exceeded the free balance and was paid from a pending withdrawal. `free`
   * changes by `free_delta` + `from_pending`.
   */
  readonly from_pending: Wei
  readonly realized_pnl: Wei
  /** The held reservation that this settlement releases. */
  readonly held: Wei
}

/**
 * A part was mined. If `rollback` is true, its block left the chain and every change is undone: the amounts
 * are those of the original row, and only `orders` contains the statuses after this row.
 */
export interface PartSettled {
  readonly kind: 'part_settled'
  readonly rollback: boolean
  readonly batch_id: number
  readonly part: number
  readonly parts: number
  readonly action_id: number
  /** The time as of which the batch was matched. */
  readonly as_of?: number
  /** Of the action, at which it changed the positions. Rows from before it was recorded do not have it. */
  readonly funding_index?: Wei
  readonly price: number
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
  readonly fills: readonly FillSettled[]
  readonly positions: readonly PositionChange[]
  readonly orders: readonly SettledOrder[]
  /** Those of `orders` that end, or leave the book, because the part closed or turned the position that they reduce. */
  readonly position_closed: readonly string[]
}

/** An order's status after a block. */
export interface SettledOrder {
  readonly order_id: string
  readonly user_id: number
  readonly status: OrderStatus
  /** Of a terminal status; or why the order has left the book and is to end. */
  readonly reason: StatusReason | null
  readonly reserved_delta: Wei
  /** Why an open order ends with its settling fills where `reason` does not show it: the remainder of a market order. */
  readonly closing_reason?: StatusReason
  /** The fill that closed its position, if it has left the book, or has ended, with that fill. */
  readonly closed_by?: string
}

/** The block of the part has the configured confirmations: its fills are CONFIRMED. */
export interface PartConfirmed {
  readonly kind: 'part_confirmed'
  readonly batch_id: number
  readonly part: number
  readonly block: number
  readonly at: number
}

/**
 * Fills that will not settle. Their orders are as they were before the batch, or have ended; then an
 * `order_ended` row has the reason.
 */
export interface BatchVoided {
  readonly kind: 'batch_voided'
  readonly batch_id: number
  readonly from_part: number
  readonly why: string
  readonly at: number
  readonly fills: readonly MatchedFill[]
  readonly reopened: readonly string[]
  /**
   * Reduce-only orders that are back in the book, or wait for their trigger again, because a fill that closed
   * their position is voided. Absent in rows written before such orders left the book at the match.
   */
  readonly restored?: readonly string[]
  /** The chain has refused the first part. Without it the part was never mined, and is voided like those behind it. */
  readonly is_reverted?: true
  /** It has, and its error names neither an order nor an account. */
  readonly is_unnamed?: true
}
