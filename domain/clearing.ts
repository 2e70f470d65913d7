/** What one auction says: the price, who trades how much with whom, what is cancelled, and all that is needed to compute it again. */
import type { RestingOrder } from './book.ts'
import type { MarketKind } from './market.ts'
import type { Side, StatusReason } from './order.ts'
import type { Position } from './position.ts'
import type { MarketId, Millis, Price, Quote, Rate, Seq, Steps, Ticks, UserId } from './units.ts'

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

/** What one order gets in the batch. `fill` = `reducing` + `opening` = `taker` + `maker`. */
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
  /** By the schedule: the sum over its pairs. A closing fee is capped by the close proceeds when the fill is applied to the position. */
  readonly fee: Quote
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
export interface Ration {
  readonly side: Side
  readonly volume: Steps
  readonly eligible: Steps
}

/** The last clearing price of the market. Of no use once it is 60 s old. */
export interface Reference {
  readonly price: Ticks
  readonly at: Millis
}

/** The market parameters that an auction reads. */
export interface AuctionTerms {
  readonly marketId: MarketId
  readonly kind: MarketKind
  readonly imr: Rate
  readonly mtbLong: Rate
  readonly mtbShort: Rate
  readonly makerFee: Rate
  readonly takerFee: Rate
}

/** Everything the batch depended on: clearing a book of these orders, with these positions, gives the same clearing. */
export interface ClearingInputs {
  readonly terms: AuctionTerms
  readonly asOf: Millis
  readonly oracle: Price
  readonly fundingIndex: Quote
  readonly reference: Reference | null
  /** The orders that could have met another, by seq. */
  readonly orders: readonly RestingOrder[]
  /** Of their accounts, ascending; flat ones are left out. */
  readonly positions: readonly (readonly [UserId, Position])[]
}

interface Outcome {
  /** By seq. */
  readonly cancels: readonly Cancel[]
  readonly inputs: ClearingInputs
}

/** `no_band`: no tick may print (a batch did not run, market orders wait). `no_cross`: the batch ran and nothing met. */
export interface NotCleared extends Outcome {
  readonly outcome: 'no_cross' | 'no_band'
  readonly lo: Ticks
  readonly hi: Ticks
  readonly price: null
  readonly rule: null
  readonly volume: Steps
  readonly demand: Steps
  readonly supply: Steps
  readonly ration: null
  /** Empty. */
  readonly fills: readonly Fill[]
  /** Empty. */
  readonly pairs: readonly Pair[]
}

export interface Cleared extends Outcome {
  readonly outcome: 'cleared'
  readonly lo: Ticks
  readonly hi: Ticks
  readonly price: Ticks
  readonly rule: PriceRule
  readonly volume: Steps
  /** Eligible buys and sells at the price; the smaller is the volume. */
  readonly demand: Steps
  readonly supply: Steps
  /** Null where both sides fill whole. */
  readonly ration: Ration | null
  /** By account, within an account in tranche order. */
  readonly fills: readonly Fill[]
  /** In pairing order. */
  readonly pairs: readonly Pair[]
}

export type Clearing = Cleared | NotCleared
