/** What one auction says: the price, who trades how much with whom, what is cancelled, and all that is needed to compute it again. */
import type { RestingOrder } from '../book/book.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Side, StatusReason } from '../orders/order.ts'
import type { Position } from '../positions/position.ts'
import type { FundingIndex, Millis, Price, Quote, Seq, Steps, Ticks, UserId } from '../units.ts'

/** One buy met one sell. */
export interface Pair {
  readonly buySeq: Seq
  readonly sellSeq: Seq
  readonly steps: Steps
  /** The buy or the sell: the side that pays the maker rate. */
  readonly makerSeq: Seq
  readonly buyFee: Quote
  readonly sellFee: Quote
}

/** What one order gets in the batch, or in one part of it. `fill` = `reducing` + `opening` = `taker` + `maker`. */
export interface Fill {
  readonly seq: Seq
  readonly account: UserId
  readonly side: Side
  readonly fill: Steps
  /** What lowers the account's position as matched before the batch, its earlier fills in tranche order counted. */
  readonly reducing: Steps
  readonly opening: Steps
  readonly taker: Steps
  readonly maker: Steps
  /** By the schedule: the sum over its pairs. A closing fee is capped by the close proceeds when the fill reaches the position. */
  readonly fee: Quote
  /** What remains of the order after it; 0 where it is filled. */
  readonly remaining: Steps
}

export interface Cancel {
  readonly seq: Seq
  readonly reason: StatusReason
}

/**
 * Why the price is what it is. `volume`: the only tick with the largest volume; `surplus`: the only one of these with the smallest
 * surplus; `buy_pressure` and `sell_pressure`: the highest or lowest anchor; `reference`: the tick nearest the reference.
 */
export type PriceRule = 'volume' | 'surplus' | 'buy_pressure' | 'sell_pressure' | 'reference'

/** The side that fills in part: every order of it gets `volume` / `eligible` of its size, within one step. */
export interface Proration {
  readonly side: Side
  readonly volume: Steps
  readonly eligible: Steps
}

/** The market's last clearing price. Of no use once it is 60 s old. */
export interface Reference {
  readonly price: Ticks
  readonly at: Millis
}

/** Everything the batch depended on: see `recompute`. */
export interface ClearingInputs {
  readonly spec: MarketSpec
  readonly asOf: Millis
  readonly oracle: Price
  readonly fundingIndex: FundingIndex
  readonly reference: Reference | null
  /** The orders within reach of the other side: buys, then sells; market orders first, then from the best price, then by seq. */
  readonly orders: readonly RestingOrder[]
  /** Of their accounts in the order these appear there; flat ones are left out. */
  readonly positions: readonly (readonly [UserId, Position])[]
}

interface ClearingOutcome {
  readonly lo: Ticks
  readonly hi: Ticks
  /** Orders that end with this batch, by seq: remainders of market orders, some of them filled in part, and self-trades. */
  readonly cancels: readonly Cancel[]
  readonly inputs: ClearingInputs
}

/** The batch ran and nothing met. */
export interface NotCleared extends ClearingOutcome {
  readonly outcome: 'no_cross'
  readonly price: null
  readonly rule: null
  readonly volume: Steps
  readonly demand: Steps
  readonly supply: Steps
  readonly proration: null
  readonly fills: readonly []
  readonly pairs: readonly []
}

export interface Cleared extends ClearingOutcome {
  readonly outcome: 'cleared'
  readonly price: Ticks
  readonly rule: PriceRule
  readonly volume: Steps
  /** Eligible buys and sells at the price; the smaller is the volume. */
  readonly demand: Steps
  readonly supply: Steps
  /** Null where both sides fill whole. */
  readonly proration: Proration | null
  /** By account; within an account in tranche order. */
  readonly fills: readonly Fill[]
  /** In pairing order. */
  readonly pairs: readonly Pair[]
}

export type Clearing = Cleared | NotCleared
