/** Ports of the api: clock, notifications, signer recovery, kill points. */
import type { MarketSpec } from '../domain/market/market.ts'
import type { Order } from '../domain/orders/order.ts'
import type { RecoveredOrder, SignatureRefusal } from '../domain/orders/order-hash.ts'
import type { Verdict } from '../domain/verdict.ts'

/** Notifications of the database, by channel. */
export interface Notifications {
  on(channel: string, listener: (payload: string) => void): void
  /** Called when the connection breaks: notifications until the reconnect are lost. */
  onLost(listener: () => void): void
  isListening(): boolean
}

/** An order and the signature that came with it. */
export interface Signed {
  readonly spec: MarketSpec
  readonly order: Order
  readonly signature: string
}

export type Recovered = Verdict<RecoveredOrder, SignatureRefusal>

/** Hash and signer of each order, in the order of the argument. */
export type RecoverSigners = (signed: readonly Signed[]) => Promise<readonly Recovered[]>
