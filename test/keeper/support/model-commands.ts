/** The random commands that a model run applies to the database and to the model. */
import type { OrderType, Side } from '../../../domain/orders/order.ts'

export interface Place {
  readonly kind: 'place'
  readonly by: number
  readonly side: Side
  readonly type: OrderType
  readonly steps: number
  /** Ticks from the middle. */
  readonly limit: number
  readonly trigger: number
  readonly leverage: number
  readonly reduceOnly: boolean
  /** Seconds; 0 for ever. */
  readonly life: number
  /** Signed by the trader's session key, whose right ends so many seconds from now; null: by the trader. */
  readonly keyLife: number | null
}

export interface Protect {
  readonly kind: 'protect'
  readonly by: number
  /** If there is no position. */
  readonly side: Side
  readonly type: OrderType
  readonly steps: number
  readonly offset: number
}

export type Command =
  | Place
  /** Two limit orders that meet at the price of the oracle, and a step. */
  | { readonly kind: 'deal'; readonly buyer: number; readonly seller: number; readonly steps: number }
  /** A reduce-only order against the trader's position, or before one. */
  | Protect
  /** A deal that closes the trader's position, and what happens to its batch and those before it. */
  | { readonly kind: 'close'; readonly by: number; readonly next: 'mine' | 'wait' | 'fail' }
  | { readonly kind: 'cancel'; readonly pick: number }
  | { readonly kind: 'step' | 'restart' | 'mine' | 'reorg' | 'fire' | 'halt' | 'open' }
  /** The power goes in the step's first or second transaction. */
  | { readonly kind: 'cut'; readonly at: 1 | 2 }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'price'; readonly offset: number }
  /** The price goes where a position gets a forced order, for so many steps, and comes back. */
  | { readonly kind: 'force'; readonly towards: 1 | -1; readonly steps: number }
  | { readonly kind: 'fail'; readonly culprit: number }
  | { readonly kind: 'revoke'; readonly by: number }
  | { readonly kind: 'arm'; readonly by: number; readonly seconds: number }

export const TRADERS = 4
