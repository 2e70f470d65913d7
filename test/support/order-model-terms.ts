/** Types of the order model. Quantities are steps and order prices are ticks, both plain numbers. */
import type { RestingOrder } from '../../domain/book/book.ts'
import {
  isConditional,
  type OrderStatus,
  type OrderType,
  type Side,
  type StatusReason,
} from '../../domain/orders/order.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { Millis, Seconds, Seq, Steps, Ticks, UserId } from '../../domain/units.ts'

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
  /** Of a liquidation. */
  readonly forced?: boolean
  /** Of a forced order. */
  widenings?: number
  /** The order's seq: of its placement, or of its trigger once it is triggered. */
  rank: number
  enteredAt: number
  status: OrderStatus
  reason: StatusReason | null
  /** The closing reason of an order that has left the book and has not ended; otherwise null. */
  leaving: StatusReason | null
  /** The batch that closed the position of a reduce-only order which left the book with it. */
  closedBy: number | null
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
  readonly oracle: bigint
  /** Of funding. */
  readonly index: bigint
  readonly fills: readonly ModelFill[]
  /** Reduce-only orders that ended because this batch, once mined, closed their position. */
  closed: ModelOrder[]
}

/** Inputs of the model that the chain decides: free balances and mined positions, by account. */
export interface Observed {
  readonly free: ReadonlyMap<number, bigint>
  readonly mined: ReadonlyMap<number, Position>
}

/** The inputs of an auction. */
export interface Auction {
  readonly now: number
  readonly oracle: bigint
  /** The id of the batch if the auction matches anything. */
  readonly batchId: number
  /** The newest rank at the previous auction; 0 if the keeper has no memory of one. */
  readonly standing: number
}

export interface KeeperStep extends Auction {
  /** The mark price published in this step; null if there was none. */
  readonly mark: bigint | null
  /** Whether a batch was possible when the mark price was published, and when the auction ran. */
  readonly mayTrigger: boolean
  readonly mayMatch: boolean
  /** Applies what the keeper's liquidations wrote between the triggers and the auction. */
  readonly liquidate: () => void
  /** True if the keeper was killed after it stored the triggers. */
  readonly crashesAfterTriggers: boolean
}

/** An order of the model as the auction reads it. `remaining`: its steps that are not filled. */
export const restingOf = (order: ModelOrder, remaining: number): RestingOrder => ({
  ...{ seq: order.rank as Seq, account: order.account as UserId, side: order.side },
  ...{ forced: order.forced ?? false, widenings: order.widenings ?? 0 },
  triggered: isConditional(order.type),
  ...{ type: order.price === 0 ? 'MARKET' : 'LIMIT', limit: order.price as Ticks },
  ...{ remaining: remaining as Steps, leverage: order.leverage, reduceOnly: order.reduceOnly },
  ...{ openable: order.openable as Steps, reservedPrice: order.reservedPrice as Ticks },
  ...{ expiration: order.aliveUntil as Seconds, acceptedAt: order.enteredAt as Millis },
})
