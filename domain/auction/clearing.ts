/**
 * Types of an auction result: price, fills, pairs, cancels, and the inputs from which the result can be
 * recomputed.
 */
import type { RestingOrder } from '../book/book.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Side, StatusReason } from '../orders/order.ts'
import type { Position } from '../positions/position.ts'
import type { FundingIndex, Millis, Price, Quote, Rate, Seq, Steps, Ticks, UserId } from '../units.ts'

/** A buy and a sell that are matched with each other for fees. */
export interface Pair {
  readonly buySeq: Seq
  readonly sellSeq: Seq
  readonly steps: Steps
  /** Seq of the order that pays the maker rate: the buy or the sell. */
  readonly makerSeq: Seq
  readonly buyFee: Quote
  readonly sellFee: Quote
}

/**
 * One order's fill in the batch, or in one part of it. In steps, `fill` = `reducing` + `opening` = `taker` +
 * `maker`.
 */
export interface Fill {
  readonly seq: Seq
  readonly account: UserId
  readonly side: Side
  readonly fill: Steps
  /** Steps that reduce the account's position. Earlier fills in tranche order count as applied. */
  readonly reducing: Steps
  readonly opening: Steps
  readonly taker: Steps
  readonly maker: Steps
  /**
   * Fee in wei by the fee schedule: the sum over the order's pairs.
   * The closing fee is capped at the close proceeds when the fill is applied to the position.
   */
  readonly fee: Quote
  /** Remaining steps after this fill; 0 if the order is filled. */
  readonly remaining: Steps
  /** See `RestingOrder`. */
  readonly unused?: Steps
}

export interface Cancel {
  readonly seq: Seq
  readonly reason: StatusReason
}

/**
 * Rule that decided the price. Rules apply in this order until one tick is left:
 * - `volume`: the only tick with the largest volume.
 * - `surplus`: the only tick of these with the smallest surplus.
 * - `buy_pressure`, `sell_pressure`: one end of the remaining interval, because one side has a surplus on all
 * of it.
 * - `limit`: the only end of the interval at which limit orders alone carry the volume.
 * - `oracle`: the tick of the interval nearest to the oracle price.
 */
export type PriceRule = 'volume' | 'surplus' | 'buy_pressure' | 'sell_pressure' | 'limit' | 'oracle'

/** The partly filled side: each order gets `volume` / `eligible` of its size, within one step. */
export interface Proration {
  readonly side: Side
  readonly volume: Steps
  readonly eligible: Steps
}

/** Protection of one market order, and its inputs. */
export interface Protection {
  readonly seq: Seq
  /** Best standing quote; null if the standing quotes do not reach the size of five minimum orders. */
  readonly best: Ticks | null
  /** First limit at which the standing quotes reach that size; null if they do not. */
  readonly level: Ticks | null
  /**
   * Reference price R.
   * It is the oracle price if `level` is null, and for a forced order if R would be worse for it.
   */
  readonly reference: Price
  /**
   * The worst price at which the order may fill. It lies in the band unless the reserved price is stricter.
   */
  readonly price: Ticks
}

/**
 * Revision of the clearing rules. It is stored with each batch, so that batches of earlier revisions can be
 * explained.
 */
export const RULE_VERSION = 3

/** All inputs of a batch result; argument of `recompute`. */
export interface ClearingInputs {
  readonly ruleVersion: number
  readonly spec: MarketSpec
  readonly asOf: Millis
  readonly oracle: Price
  readonly fundingIndex: FundingIndex
  /** Journal head at the market's previous auction. Orders up to this sequence count for protections. */
  readonly standingSeq: Seq
  /** Price-protection width in force in the market. */
  readonly priceProtection: Rate
  /**
   * Candidates: buys, then sells.
   * Within a side, market orders come first, then limit orders from the best limit; seq breaks ties.
   */
  readonly orders: readonly RestingOrder[]
  /**
   * Orders outside the candidates that decided protections and cancel reasons:
   * the standing quotes that the references counted, then quotes beyond protections.
   */
  readonly ladder: readonly RestingOrder[]
  /** Non-flat positions of all these orders' accounts, in order of first appearance. */
  readonly positions: readonly (readonly [UserId, Position])[]
}

interface ClearingOutcome {
  readonly lo: Ticks
  readonly hi: Ticks
  /**
   * Orders that end with this batch, by seq: self-trades and remainders of market orders. Some are partly
   * filled.
   */
  readonly cancels: readonly Cancel[]
  /** Protection of every market order that could take part, by seq. */
  readonly protections: readonly Protection[]
  readonly inputs: ClearingInputs
}

/** The batch ran, and no orders crossed. */
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
  /** Eligible buy steps and eligible sell steps at the price; the smaller figure is the volume. */
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
