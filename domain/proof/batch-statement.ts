/** Types of a batch's public statement: its terms, its orders without accounts, and its result. */
import type { Cancel, Fill, PriceRule, Protection } from '../auction/clearing.ts'
import type { RestingOrder } from '../book/book.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Side } from '../orders/order.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import type { Millis, Quote, Rate, Seq, Steps, Ticks, UserId } from '../units.ts'

/** Position of an order in the statement's order list, from 1. */
export type Place = Seq
/** Number of an account within one batch, from 1, in the order of the accounts' first orders. */
export type Group = UserId

export interface StatedOrder
  extends Omit<RestingOrder, 'seq' | 'account' | 'expiration' | 'acceptedAt' | 'ioc'> {
  readonly group: Group
  /** See `commitment`. */
  readonly commitment: string
}

/**
 * Position capacity that an account's orders in the batch can use. An account without an entry has no capacity limit.
 */
export interface StatedCapacity {
  readonly group: Group
  readonly reducingSide: Side | null
  /** At most the remaining steps of the account's orders on this side. */
  readonly reducible: Steps
  readonly bankruptcyLimit: Ticks
  readonly mayOpen: boolean
}

/** Market terms of the batch. */
export type StatedMarket = Omit<MarketSpec, 'chainId'> & { readonly chainId: number }

export interface BatchTerms {
  readonly ruleVersion: number
  readonly market: StatedMarket
  readonly batchId: number
  readonly asOf: Millis
  readonly oracle: OracleReport
  readonly priceProtection: Rate
  /** Orders up to this place were in the book at the market's previous auction. */
  readonly standing: Place
  /** Candidates, and orders that decided protections or cancel reasons, by sequence. */
  readonly orders: readonly StatedOrder[]
  readonly capacities: readonly StatedCapacity[]
}

/**
 * Tranches of a participating order, with their effective limits; null if no price of the band is acceptable.
 */
export interface StatedTranches {
  readonly order: Place
  readonly reducing: Steps
  readonly reducingLimit: Ticks | null
  readonly opening: Steps
  readonly openingLimit: Ticks | null
}

/** An order's fill in the batch; see `Fill`. */
export interface StatedFill extends Pick<Fill, 'reducing' | 'opening' | 'fee' | 'remaining'> {
  readonly order: Place
  readonly steps: Steps
  readonly takerSteps: Steps
  readonly makerSteps: Steps
}

/** Content of one settlement transaction. */
export interface StatedPart {
  readonly fills: readonly Pick<StatedFill, 'order' | 'steps' | 'takerSteps' | 'fee'>[]
}

export interface StatedResult {
  readonly price: Ticks | null
  readonly rule: PriceRule | null
  readonly lo: Ticks
  readonly hi: Ticks
  readonly volume: Steps
  readonly demand: Steps
  readonly supply: Steps
  readonly tranches: readonly StatedTranches[]
  readonly protections: readonly (Omit<Protection, 'seq'> & { readonly order: Place })[]
  readonly fills: readonly StatedFill[]
  readonly pairs: readonly {
    readonly buy: Place
    readonly sell: Place
    readonly steps: Steps
    /** Order of the pair that pays the maker rate: the buy or the sell. */
    readonly makerOrder: Place
    readonly buyFee: Quote
    readonly sellFee: Quote
  }[]
  readonly cancels: readonly (Omit<Cancel, 'seq'> & { readonly order: Place })[]
  readonly parts: readonly StatedPart[]
}

export interface BatchStatement extends BatchTerms {
  readonly result: StatedResult
}
