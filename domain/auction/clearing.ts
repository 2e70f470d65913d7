/**
 * Types of an auction's result: price, fills, pairs, cancels, and the inputs from which it can be recomputed.
 */
import type { RestingOrder } from '../book/book.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Side, StatusReason } from '../orders/order.ts'
import type { Position } from '../positions/position.ts'
import type { FundingIndex, Millis, Price, Quote, Rate, Seq, Steps, Ticks, UserId } from '../units.ts'

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
  /** See `RestingOrder`. */
  readonly unused?: Steps
}

export interface Cancel {
  readonly seq: Seq
  readonly reason: StatusReason
}

/**
 * The rule that decided the price. `volume`: the only tick with the largest volume. `surplus`: the only one
 * of these with the smallest surplus. The others choose in the interval that is left: `buy_pressure` and
 * `sell_pressure` an end of it, because one side has a surplus on all of it; `limit` the only end at which
 * limit orders alone carry the volume; `oracle` the tick nearest to the oracle price.
 */
export type PriceRule = 'volume' | 'surplus' | 'buy_pressure' | 'sell_pressure' | 'limit' | 'oracle'

/**
 * The side that fills in part: each of its orders gets `volume` / `eligible` of its size, within one step.
 */
export interface Proration {
  readonly side: Side
  readonly volume: Steps
  readonly eligible: Steps
}

/** The protection of one market order and what it was computed from. */
export interface Protection {
  readonly seq: Seq
  /** The best standing quote; null if the standing quotes do not reach five orders of minimum size. */
  readonly best: Ticks | null
  /** The first limit at which they do; null if they do not. */
  readonly level: Ticks | null
  /** The reference price R; the oracle price if `level` is null, or if the order is forced and R would be worse for it. */
  readonly reference: Price
  /** The worst price at which the order may fill: in the band, unless the reserved price lies before it. */
  readonly price: Ticks
}

/** Revision of the rules that clear a batch. It is stored with each batch, so that earlier ones can be explained. */
export const RULE_VERSION = 3

/** Everything that the result of a batch depends on; input of `recompute`. */
export interface ClearingInputs {
  readonly ruleVersion: number
  readonly spec: MarketSpec
  readonly asOf: Millis
  readonly oracle: Price
  readonly fundingIndex: FundingIndex
  /** The head of the journal in the market's previous auction; orders up to it count for protections. */
  readonly standingSeq: Seq
  /** The width of the market's price protection in force. */
  readonly priceProtection: Rate
  /**
   * The candidates: buys, then sells; within a side market orders first, then from the best limit, then by
   * seq.
   */
  readonly orders: readonly RestingOrder[]
  /**
   * Orders outside the candidates that decided protections and the reasons of cancels: the standing quotes
   * that the references counted, then quotes beyond protections.
   */
  readonly ladder: readonly RestingOrder[]
  /** The positions of all these orders' accounts that are not flat, in the order in which the accounts appear. */
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
  /** Of every market order that could take part, by seq. */
  readonly protections: readonly Protection[]
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
