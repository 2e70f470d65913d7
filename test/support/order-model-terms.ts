/** The words of the model of orders. Counts are plain numbers, prices of orders ticks. */
import type { OrderStatus, OrderType, Side, StatusReason } from '../../domain/orders/order.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { Millis, Ticks } from '../../domain/units.ts'

export interface ModelOrder {
  readonly id: string
  readonly account: number
  readonly signer: string
  readonly side: Side
  readonly type: OrderType
  readonly price: number
  readonly trigger: number
  readonly quantity: number
  readonly leverage: number
  readonly reduceOnly: boolean
  readonly aliveUntil: number
  readonly expiration: number
  readonly acceptedAt: number
  /** Its place among all orders: of its acceptance, then of its trigger. */
  rank: number
  enteredAt: number
  status: OrderStatus
  reason: StatusReason | null
  /** Why it has left the book while some of it settles. */
  leaving: StatusReason | null
  filled: number
  settling: number
  openable: number
  reservedPrice: number
  held: bigint
}

export interface ModelFill {
  readonly order: ModelOrder
  readonly steps: number
  readonly held: bigint
}

export interface ModelBatch {
  readonly id: number
  readonly price: number
  readonly asOf: number
  readonly fills: readonly ModelFill[]
  /** Orders that ended with the position that this batch closed. */
  protective: ModelOrder[]
}

/** What the model is told, because others decide it: the chain, the oracle, the market's operator. */
export interface Observed {
  readonly free: ReadonlyMap<number, bigint>
  readonly mined: ReadonlyMap<number, Position>
}

/** What an auction is held on. */
export interface Auction {
  readonly now: number
  readonly oracle: bigint
  /** The number of the last batch after it. */
  readonly batchId: number
  readonly reference: { readonly price: Ticks; readonly at: Millis } | null
}

export interface Look extends Auction {
  /** The mark that was published in this step; null where none was. */
  readonly mark: bigint | null
  /** Whether a batch could run when the mark was looked at, and when the auction was held. */
  readonly mayTrigger: boolean
  readonly mayMatch: boolean
  /** The power went after the triggers were stored. */
  readonly isCut: boolean
}
