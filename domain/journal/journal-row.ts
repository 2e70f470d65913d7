/**
 * Rows of the journal, the ordered record from which the read model, bookmarks, the live feed and crash
 * recovery are derived.
 *
 * Rows are stored as JSON, so amounts in wei are decimal strings. They contain changes, never totals: shards
 * may be projected in any interleaving, and the negation of a row undoes it.
 */
import type { MarketSpec } from '../market/market.ts'
import type { OrderStatus, OrderType, Side, StatusReason, TimeInForce } from '../orders/order.ts'
import type { AccountsRow } from './accounts-row.ts'
import type { ActionRow } from './action-rows.ts'
import type { AdjustmentChanged } from './adjustment-row.ts'
import type {
  BatchCleared,
  BatchVoided,
  OrdersProtected,
  PartConfirmed,
  PartSettled,
  PartSubmitted,
  PositionChange,
  SettledOrder,
} from './batch-rows.ts'
import type { ChainRow } from './chain-rows.ts'
import type { EndingRow } from './ending-rows.ts'
import type { LiquidationChanged, LiquidationProgressed } from './liquidation-row.ts'
import type { MarginNoncesInvalidated } from './margin-nonces-row.ts'
import type { MoveCause } from './move-cause.ts'
import type { OperatorRow } from './operator-rows.ts'
import type { QueueRow } from './queue-rows.ts'
import type { Wei } from './wei.ts'

export interface OrderPlaced {
  readonly kind: 'order_placed'
  readonly order_id: string
  readonly user_id: number
  readonly maker: string
  /** Null for a forced order. */
  readonly signer: string | null
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
  /**
   * The expiration of the order, or of the session key that signed it if that is earlier; 0 never expires.
   * See `aliveUntil`.
   */
  readonly alive_until: number
  /** PENDING_TRIGGER or OPEN. */
  readonly status: OrderStatus
  readonly accepted_at: number
  /** Steps that may open a position. `reserved_price`: in ticks, of the fee allowance, and of the margin except for a limit sell. */
  readonly openable: number
  readonly reserved: Wei
  readonly reserved_price: number
  /** An order of a liquidation: a reduce-only market order that no trader has signed. */
  readonly forced?: true
  /** The trader's label of the order, if it has one. */
  readonly client_order_id?: string
  /** Absent where no trader has signed the order. */
  readonly signature?: string
  /** The next four fields: version 2. Absent for `gtc`. */
  readonly time_in_force?: TimeInForce
  readonly post_only?: true
  /** Signed steps beyond `quantity`, which the order must not fill. */
  readonly unused?: number
  /** Id of the order that it has replaced: the row before ends that order with the reason REPLACED. */
  readonly replaces?: string
  /** Version 3: number of its bracket. */
  readonly bracket?: number
  /** Version 3: an exit that waits until the entry of its bracket has matched. */
  readonly dormant?: true
  /** Version 4: label of the program that has built the order, if it has one. */
  readonly builder?: string
}

/** Why a conditional order was triggered. Stored with the order and shown to its owner. */
export interface TriggerEvidence {
  /** When it was triggered. */
  readonly at: number
  /** The mark that reached the trigger: that of the preceding `prices_updated` row. */
  readonly mark_price: Wei
  readonly oracle_price: Wei
  /** When the oracle price was observed. */
  readonly oracle_at: number
  /** The first batch in which the order can take part. */
  readonly batch_id: number
}

/**
 * The mark has reached the trigger. The order is OPEN, its seq in the book is this row's sequence, and its
 * reservation is recomputed. If the order cannot continue (no position to reduce, or insufficient margin), an
 * `order_ended` row follows.
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

/**
 * The order has left the book and waits for the batch that settles a part of it: status
 * CANCEL_PENDING_FINALIZE, also for an expiry.
 */
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

/** The reservation of an open order has changed, because its account's position has. */
export interface ReservationChanged {
  readonly kind: 'reservation_changed'
  readonly order_id: string
  readonly user_id: number
  readonly openable: number
  readonly reserved_price: number
  /** Change of the account's reservation, `reserved` and `held` together, as in every row. */
  readonly reserved_delta: Wei
}

/** What differs in a market's averages after a mark. Intervals of the premium before `first` are dropped. */
export interface AveragesChange {
  readonly basis: Wei
  readonly basis_at: number
  readonly premium_at: number
  readonly first: number | null
  /** Start, milliseconds of its samples, and their sum. */
  readonly premium: readonly StoredInterval[]
}

export type StoredInterval = readonly [from: number, sampled: number, sum: Wei]

export interface PricesUpdated {
  readonly kind: 'prices_updated'
  readonly oracle_price: Wei
  readonly oracle_at: number
  readonly mark_price: Wei
  readonly at: number
  readonly averages?: AveragesChange
}

/** A field of a market in JSON: amounts are decimal strings. */
export type StoredValue = string | number | boolean

export interface MarketListed {
  readonly kind: 'market_listed'
  readonly spec: Record<keyof MarketSpec, StoredValue>
  /** The width of price protection. Rows from before it was recorded do not have it: it was the default. */
  readonly price_protection?: Wei
}

/** Replaces an earlier announcement that was not in force at `at`. */
export interface ProtectionAnnounced {
  readonly kind: 'protection_announced'
  readonly at: number
  /** The width in force at that time. */
  readonly price_protection: Wei
  readonly next_price_protection: Wei
  /** The first auction with an `asOf` from this time on applies the announced width. */
  readonly next_price_protection_at: number
}

/**
 * Positions and free balances that changed outside batches. If `rollback` is true, their block left the chain
 * and every change is undone.
 */
export interface PositionsMoved {
  readonly kind: 'positions_moved'
  readonly cause: MoveCause
  readonly rollback: boolean
  /** Of an inheritance or a deleveraging. Rows from before it was recorded do not have it. */
  readonly action_id?: number
  /**
   * At which the positions changed; after the market's end the last one. Rows from before it was recorded do not have it.
   */
  readonly funding_index?: Wei
  /**
   * Whose position the backstop inherited, or was deleveraged, adjusted, reported or claimed; for a coverage the payer. This and the next two fields are
   * absent in rows from before they were recorded.
   */
  readonly account?: number
  /** Of an adjustment: the address that signed it, its nonce, and the time up to which funding was accrued for it. */
  readonly adjustment?: { readonly signer: string; readonly nonce: string; readonly as_of: number }
  /** Of an inheritance or a deleveraging: the oracle price that decided it, and its observation. */
  readonly oracle_price?: Wei
  readonly oracle_at?: number
  /** Of these: the time as of which it was decided. Reduce-only orders that were accepted later stay for the next position. */
  readonly as_of?: number
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
  readonly positions: readonly PositionChange[]
  readonly balances: readonly { readonly user_id: number; readonly free_delta: Wei }[]
  /** Of the account whose insolvency is reported. */
  readonly deficit?: Wei
  /**
   * Reduce-only orders that end, or leave the book, because their position closed or turned. Absent in rows
   * written before these orders ended with such a move.
   */
  readonly orders?: readonly SettledOrder[]
}

export type MarketRow =
  | OrderPlaced
  | OrderTriggered
  | OrderEnding
  | OrderEnded
  | ReservationChanged
  | OrdersProtected
  | BatchCleared
  | PartSubmitted
  | PartSettled
  | PartConfirmed
  | PositionsMoved
  | BatchVoided
  | PricesUpdated
  | MarketListed
  | ActionRow
  | EndingRow
  | LiquidationChanged
  | LiquidationProgressed
  | AdjustmentChanged
  | ProtectionAnnounced
  | MarginNoncesInvalidated
  | QueueRow
  | OperatorRow
/** `v`: the version of the row's format; rows of version 1 do not state it. */
export type JournalRow = (MarketRow | AccountsRow | ChainRow) & { readonly v?: number }

/** The shard of users and the bank's ledger. It sorts before every market shard; this is the lock order. */
export const ACCOUNTS_SHARD = 'accounts'
/** The shard of rows about blocks. */
export const CHAIN_SHARD = 'chain'
export const marketShard = (marketId: number): string => `m${marketId}`
