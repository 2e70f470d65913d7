/** An order as its maker signed it, and the words for its life. */
import type { Address, MarketId, OrderHash, Seconds, Steps, Ticks } from './units.ts'

export type Side = 'LONG' | 'SHORT'

export const ORDER_TYPES = [
  'MARKET',
  'LIMIT',
  'STOP_MARKET',
  'STOP_LIMIT',
  'TAKE_PROFIT_MARKET',
  'TAKE_PROFIT_LIMIT',
  'STOP_LOSS_MARKET',
  'STOP_LOSS_LIMIT',
] as const
export type OrderType = (typeof ORDER_TYPES)[number]

export type OrderStatus =
  | 'OPEN'
  | 'FILLED'
  | 'CANCELLED'
  | 'EXPIRED'
  | 'PENDING_TRIGGER'
  | 'CANCEL_PENDING_FINALIZE'

/** Why an order ended. Closed list; every terminal order carries one. */
export const STATUS_REASONS = [
  'FILLED',
  'USER_CANCELLED',
  'MARKET_REMAINDER',
  'NO_BATCH_IN_TIME',
  'EXPIRED',
  'SELF_TRADE',
  'INSUFFICIENT_MARGIN',
  'REDUCE_ONLY_NO_POSITION',
  'SETTLEMENT_REVERTED',
  'MARKET_CLOSED',
] as const
export type StatusReason = (typeof STATUS_REASONS)[number]

/** The signed fields, on the market's grid. `price` and `trigger` are 0 where the order has none. */
export interface Order {
  readonly marketId: MarketId
  readonly maker: Address
  readonly side: Side
  readonly type: OrderType
  readonly price: Ticks
  readonly quantity: Steps
  readonly trigger: Ticks
  readonly leverage: number
  readonly reduceOnly: boolean
  /** Unix seconds after which it is dead; 0 never expires. */
  readonly expiration: Seconds
  /** Unique per maker and market, below 2^53. */
  readonly salt: bigint
}

/** An order whose signature has been recovered and found to bind its maker. */
export interface SignedOrder extends Order {
  readonly hash: OrderHash
  /** The maker, or a session key of his. */
  readonly signer: Address
  /** 66 bytes: r, s, v and the suffix 01 (personal message). */
  readonly signature: `0x${string}`
}
