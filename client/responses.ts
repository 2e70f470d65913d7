/** Response bodies of the REST interface. Amounts appear twice: as a number, and as an integer × 1e18 (`_e18_raw`). */
import type { OrderStatus, OrderType, Side, StatusReason, TimeInForce } from '../domain/orders/order.ts'
import type { Amounts, MaybeAmounts } from './amount-fields.ts'
import type { PlacementOutcome } from './errors.ts'

export type * from './account-responses.ts'
export type { Amounts, MaybeAmounts } from './amount-fields.ts'
export type * from './market-responses.ts'

/**
 * Settlement stage of a fill. RETRYING: its block left the chain and the transaction is sent again. FAILED:
 * voided.
 */
export type FillStatus = 'MATCHED' | 'SUBMITTED' | 'MINED' | 'CONFIRMED' | 'RETRYING' | 'FAILED'

export type OrderEventKind = 'CREATED' | 'PARTIALLY_FILLED' | 'FILLED' | 'CANCELLED' | 'EXPIRED'

/** Identifies a write. A read with this bookmark reflects at least that write. */
export interface Bookmark {
  readonly shard_id: string
  readonly shard_seq: string
}

export type Level = Amounts<'price' | 'quantity'> & { readonly side: Side; readonly order_count: number }

export interface Orderbook {
  readonly market_id: number
  readonly symbol: string
  /** State of the book: journal sequence of the market, and its last batch. */
  readonly shard_seq: string
  readonly batch_id: number | null
  /** Both sides are sorted from the best price. */
  readonly long_levels: readonly Level[]
  readonly short_levels: readonly Level[]
}

/** The prices that triggered a conditional order. */
export type Trigger = Amounts<'mark_price' | 'oracle_price'> & {
  readonly at: string
  readonly oracle_price_at: string
  readonly batch_id: number
}

export type PlacedOrder = Amounts<
  | 'price'
  | 'quantity'
  | 'signed_quantity'
  | 'filled_quantity'
  | 'settling_quantity'
  | 'remaining_quantity'
  | 'fee'
  | 'reserved_margin'
  | 'trigger_price'
> &
  /**
   * `effective_price`: the limit at which an open limit order takes part now, if it differs from `price`.
   * `protection_price`: the worst fill price of a market order in the last batch that it took part in.
   */
  MaybeAmounts<'average_price' | 'effective_price' | 'protection_price'> & {
    readonly order_id: string
    readonly order_hash: string
    /** Label that the trader assigned; null if there is none. */
    readonly client_order_id: string | null
    readonly market_id: number
    readonly symbol: string
    readonly user_id: number
    readonly maker: string
    /** Null for a forced order, which no trader signs. */
    readonly signer: string | null
    readonly side: Side
    readonly order_type: OrderType
    readonly status: OrderStatus
    readonly status_reason: StatusReason | null
    readonly cancel_reason: string | null
    readonly trigger: Trigger | null
    readonly leverage: number
    readonly reduce_only: boolean
    readonly time_in_force: TimeInForce
    readonly post_only: boolean
    /** Bracket number; null outside a bracket. */
    readonly bracket_id: number | null
    /** Id of the replaced order; null for a placement. */
    readonly replaces: string | null
    readonly builder: string | null
    /** True for a forced order. It cannot be cancelled. */
    readonly forced: boolean
    readonly expiration_seconds: number
    readonly salt: string
    readonly created_at: string
    readonly updated_at: string
  }

/** `protection_price`: protection price of a market order in the batch of the fill. */
export type Fill = Amounts<'price' | 'quantity' | 'taker_quantity' | 'fee'> &
  MaybeAmounts<'realized_pnl' | 'available_margin_delta' | 'protection_price'> & {
    readonly fill_id: string
    readonly order_id: string
    readonly user_id: number
    readonly market_id: number
    readonly symbol: string
    readonly batch_id: number
    readonly part: number
    readonly action_id: number | null
    readonly side: Side
    /** True for a fill of a forced order. */
    readonly forced: boolean
    readonly status: FillStatus
    readonly tx_hash: string | null
    readonly block_number: number | null
    readonly created_at: string
    readonly updated_at: string
    /** Label of the program that built the order; null if there is none. */
    readonly builder: string | null
  }

export type Balance = Amounts<
  'total' | 'available' | 'free' | 'reserved' | 'position_margin' | 'pending_withdrawals'
>

/** Balance from a read; answers to commands omit the time. */
export type MarginBalance = Balance & {
  /** Earliest payout time of the pending withdrawals; null if none is pending. */
  readonly pending_withdrawals_payable_at: string | null
}

export type Position = Amounts<
  'size' | 'pending_size' | 'entry_notional' | 'margin' | 'realized_pnl' | 'fees'
> &
  MaybeAmounts<
    | 'entry_price'
    | 'mark_price'
    | 'oracle_price'
    | 'unrealized_pnl'
    | 'notional'
    | 'margin_ratio'
    | 'liquidation_price'
    | 'bankruptcy_price'
  > & {
    readonly user_id: number
    readonly market_id: number
    readonly symbol: string
    /** Null if the position is flat. */
    readonly side: Side | null
    readonly leverage: number
    /**
     * Fifth of the deleveraging ranking, from 1 to 5, where 5 is deleveraged first.
     * Null without profit, and while the rank is unknown.
     */
    readonly adl_rank: number | null
    readonly updated_at: string
  }

/** Protection price of a market order against the present book; null for limit orders. */
export type ExpectedProtection = MaybeAmounts<'expected_protection_price'>

export interface Placement extends ExpectedProtection {
  readonly order: PlacedOrder
  /** Empty for a new order; later batches fill it. */
  readonly fills: readonly Fill[]
  /** True if the same signed order was accepted before; `order` is that order. */
  readonly is_duplicate: boolean
  readonly balance: Balance
  readonly read_after: Bookmark
}

/** A closing order's placement. The quantities are null in a repetition long after the order has ended. */
export interface PositionClose
  extends Placement,
    MaybeAmounts<'position_quantity' | 'closing_quantity' | 'staying_quantity'> {}

/** The replaced order ends once its settling steps are mined or voided. */
export interface Replacement extends Placement {
  readonly replaced: PlacedOrder
}

export interface Cancellation {
  readonly cancelled: boolean
  readonly is_duplicate: boolean
  readonly order: PlacedOrder
  readonly read_after: Bookmark
}

/** Why one order of a batch was rejected. */
export interface BatchItemError {
  readonly error: {
    readonly message: string
    readonly details: {
      readonly code: string
      /** Outcome of this order. A rejected order may still have been placed by an earlier command. */
      readonly outcome: PlacementOutcome
      readonly [more: string]: unknown
    }
  }
}

export interface BatchPlacement {
  readonly client_request_id: string
  readonly mode: 'atomic' | 'best_effort'
  /** True if the command was executed before; this is its first response. */
  readonly is_duplicate: boolean
  readonly accepted: number
  readonly refused: number
  /** One result per order, in request order. */
  readonly results: readonly (Pick<Placement, 'order' | 'is_duplicate' | 'read_after'> | BatchItemError)[]
  readonly balance: Balance
  readonly read_after: Bookmark
}

export interface BatchReplacement extends Omit<BatchPlacement, 'results'> {
  /** One result per replacement, in request order. */
  readonly results: readonly (
    | Pick<Replacement, 'order' | 'replaced' | 'is_duplicate' | 'read_after'>
    | BatchItemError
  )[]
}

/** Why one cancel of a batch was rejected. */
export interface CancelItemError {
  readonly error: {
    readonly message: string
    readonly details: { readonly code: string; readonly [more: string]: unknown }
  }
}

type CancelResult = Cancellation & { readonly order_hash: string }

export interface BatchCancellation {
  readonly client_request_id: string
  readonly is_duplicate: boolean
  /** One result per hash, in request order. */
  readonly results: readonly (CancelResult | (CancelItemError & { readonly order_hash: string }))[]
  readonly read_after: Bookmark
}

export interface SweepCancellation {
  readonly cancelled_count: number
  readonly is_duplicate: boolean
  readonly results: readonly CancelResult[]
  readonly read_after: Bookmark
}

export interface CancelSwitch {
  readonly armed: boolean
  readonly timeout_seconds: number | null
  readonly fire_at: string | null
  readonly remaining_seconds: number | null
  readonly server_time: string
}

export type Validation = Amounts<
  | 'opening_quantity'
  | 'closing_quantity'
  | 'reserved_price'
  | 'margin'
  | 'fee_allowance'
  | 'fee_allowance_price'
  | 'reserved_margin'
> &
  ExpectedProtection & {
    readonly valid: boolean
    readonly order_hash: string
    readonly digest: string
    readonly signer: string | null
    readonly is_duplicate: boolean
    readonly status: OrderStatus
    readonly side: Side
    readonly price_band: Amounts<'lowest' | 'highest' | 'oracle_price'>
    readonly nearest_valid: Amounts<
      'lowest_price' | 'highest_price' | 'tick_size' | 'min_quantity' | 'max_quantity' | 'step_size'
    > & { readonly max_leverage: number }
    readonly balance: Balance
    /** The EIP-712 typed data that the order's signature covers. */
    readonly typed_data: {
      readonly domain: {
        readonly name: string
        readonly version: string
        readonly chainId: number
        readonly verifyingContract: string
      }
      readonly primaryType: string
      readonly types: { readonly Order: readonly { readonly name: string; readonly type: string }[] }
      readonly message: Readonly<
        Record<'flags' | 'quantity' | 'price' | 'triggerPrice' | 'leverage' | 'maker' | 'expiration', string>
      > & { readonly triggerCondition: number }
    }
  }

/**
 * Auction of one batch, with the inputs of its price. The OpenAPI document describes `rule` and
 * `rule_version`.
 */
export type Auction = Amounts<
  'price' | 'volume' | 'demand' | 'supply' | 'oracle_price' | 'surplus' | 'fill_ratio'
> & {
  readonly rationed_side: Side | null
  readonly transactions: readonly {
    readonly part: number
    readonly status: 'MATCHED' | 'SUBMITTED' | 'MINED' | 'CONFIRMED' | 'RETRYING' | 'VOIDED'
    readonly tx_hash: string | null
  }[]
  readonly market_id: number
  readonly symbol: string
  readonly batch_id: number
  readonly as_of: string
  readonly status: 'SETTLING' | 'SETTLED' | 'VOIDED'
  readonly rule: string
  readonly rule_version: number | null
  readonly price_band: Amounts<'lowest' | 'highest'>
  readonly oracle_price_at: string
}

export interface SharedContracts {
  readonly addressCollateralToken: string
  readonly addressMarginBank: string
  readonly addressAccountManager: string
  readonly addressForwarder: string
  readonly chain_id: number
}

export interface FaucetPayout {
  readonly request_id: number
  readonly status: 'SIGNED' | 'MINED'
  readonly tx_hash: string
  readonly wallet: string
}

/** One event of an order. Fields of `details` that the kind does not use are null. */
export interface OrderEvent {
  readonly event_id: string
  readonly kind: OrderEventKind
  readonly order_id: string
  readonly order_hash: string
  readonly client_order_id: string | null
  readonly user_id: number
  readonly market_id: number
  readonly symbol: string
  readonly shard_seq: string
  readonly created_at: string
  readonly details: MaybeAmounts<'price' | 'quantity' | 'fee'> & {
    readonly status: OrderStatus | null
    readonly status_reason: StatusReason | null
    readonly cancel_reason: string | null
    readonly fill_id: string | null
    readonly batch_id: number | null
    readonly part: number | null
    readonly action_id: number | null
    readonly tx_hash: string | null
    readonly trigger: Trigger | null
  }
}

export type FillStage = Amounts<'price' | 'quantity'> & {
  readonly fill_id: string
  readonly stage: FillStatus
  readonly batch_id: number
  readonly part: number
  readonly action_id: number | null
  readonly tx_hash: string | null
  readonly block_number: number | null
  readonly failure: string | null
  readonly matched_at: string
  readonly submitted_at: string | null
  readonly mined_at: string | null
  readonly confirmed_at: string | null
  readonly failed_at: string | null
  readonly updated_at: string
}

export type FillProcessing = Amounts<'quantity' | 'filled_quantity' | 'settling_quantity'> & {
  readonly order_id: string
  readonly order_hash: string
  readonly market_id: number
  readonly symbol: string
  readonly status: OrderStatus
  /** True while a fill is matched and not mined. */
  readonly settlement_pending: boolean
  /** True while a fill is not confirmed. */
  readonly confirmation_pending: boolean
  readonly stages: Readonly<Record<FillStatus, number>>
  readonly fills: readonly FillStage[]
  readonly next_cursor: string | null
}

/** Fields shared by the public fills of a part. */
type CommonOfFills = Pick<
  Fill,
  'batch_id' | 'part' | 'status' | 'tx_hash' | 'block_number' | 'created_at' | 'updated_at'
> &
  Amounts<'price'>

type OwnOfFill = Pick<Fill, 'fill_id' | 'side' | 'forced'> & Amounts<'quantity' | 'taker_quantity'>

/** A fill without its account. */
export type PublicFill = Pick<Fill, 'market_id' | 'symbol'> & OwnOfFill & CommonOfFills

/** Public fills of one part. Without `fills`, the fields apply to all fills of the part received earlier. */
export type PublicPart = CommonOfFills & { readonly fills?: readonly OwnOfFill[] }
