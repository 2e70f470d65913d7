/** Ports of the api: notifications, counters of requests, signer recovery. */
import type { MarketSpec } from '../domain/market/market.ts'
import type { Order } from '../domain/orders/order.ts'
import type { RecoveredOrder, SignatureRefusal } from '../domain/orders/order-hash.ts'
import type { Address } from '../domain/units.ts'
import type { Verdict } from '../domain/verdict.ts'

export type { Notifications } from '../db/notifications.ts'

/** Requests of a key in the current window, and the window's remaining milliseconds. */
export interface CountedRequests {
  readonly current: number
  readonly ttl: number
}

/** The limit that the next request reaches first. */
export interface NearestLimit {
  readonly max: number
  readonly remaining: number
  readonly resetS: number
}

/**
 * Counts a request of `key` in windows of `windowMs`, or one that costs as much as `cost` requests. If the sum would exceed `most`, it is returned and not
 * counted.
 */
export type CountRequest = (
  key: string,
  windowMs: number,
  cost?: number,
  most?: number,
) => Promise<CountedRequests>

/** Whether the contract wallet `owner` accepts the signature of the digest. False for an account without code. Throws an ApiError if unknown. */
export type AcceptsSignature = (owner: Address, digest: Uint8Array, signature: string) => Promise<boolean>

/** An order and the signature that came with it. */
export interface Signed {
  readonly spec: MarketSpec
  readonly order: Order
  readonly signature: string
}

export type Recovered = Verdict<RecoveredOrder, SignatureRefusal>

/** Hash and signer of each order, in the order of the argument. */
export type RecoverSigners = (signed: readonly Signed[]) => Promise<readonly Recovered[]>
