/** The signed order, its types and statuses, and its trigger and expiration rules. */
import type { Address, MarketId, Millis, OrderHash, Price, Seconds, Seq, Steps, Ticks } from '../units.ts'

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

/**
 * `gtc`: the order stays until it is filled, cancelled or expired.
 * `ioc`: the order takes part in exactly one auction, the first that its account can join within 2 s; the
 * remainder ends.
 */
export const TIMES_IN_FORCE = ['gtc', 'ioc'] as const
export type TimeInForce = (typeof TIMES_IN_FORCE)[number]

export type OrderStatus =
  | 'OPEN'
  | 'FILLED'
  | 'CANCELLED'
  | 'EXPIRED'
  | 'PENDING_TRIGGER'
  | 'CANCEL_PENDING_FINALIZE'

/** Reasons why an order ended. The list is closed; every terminal order has a reason. */
export const STATUS_REASONS = [
  'FILLED',
  'USER_CANCELLED',
  'MARKET_REMAINDER',
  'PRICE_PROTECTION',
  'NO_BATCH_IN_TIME',
  'EXPIRED',
  'SELF_TRADE',
  'INSUFFICIENT_MARGIN',
  'REDUCE_ONLY_NO_POSITION',
  'MARGIN_REQUIREMENT',
  'LEVERAGE_CAP',
  'SETTLEMENT_REVERTED',
  'MARKET_CLOSED',
  'LIQUIDATION',
  'LEVERAGE_ADJUSTED',
  'SIGNER_REVOKED',
  'SIGNER_EXPIRED',
  'POSITION_CLOSED',
  'DEAD_MAN_SWITCH',
  'CANCELLED_ON_CHAIN',
  'IOC_REMAINDER',
  'REPLACED',
  'ENTRY_ENDED',
  'EXIT_TRIGGERED',
  'EXIT_FILLED',
] as const
export type StatusReason = (typeof STATUS_REASONS)[number]

/**
 * Whether a batch ended the order because steps of a market order or an `ioc` order stayed unfilled.
 * Unlike a cancel, this end is decided again if the batch's fills are voided.
 */
export const isRemainder = (reason: StatusReason | null): boolean =>
  reason === 'MARKET_REMAINDER' || reason === 'PRICE_PROTECTION' || reason === 'IOC_REMAINDER'

/** The signed fields in ticks and steps. `price` and `trigger` are 0 if the order has none. */
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
  /** Last second in which the order is valid; 0 never expires. */
  readonly expiration: Seconds
  /** Unique per maker and market, below 2^53. */
  readonly salt: bigint
}

/** The order id names the market and the sequence of the acceptance, for example `3-1042`. */
export const orderIdOf = (marketId: MarketId, accepted: Seq): string => `${marketId}-${accepted}`

export const acceptedSeq = (orderId: string): Seq => Number(orderId.slice(orderId.indexOf('-') + 1)) as Seq

/** Types that fill at any price of the batch; their signed price is 0. */
export const isMarketType = (type: OrderType): boolean => type === 'MARKET' || type.endsWith('_MARKET')

/** Types that wait until the mark price reaches their trigger; they then enter the book. */
export const isConditional = (type: OrderType): boolean => type !== 'MARKET' && type !== 'LIMIT'

/** Take-profit and stop-loss types, which must sign the reduce-only bit. */
export const isAlwaysReduceOnly = (type: OrderType): boolean =>
  type.startsWith('TAKE_PROFIT_') || type.startsWith('STOP_LOSS_')

/** The order's type once it is in the book. */
export const bookType = (type: OrderType): 'MARKET' | 'LIMIT' => (isMarketType(type) ? 'MARKET' : 'LIMIT')

/**
 * 0: no trigger; 1: mark at or above the trigger; 2: mark at or below it. Signed; the contract rejects any
 * other value.
 */
export type TriggerCondition = 0 | 1 | 2

/**
 * A stop triggers when the mark has moved in the order's direction: up for a buy, down for a sell. A
 * take-profit triggers in the opposite direction. A stop-loss is a stop.
 */
export function triggerCondition(type: OrderType, side: Side): TriggerCondition {
  if (!isConditional(type)) return 0
  const above = type.startsWith('TAKE_PROFIT_') ? side === 'SHORT' : side === 'LONG'
  return above ? 1 : 2
}

/** Whether `mark` has reached the order's trigger. Always true for types without a trigger. */
export function isTriggered(
  order: Pick<Order, 'type' | 'side' | 'trigger'>,
  mark: Price,
  tick: Price,
): boolean {
  const condition = triggerCondition(order.type, order.side)
  if (condition === 0) return true
  const trigger = BigInt(order.trigger) * tick
  return condition === 1 ? mark >= trigger : mark <= trigger
}

/** An order has expired from the first millisecond after its expiration second. */
export const isExpired = (expiration: Seconds, asOf: Millis): boolean =>
  expiration !== 0 && asOf > expiration * 1000

/**
 * The last second in which the order may match; 0: never expires. A key that expires at 1000 allows matches up to 999.
 * `keyExpiresAt` is null if the maker signed.
 */
export function aliveUntil(expiration: Seconds, keyExpiresAt: Seconds | null): Seconds {
  if (keyExpiresAt === null) return expiration
  // A session key may sign only for `asOf` below its expiry.
  const last = (keyExpiresAt - 1) as Seconds
  return expiration === 0 || last < expiration ? last : expiration
}

/** An order with a verified signature: the signer may trade for the maker. */
export interface SignedOrder extends Order {
  readonly hash: OrderHash
  /** The maker or one of its session keys. */
  readonly signer: Address
  /** 66 bytes: r, s, v and the suffix 01 (personal message). */
  readonly signature: `0x${string}`
}
