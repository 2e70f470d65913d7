/**
 * Market journal rows about batches: the auction result, and the settlement, confirmation or void of its
 * parts.
 */
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
  /** The order's reservation that is held until this fill is mined. */
  readonly held: Wei
  /** Steps that open a position, if any. This field and the next exist only in `batch_cleared`. */
  readonly opening?: number
  /** Slot of a partly filled order; see `PartialSlots`. */
  readonly partial_slot?: number
}

/** Position of an account including all matched fills, mined or not. */
export interface MatchedPosition {
  readonly user_id: number
  readonly size: number
  readonly entry_notional: Wei
  readonly folded_margin: Wei
  readonly leverage: number
}

/** Inputs of settlement and of the market state beyond the auction result. */
export interface BatchTerms {
  /** Journal head that the auction read: orders up to it were in the book. */
  readonly head: number
  readonly maker_fee: Wei
  readonly taker_fee: Wei
  readonly oracle_signatures: string
  /** Positions after the batch of every account with a fill. */
  readonly matched: readonly MatchedPosition[]
}

/**
 * Protections of the market orders that an auction fills or ends, with their inputs.
 * The row precedes the rows of the auction result. It is also written if no orders crossed.
 */
export interface OrdersProtected {
  readonly kind: 'orders_protected'
  readonly as_of: number
  readonly rule_version: number
  readonly oracle_price: Wei
  readonly oracle_at: number
  /** Journal head at the market's previous auction: limit orders up to it counted. */
  readonly standing_seq: number
  /** Price-protection width in force in the market. */
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
  /** See `RULE_VERSION`. Absent in rows from before it was recorded. */
  readonly rule_version?: number
  readonly parts: number
  readonly fills: readonly MatchedFill[]
  /**
   * Orders that leave the book with this batch and end once it is mined.
   * These are remainders of market orders, and reduce-only orders of a position that the batch closes or
   * turns (POSITION_CLOSED).
   */
  readonly closing: readonly {
    readonly order_id: string
    readonly reason: StatusReason
    /** Id of the fill that closes the position, if the order leaves for that reason. */
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
   * Whether a `batch_cleared` row contains this fill. False if only the chain has it after a database restore;
   * `order_id` of an unknown order is then `<market>-<maker>-<salt>`.
   */
  readonly matched: boolean
  readonly order_id: string
  /**
   * True for a forced order. If it is unknown, `order_id` is `<market>-liquidation-<account>-<number>`.
   */
  readonly forced?: true
  readonly user_id: number
  readonly side: Side
  readonly steps: number
  readonly taker_steps: number
  readonly fee: Wei
  /** Value from the chain's event, fee included. */
  readonly free_delta: Wei
  /**
   * Part of a debit that exceeded the free balance and was paid from a pending withdrawal.
   * `free` changes by `free_delta` + `from_pending`.
   */
  readonly from_pending: Wei
  readonly realized_pnl: Wei
  /** Held reservation that this settlement releases. */
  readonly held: Wei
}

/**
 * A part was mined.
 * If `rollback` is true, its block left the chain and every change is undone. Amounts are then copied from
 * the original row, and only `orders` contains the statuses after this row.
 */
export interface PartSettled {
  readonly kind: 'part_settled'
  readonly rollback: boolean
  readonly batch_id: number
  readonly part: number
  readonly parts: number
  readonly action_id: number
  /** `asOf` of the batch. */
  readonly as_of?: number
  /** Funding index at which the action changed the positions. Absent in rows from before it was recorded. */
  readonly funding_index?: Wei
  readonly price: number
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
  readonly fills: readonly FillSettled[]
  readonly positions: readonly PositionChange[]
  readonly orders: readonly SettledOrder[]
  /** Ids in `orders` that end or leave the book because the part closed or turned their position. */
  readonly position_closed: readonly string[]
}

/** An order's status after a block. */
export interface SettledOrder {
  readonly order_id: string
  readonly user_id: number
  readonly status: OrderStatus
  /** Reason of a terminal status, or the reason why the order has left the book and will end. */
  readonly reason: StatusReason | null
  readonly reserved_delta: Wei
  /**
   * Closing reason of an open order if `reason` cannot show it: the remainder of a market order ends with its
   * settling fills.
   */
  readonly closing_reason?: StatusReason
  /** Id of the fill that closed the position, if the order left the book or ended with that fill. */
  readonly closed_by?: string
}

/** The part's block has the configured confirmations: its fills are CONFIRMED. */
export interface PartConfirmed {
  readonly kind: 'part_confirmed'
  readonly batch_id: number
  readonly part: number
  readonly block: number
  readonly at: number
}

/**
 * Fills that will not settle.
 * Each order returns to its state before the batch, or ends; an `order_ended` row then states the reason.
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
   * Reduce-only orders that return to the book, or to waiting for their trigger, because the fill that closed
   * their position is voided.
   * Absent in rows from before such orders left the book at the match.
   */
  readonly restored?: readonly string[]
  /**
   * The chain reverted the first part. If absent, the first part was never mined; it is voided with all later
   * parts.
   */
  readonly is_reverted?: true
  /** The first part reverted, and its error names neither an order nor an account. */
  readonly is_unnamed?: true
}
