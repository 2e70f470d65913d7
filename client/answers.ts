/** What the exchange answers, by the names on the wire. Every amount comes twice: a number to read, `_e18_raw` to compute with. */
import type { OrderStatus, OrderType, Side, StatusReason } from '../domain/order.ts'

type Amounts<Name extends string> = { readonly [Key in Name]: number } & {
  readonly [Key in `${Name}_e18_raw`]: string
}
type MaybeAmounts<Name extends string> = { readonly [Key in Name]: number | null } & {
  readonly [Key in `${Name}_e18_raw`]: string | null
}

/** Names a write; a read that is given it shows at least that write. */
export interface Bookmark {
  readonly shard_id: string
  readonly shard_seq: string
}

export type Market = Amounts<
  | 'tick_size'
  | 'step_size'
  | 'min_order_size'
  | 'max_order_size'
  | 'min_order_price'
  | 'initial_margin_requirement'
  | 'maintenance_margin_requirement'
  | 'mtb_long'
  | 'mtb_short'
  | 'maker_fee'
  | 'taker_fee'
> &
  MaybeAmounts<'oracle_price' | 'mark_price' | 'last_price'> & {
    readonly market_id: number
    readonly symbol: string
    readonly type: 'perpetual' | 'future' | 'binary_future'
    readonly trading_enabled: boolean
    readonly mode: string
    readonly chain_id: number
    readonly trader_address: string
    readonly max_leverage: number
    readonly oracle_price_at: string | null
    readonly last_batch_id: number | null
  }

export type Level = Amounts<'price' | 'quantity'> & { readonly side: Side; readonly order_count: number }

export interface Orderbook {
  readonly market_id: number
  readonly symbol: string
  /** Best first, on both sides. */
  readonly long_levels: readonly Level[]
  readonly short_levels: readonly Level[]
}

export type PlacedOrder = Amounts<
  | 'price'
  | 'quantity'
  | 'filled_quantity'
  | 'settling_quantity'
  | 'remaining_quantity'
  | 'fee'
  | 'reserved_margin'
  | 'trigger_price'
> &
  MaybeAmounts<'average_price'> & {
    readonly order_id: string
    readonly order_hash: string
    readonly market_id: number
    readonly symbol: string
    readonly user_id: number
    readonly maker: string
    readonly signer: string
    readonly side: Side
    readonly order_type: OrderType
    readonly status: OrderStatus
    readonly status_reason: StatusReason | null
    readonly cancel_reason: string | null
    readonly leverage: number
    readonly reduce_only: boolean
    readonly expiration_seconds: number
    readonly salt: string
    readonly created_at: string
    readonly updated_at: string
  }

export type Fill = Amounts<'price' | 'quantity' | 'taker_quantity' | 'fee'> &
  MaybeAmounts<'realized_pnl'> & {
    readonly fill_id: string
    readonly order_id: string
    readonly user_id: number
    readonly market_id: number
    readonly symbol: string
    readonly batch_id: number
    readonly side: Side
    readonly status: 'MATCHED' | 'SUBMITTED' | 'MINED' | 'CONFIRMED' | 'RETRYING' | 'FAILED'
    readonly tx_hash: string | null
    readonly block_number: number | null
    readonly created_at: string
    readonly updated_at: string
  }

export type Balance = Amounts<
  'total' | 'available' | 'free' | 'reserved' | 'position_margin' | 'pending_withdrawals'
>

export type Position = Amounts<
  'size' | 'pending_size' | 'entry_notional' | 'margin' | 'realized_pnl' | 'fees'
> &
  MaybeAmounts<
    'entry_price' | 'mark_price' | 'oracle_price' | 'unrealized_pnl' | 'notional' | 'margin_ratio'
  > & {
    readonly user_id: number
    readonly market_id: number
    readonly symbol: string
    /** Null where the position is flat. */
    readonly side: Side | null
    readonly leverage: number
    readonly updated_at: string
  }

export interface Placement {
  readonly order: PlacedOrder
  /** Empty for a new order: fills come with later batches. */
  readonly fills: readonly Fill[]
  /** The same signed order had been accepted before; this is that order. */
  readonly is_duplicate: boolean
  readonly balance: Balance
  readonly read_after: Bookmark
}

export interface Cancellation {
  readonly cancelled: boolean
  readonly is_duplicate: boolean
  readonly order: PlacedOrder
  readonly read_after: Bookmark
}

/** Why one of several orders was refused. */
export interface Refusal {
  readonly error: {
    readonly message: string
    readonly details: { readonly code: string; readonly [more: string]: unknown }
  }
}

export interface BatchPlacement {
  readonly client_request_id: string
  readonly mode: 'atomic' | 'best_effort'
  /** The same command had been done before; this is its answer. */
  readonly is_duplicate: boolean
  readonly accepted: number
  readonly refused: number
  /** One per order, in their order. */
  readonly results: readonly (Pick<Placement, 'order' | 'is_duplicate' | 'read_after'> | Refusal)[]
  readonly balance: Balance
  readonly read_after: Bookmark
}

type CancelResult = Cancellation & { readonly order_hash: string }

export interface BatchCancellation {
  readonly client_request_id: string
  readonly is_duplicate: boolean
  /** One per hash, in their order. */
  readonly results: readonly (CancelResult | (Refusal & { readonly order_hash: string }))[]
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
  'opening_quantity' | 'closing_quantity' | 'reserved_price' | 'margin' | 'fee_allowance' | 'reserved_margin'
> & {
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
}

export interface SharedContracts {
  readonly addressCollateralToken: string
  readonly addressMarginBank: string
  readonly addressAccountManager: string
  readonly addressForwarder: string
  readonly chain_id: number
}

export interface FaucetAnswer {
  readonly tx_hash: string
  readonly wallet: string
}
