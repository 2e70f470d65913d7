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
 * `gtc`: the order stays until it is filled, cancelled or expired. `ioc`: it takes part in exactly one auction, the first that runs with its
 * account, and waits at most 2 s for it; the remainder ends.
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

/** Why an order ended. Closed list; every terminal order has a reason. */
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
 * Whether an order ended because its batch left steps of a market order, or of an `ioc` order, unfilled. Unlike a cancel, such an end
 * is decided again if the fills of the batch are voided.
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
  /** Unix seconds; the order has expired after this second. 0 never expires. */
  readonly expiration: Seconds
  /** Unique per maker and market, below 2^53. */
  readonly salt: bigint
}

/** An order's id names its market and the seq of its acceptance. */
export const orderIdOf = (marketId: MarketId, accepted: Seq): string => `${marketId}-${accepted}`

export const acceptedSeq = (orderId: string): Seq => Number(orderId.slice(orderId.indexOf('-') + 1)) as Seq

/** Types that fill at any price of the batch; their signed price is 0. */
export const isMarketType = (type: OrderType): boolean => type === 'MARKET' || type.endsWith('_MARKET')

/** Types that wait for the mark price before they enter the book. */
export const isConditional = (type: OrderType): boolean => type !== 'MARKET' && type !== 'LIMIT'

/** Take-profit and stop-loss types, which must sign the reduce-only bit. */
export const isAlwaysReduceOnly = (type: OrderType): boolean =>
  type.startsWith('TAKE_PROFIT_') || type.startsWith('STOP_LOSS_')

/** The order's type once it is in the book. */
export const bookType = (type: OrderType): 'MARKET' | 'LIMIT' => (isMarketType(type) ? 'MARKET' : 'LIMIT')

/**
 * 0 none, 1 mark at or above the trigger, 2 mark at or below it. Signed; the contract rejects any other
 * value.
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

/**
 * Whether `mark` has reached the order's trigger in a market with this tick. Always true for types that do
 * not wait.
 */
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
 * The last second in which an order may be matched; 0 never expires. A session key may sign only for `asOf`
 * below its expiry. Its orders therefore end in the second before that expiry, or at their own expiration if
 * it is earlier. `keyExpiresAt` is null if the maker signed.
 */
export function aliveUntil(expiration: Seconds, keyExpiresAt: Seconds | null): Seconds {
  if (keyExpiresAt === null) return expiration
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
