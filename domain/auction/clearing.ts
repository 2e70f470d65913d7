/**
 * Types of an auction's result: price, fills, pairs, cancels, and the inputs from which it can be recomputed.
 */
import type { RestingOrder } from '../book/book.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Side, StatusReason } from '../orders/order.ts'
import type { Position } from '../positions/position.ts'
import type { FundingIndex, Millis, Price, Quote, Seq, Steps, Ticks, UserId } from '../units.ts'

/** A buy and a sell that are counted as having met. */
export interface Pair {
  readonly buySeq: Seq
  readonly sellSeq: Seq
  readonly steps: Steps
  /** The seq of the buy or of the sell: the order that pays the maker rate. */
  readonly makerSeq: Seq
  readonly buyFee: Quote
  readonly sellFee: Quote
}

/**
 * What one order gets in the batch, or in one part of it. `fill` = `reducing` + `opening` = `taker` +
 * `maker`, in steps.
 */
export interface Fill {
  readonly seq: Seq
  readonly account: UserId
  readonly side: Side
  readonly fill: Steps
  /** Steps that reduce the account's position as it is after its earlier fills in tranche order. */
  readonly reducing: Steps
  readonly opening: Steps
  readonly taker: Steps
  readonly maker: Steps
  /**
   * Wei by the fee schedule: the sum over the order's pairs. The closing fee is capped by the close proceeds
   * when the fill is applied to the position.
   */
  readonly fee: Quote
  /** Steps of the order that remain after this fill; 0 if it is filled. */
  readonly remaining: Steps
}

export interface Cancel {
  readonly seq: Seq
  readonly reason: StatusReason
}

/**
 * The rule that decided the price. `volume`: the only tick with the largest volume. `surplus`: the only one
 * of these with the smallest surplus. `buy_pressure`, `sell_pressure`: the highest or lowest anchor.
 * `reference`: the tick nearest to the reference price.
 */
export type PriceRule = 'volume' | 'surplus' | 'buy_pressure' | 'sell_pressure' | 'reference'

/**
 * The side that fills in part: each of its orders gets `volume` / `eligible` of its size, within one step.
 */
export interface Proration {
  readonly side: Side
  readonly volume: Steps
  readonly eligible: Steps
}

/** The market's last clearing price. It is not used once it is 60 s old. */
export interface Reference {
  readonly price: Ticks
  readonly at: Millis
}

/** Everything that the result of a batch depends on; input of `recompute`. */
export interface ClearingInputs {
  readonly spec: MarketSpec
  readonly asOf: Millis
  readonly oracle: Price
  readonly fundingIndex: FundingIndex
  readonly reference: Reference | null
  /**
   * The candidates: buys, then sells; within a side market orders first, then from the best limit, then by
   * seq.
   */
  readonly orders: readonly RestingOrder[]
  /**
   * The positions of the candidates' accounts that are not flat, in the order in which the accounts appear in
   * `orders`.
   */
  readonly positions: readonly (readonly [UserId, Position])[]
}

interface ClearingOutcome {
  readonly lo: Ticks
  readonly hi: Ticks
  /**
   * Orders that end with this batch, by seq: self-trades and remainders of market orders, some of which are
   * filled in part.
   */
  readonly cancels: readonly Cancel[]
  readonly inputs: ClearingInputs
}

/** The batch ran and no orders crossed. */
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
  /** Eligible steps of buys and of sells at the price; the smaller is the volume. */
  readonly demand: Steps
  readonly supply: Steps
  /** Null if both sides fill completely. */
  readonly proration: Proration | null
  /** By account; within an account in tranche order. */
  readonly fills: readonly Fill[]
  /** In pairing order. */
  readonly pairs: readonly Pair[]
}

export type Clearing = Cleared | NotCleared
