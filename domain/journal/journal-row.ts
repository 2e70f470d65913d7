/** Journal rows: the ordered record behind the read model, bookmarks, the live feed and crash recovery. */
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
   * Expiration of the order, or of the signing session key if that is earlier; 0 never expires. See
   * `aliveUntil`.
   */
  readonly alive_until: number
  /** PENDING_TRIGGER or OPEN. */
  readonly status: OrderStatus
  readonly accepted_at: number
  /**
   * Steps that may open a position.
   * `reserved_price` in ticks: price of the fee allowance, and of the margin except for a limit sell.
   */
  readonly openable: number
  readonly reserved: Wei
  readonly reserved_price: number
  /** A forced order: reduce-only, market type, without a trader's signature. */
  readonly forced?: true
  /** Label that the trader assigned to the order. */
  readonly client_order_id?: string
  /** Absent for forced orders, which no trader signs. */
  readonly signature?: string
  /** This and the next three fields exist from version 2 on. Absent for `gtc`. */
  readonly time_in_force?: TimeInForce
  readonly post_only?: true
  /** Signed steps beyond `quantity`, which the order must not fill. */
  readonly unused?: number
  /** Id of the replaced order. The row before this row ends that order with the reason REPLACED. */
  readonly replaces?: string
  /** From version 3 on: bracket number. */
  readonly bracket?: number
  /** From version 3 on: true for an exit that waits until its bracket's entry has matched. */
  readonly dormant?: true
  /** From version 4 on: label of the program that built the order. */
  readonly builder?: string
}

/** Cause of a trigger. It is stored with the order and shown to its owner. */
export interface TriggerEvidence {
  /** Time of the trigger. */
  readonly at: number
  /** Mark price of the preceding `prices_updated` row; it reached the trigger. */
  readonly mark_price: Wei
  readonly oracle_price: Wei
  /** Observation time of the oracle price. */
  readonly oracle_at: number
  /** The first batch in which the order can take part. */
  readonly batch_id: number
}

/**
 * The mark has reached the trigger: the order is OPEN, this row's sequence is its seq, and its reservation is
 * recomputed. An `order_ended` row follows if the order cannot continue.
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
 * The order has left the book and waits for the batch that settles its matched steps.
 * Status CANCEL_PENDING_FINALIZE, also after an expiry.
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

/** The reservation of an open order has changed because the account's position has changed. */
export interface ReservationChanged {
  readonly kind: 'reservation_changed'
  readonly order_id: string
  readonly user_id: number
  readonly openable: number
  readonly reserved_price: number
  /** Change of the account's reservation: `reserved` plus `held`, as in every row. */
  readonly reserved_delta: Wei
}

/** Changes of a market's averages by a new mark. Premium intervals before `first` are dropped. */
export interface AveragesChange {
  readonly basis: Wei
  readonly basis_at: number
  readonly premium_at: number
  readonly first: number | null
  /** Per interval: start, milliseconds covered by samples, and the sum of the samples. */
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

/** A market field in JSON: amounts are decimal strings. */
export type StoredValue = string | number | boolean

export interface MarketListed {
  readonly kind: 'market_listed'
  readonly spec: Record<keyof MarketSpec, StoredValue>
  /** Width of price protection. Absent in rows from before it was recorded; the default applied then. */
  readonly price_protection?: Wei
}

/** A new protection width was announced. It replaces an earlier announcement not yet in force at `at`. */
export interface ProtectionAnnounced {
  readonly kind: 'protection_announced'
  readonly at: number
  /** Width in force at `at`. */
  readonly price_protection: Wei
  readonly next_price_protection: Wei
  /** Auctions with an `asOf` at or after this time apply the announced width. */
  readonly next_price_protection_at: number
}

/**
 * Positions and free balances that changed outside batches.
 * `rollback`: the block left the chain and every change is undone.
 */
export interface PositionsMoved {
  readonly kind: 'positions_moved'
  readonly cause: MoveCause
  readonly rollback: boolean
  /** Id of the inheritance or deleveraging action. Absent in rows from before it was recorded. */
  readonly action_id?: number
  /**
   * Funding index at the change; after the market's end, the last index. Absent in rows from before it was
   * recorded.
   */
  readonly funding_index?: Wei
  /**
   * Account of the changed position; for a coverage, the payer.
   * This and the next two fields are absent in rows from before they were recorded.
   */
  readonly account?: number
  /** For an adjustment: signer, nonce, and the time up to which its funding was accrued. */
  readonly adjustment?: { readonly signer: string; readonly nonce: string; readonly as_of: number }
  /** For an inheritance or a deleveraging: the deciding oracle price and its observation time. */
  readonly oracle_price?: Wei
  readonly oracle_at?: number
  /**
   * For an inheritance or a deleveraging: the time of the decision.
   * Reduce-only orders accepted later stay open for the account's next position.
   */
  readonly as_of?: number
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
  readonly positions: readonly PositionChange[]
  readonly balances: readonly { readonly user_id: number; readonly free_delta: Wei }[]
  /** Deficit of the account that was reported as insolvent. */
  readonly deficit?: Wei
  /**
   * Reduce-only orders that end or leave the book because their position closed or turned.
   * Absent in rows from before such moves ended orders.
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
/**
 * A row contains changes, not totals: shards may be projected in any interleaving, and negating a row undoes it. Wei
 * are decimal strings. `v` is the format version; rows of version 1 omit it.
 */
export type JournalRow = (MarketRow | AccountsRow | ChainRow) & { readonly v?: number }

/**
 * Shard of users and the bank's ledger. It sorts before every market shard, and locks are taken in this
 * order.
 */
export const ACCOUNTS_SHARD = 'accounts'
/** Shard of rows about blocks. */
export const CHAIN_SHARD = 'chain'
export const marketShard = (marketId: number): string => `m${marketId}`
