/** Types of what is published about a batch: its terms, its orders without names, and its result. */
import type { Cancel, Fill, PriceRule, Protection } from '../auction/clearing.ts'
import type { RestingOrder } from '../book/book.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Side } from '../orders/order.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import type { Millis, Quote, Rate, Seq, Steps, Ticks, UserId } from '../units.ts'

/** An order by its place in the sequence of the statement's orders: from 1. */
export type Place = Seq
/** The number of one account in one batch: from 1, by the places of the accounts' first orders. */
export type Group = UserId

export interface StatedOrder
  extends Omit<RestingOrder, 'seq' | 'account' | 'expiration' | 'acceptedAt' | 'ioc'> {
  readonly group: Group
  /** See `commitment`. */
  readonly commitment: string
}

/** The capacity of an account that its orders in the batch can use; an account without an entry is not bound by a position. */
export interface StatedCapacity {
  readonly group: Group
  readonly reducingSide: Side | null
  /** At most the remaining steps of the account's orders on that side. */
  readonly reducible: Steps
  readonly bankruptcyLimit: Ticks
  readonly mayOpen: boolean
}

/** The market's terms in the batch. */
export type StatedMarket = Omit<MarketSpec, 'chainId'> & { readonly chainId: number }

export interface BatchTerms {
  readonly ruleVersion: number
  readonly market: StatedMarket
  readonly batchId: number
  readonly asOf: Millis
  readonly oracle: OracleReport
  readonly priceProtection: Rate
  /** Orders up to this place stood in the market's previous auction. */
  readonly standing: Place
  /** By sequence: the candidates, and the orders that decided protections and the reasons of cancels. */
  readonly orders: readonly StatedOrder[]
  readonly capacities: readonly StatedCapacity[]
}

/** The tranches with which an order took part, and their effective limits; null if no price of the band is acceptable. */
export interface StatedTranches {
  readonly order: Place
  readonly reducing: Steps
  readonly reducingLimit: Ticks | null
  readonly opening: Steps
  readonly openingLimit: Ticks | null
}

/** What an order gets in the batch; see `Fill`. */
export interface StatedFill extends Pick<Fill, 'reducing' | 'opening' | 'fee' | 'remaining'> {
  readonly order: Place
  readonly steps: Steps
  readonly takerSteps: Steps
  readonly makerSteps: Steps
}

/** What one transaction settles. */
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
    /** The buy or the sell, which pays the maker rate. */
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
