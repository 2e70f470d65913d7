/** Shared parts of the keeper's jobs for a simulated market. */
import type { Book } from '../domain/book/book.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import type { MarketPositions } from '../domain/risk/market-positions.ts'
import type { Quote, Seq, UserId } from '../domain/units.ts'
import type { ActionMoment, Bank, ChainAction } from './chain.ts'
import type { Rules } from './rules.ts'
import type { Tally } from './tally.ts'

/** The state of a turn: the fresh oracle price, and the time of its batch. */
export interface Turn extends ActionMoment {
  readonly number: number
  /** Turns until an action sent in this turn is executed. */
  readonly lag: number
}

/** Data that goes with an action to the chain. */
export interface Sending {
  /** Accounts of which no orders are matched until it is executed. */
  readonly touched: readonly UserId[]
  /** Reservations of fills that end when they are mined. */
  readonly held: readonly (readonly [UserId, bigint])[]
  /** Payment of the pool by the action, if the matched positions do not show it yet. */
  readonly payout: bigint
}

/** The market as its liquidations see it. */
export interface LiquidationMarket {
  readonly spec: MarketSpec
  readonly book: Book
  /** Matched. */
  readonly positions: MarketPositions
  readonly bank: Bank
  readonly tally: Tally
  readonly rules: Rules
  /** The pool's content after execution of everything sent. */
  readonly pool: Quote
  /** Free balance less reservations in all markets. */
  available(account: UserId): Quote
  isTouched(account: UserId): boolean
  /** Ends the account's orders, except that with the seq `kept`. */
  cancelAll(account: UserId, kept?: Seq): void
  nextSeq(): Seq
  send(action: ChainAction, turn: Turn, more: Partial<Sending>): void
}
