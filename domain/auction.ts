/** The frequent batch auction of one market: one price, the largest volume, pro rata. */
import type { Book } from './book.ts'
import type { Clearing, Reference } from './clearing.ts'
import { InvariantError } from './invariant.ts'
import type { MarketSpec } from './market.ts'
import type { Position } from './position.ts'
import type { Millis, Price, Quote, Seq, UserId } from './units.ts'

/** Orders that sit this batch out and stay as they are: those of an account whose adjustment is under way, or a single order. */
export interface Excluded {
  readonly accounts: ReadonlySet<UserId>
  readonly orders: ReadonlySet<Seq>
}

export interface AuctionInput {
  readonly spec: MarketSpec
  /** Read, not changed. */
  readonly book: Book
  /** The matched position: mined and unsettled fills together. */
  readonly positions: (account: UserId) => Position
  readonly fundingIndex: Quote
  readonly oracle: Price
  readonly reference: Reference | null
  readonly asOf: Millis
  readonly excluded?: Excluded
}

/** Clears one batch. The outcome depends on the set of orders only, not on the order they came in. */
export function clear(_input: AuctionInput): Clearing {
  throw new InvariantError('not written')
}
