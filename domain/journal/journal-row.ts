/**
 * Rows of the journal: the one ordered record that the read model, the bookmarks, the live feed and crash recovery are made from.
 * They are stored as JSON, so amounts in wei are decimal strings. Rows carry changes, never totals: shards may be projected in any
 * interleaving, and a row can be taken back by its negation.
 */
import type { MarketSpec } from '../market/market.ts'
import type { OrderStatus, OrderType, Side, StatusReason } from '../orders/order.ts'

/** An amount in wei as a decimal string, possibly negative. */
export type Wei = string

export interface OrderPlaced {
  readonly kind: 'order_placed'
  readonly order_id: string
  readonly user_id: number
  readonly maker: string
  readonly signer: string
  readonly hash: string
  readonly salt: number
  readonly side: Side
  readonly type: OrderType
  readonly price: number
  readonly quantity: number
  readonly trigger: number
  readonly leverage: number
  readonly reduce_only: boolean
  readonly expiration: number
  /** The expiration, or the session key's that signed it where that is earlier; 0 never ends. See `aliveUntil`. */
  readonly alive_until: number
  /** PENDING_TRIGGER or OPEN. */
  readonly status: OrderStatus
  readonly accepted_at: number
  /** Steps that may open a position, and what they hold back: margin and fee allowance at `reserved_price` ticks. */
  readonly openable: number
  readonly reserved: Wei
  readonly reserved_price: number
}

/** What triggered a conditional order. Kept with the order, shown to its owner. */
export interface TriggerEvidence {
  /** When it was triggered. */
  readonly at: number
  /** The mark that crossed its trigger: the one of the `prices_updated` row just before. */
  readonly mark_price: Wei
  readonly oracle_price: Wei
  /** When the oracle's price was observed. */
  readonly oracle_at: number
  /** The first batch that it can take part in. */
  readonly batch_id: number
}

/**
 * The mark has crossed the trigger: the order is OPEN, and its place in the book is this row's sequence. What it holds back is
 * computed anew. Where it cannot go on (no position to reduce, not paid for any more), an `order_ended` row follows.
 */
export interface OrderTriggered extends TriggerEvidence {
  readonly kind: 'order_triggered'
  readonly order_id: string
  readonly user_id: number
  readonly openable: number
  readonly reserved_price: number
  readonly reserved_delta: Wei
}

export const evidenceOf = ({
  at,
  mark_price,
  oracle_price,
  oracle_at,
  batch_id,
}: TriggerEvidence): TriggerEvidence => ({
  at,
  mark_price,
  oracle_price,
  oracle_at,
  batch_id,
})

/** The order leaves the book but waits for the batch that holds some of it: CANCEL_PENDING_FINALIZE, or an expiry that waits likewise. */
export interface OrderEnding {
  readonly kind: 'order_ending'
  readonly order_id: string
  readonly user_id: number
  readonly status: OrderStatus
  readonly reason: StatusReason
  readonly note: string | null
  readonly reserved_delta: Wei
  readonly at: number
}

export interface OrderEnded {
  readonly kind: 'order_ended'
  readonly order_id: string
  readonly user_id: number
  readonly status: 'FILLED' | 'CANCELLED' | 'EXPIRED'
  readonly reason: StatusReason
  readonly note: string | null
  readonly reserved_delta: Wei
  readonly at: number
}

/** What an open order holds back has changed, because its account's position has. */
export interface ReservationChanged {
  readonly kind: 'reservation_changed'
  readonly order_id: string
  readonly user_id: number
  readonly openable: number
  readonly reserved_price: number
  /** As everywhere: the change of what the account holds back, `reserved` and `held` together. */
  readonly reserved_delta: Wei
}

/** One order's share of one part. `fill_id` is `<market>-<batch>-<part>-<order seq>`. */
export interface MatchedFill {
  readonly fill_id: string
  readonly order_id: string
  readonly user_id: number
  readonly part: number
  readonly side: Side
  readonly steps: number
  readonly taker_steps: number
  /** Of the order's reservation, what this fill holds until its settlement is mined. */
  readonly held: Wei
}

export interface BatchCleared {
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
  readonly parts: number
  readonly fills: readonly MatchedFill[]
  /** Orders that leave the book with this batch although part of them is settling: the remainder of market orders. */
  readonly closing: readonly { readonly order_id: string; readonly reason: StatusReason }[]
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
   * Whether a `batch_cleared` row told of it. False where only the chain knows it (a restored database): it was never settling
   * here and holds nothing. Its order may be unknown; then `order_id` is `<market>-<maker>-<salt>`.
   */
  readonly matched: boolean
  readonly order_id: string
  /** A liquidation: `order_id` is `<market>-liquidation-<account>-<number>`, and there is no such order. */
  readonly forced?: true
  readonly user_id: number
  readonly side: Side
  readonly steps: number
  readonly taker_steps: number
  readonly fee: Wei
  /** As the chain tells it, fee included. */
  readonly free_delta: Wei
  /** What a pending withdrawal paid of a debit that the free balance did not cover: free moves by both together. */
  readonly from_pending: Wei
  readonly realized_pnl: Wei
  /** What the fill held; freed by this settlement. */
  readonly held: Wei
}

/**
 * A part was mined. With `rollback` every change is to be taken back: its block left the chain. The amounts are then those of the
 * row that is taken back; only `orders` tells the statuses after this row.
 */
export interface PartSettled {
  readonly kind: 'part_settled'
  readonly rollback: boolean
  readonly batch_id: number
  readonly part: number
  readonly parts: number
  readonly action_id: number
  readonly price: number
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
  readonly fills: readonly FillSettled[]
  readonly positions: readonly PositionChange[]
  /** Status of each order after this row; a terminal one has its reason. */
  readonly orders: readonly {
    readonly order_id: string
    readonly user_id: number
    readonly status: OrderStatus
    readonly reason: StatusReason | null
    readonly reserved_delta: Wei
  }[]
  /** Those of `orders` that leave because the part closed, or turned, the position that they protect. */
  readonly position_closed: readonly string[]
}

/** The block that holds the part is sealed: its fills are CONFIRMED. */
export interface PartConfirmed {
  readonly kind: 'part_confirmed'
  readonly batch_id: number
  readonly part: number
  readonly block: number
  readonly at: number
}

/** Fills that will not settle: the orders are as they were before the batch, or ended for the reason in an `order_ended` row. */
export interface BatchVoided {
  readonly kind: 'batch_voided'
  readonly batch_id: number
  readonly from_part: number
  readonly why: string
  readonly at: number
  readonly fills: readonly MatchedFill[]
  readonly reopened: readonly string[]
}

export interface PricesUpdated {
  readonly kind: 'prices_updated'
  readonly oracle_price: Wei
  readonly oracle_at: number
  readonly mark_price: Wei
  readonly at: number
}

/** A field of a market as JSON keeps it: amounts are decimal strings. */
export type StoredValue = string | number | boolean

export interface MarketListed {
  readonly kind: 'market_listed'
  readonly spec: Record<keyof MarketSpec, StoredValue>
}

export interface UserCreated {
  readonly kind: 'user_created'
  readonly user_id: number
  readonly address: string
  readonly at: number
}

/** The bank's ledger moved for a reason outside the auctions. */
export interface BalanceChanged {
  readonly kind: 'balance_changed'
  readonly cause: 'deposit' | 'withdrawal_request' | 'withdrawal' | 'fees_collected'
  readonly rollback: boolean
  readonly user_id: number
  readonly free_delta: Wei
  readonly pending_withdrawal_delta: Wei
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/** What a session key may do has changed on the chain; with `rollback`, back to what it was. Null: it was never registered. */
export interface SessionKeyChanged {
  readonly kind: 'session_key_changed'
  readonly rollback: boolean
  readonly owner: string
  readonly key: string
  readonly before: SessionKeyState | null
  readonly after: SessionKeyState | null
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/** Times in Unix seconds. */
export interface SessionKeyState {
  /** Bits: 1 orders, 2 margin and leverage. */
  readonly permissions: number
  readonly registered_at: number
  /** Its access ends at this second, whatever is registered again. */
  readonly expires_at: number
  readonly revoked_at: number | null
}

/**
 * The last row of a command that touched several shards: how far each of their logs had come with it. Projected once all of them are,
 * so that its place in `accounts` is a bookmark for the whole command.
 */
export interface CommandSpanned {
  readonly kind: 'command_spanned'
  readonly user_id: number
  /** Sequence by market shard. */
  readonly shards: Readonly<Record<string, number>>
  readonly at: number
}

/**
 * Positions and free balances that moved outside batches. With `rollback` every change is to be taken back: its block left the
 * chain.
 */
export interface PositionsMoved {
  readonly kind: 'positions_moved'
  /** Taken over by the backstop; deleveraged; after the market's end counted as a deficit, covered or claimed. */
  readonly cause: 'inherited' | 'deleveraged' | 'insolvency_reported' | 'deficit_covered' | 'claimed'
  readonly rollback: boolean
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
  readonly positions: readonly PositionChange[]
  readonly balances: readonly { readonly user_id: number; readonly free_delta: Wei }[]
}

export type MarketRow =
  | OrderPlaced
  | OrderTriggered
  | OrderEnding
  | OrderEnded
  | ReservationChanged
  | BatchCleared
  | PartSubmitted
  | PartSettled
  | PartConfirmed
  | PositionsMoved
  | BatchVoided
  | PricesUpdated
  | MarketListed
export type AccountsRow = UserCreated | BalanceChanged | SessionKeyChanged | CommandSpanned
export type JournalRow = MarketRow | AccountsRow

/** The shard that holds users and the bank's ledger. Sorts before every market shard, which is the lock order. */
export const ACCOUNTS_SHARD = 'accounts'
export const marketShard = (marketId: number): string => `m${marketId}`
