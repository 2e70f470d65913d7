/** What one part of a batch says to the chain, and what the chain says back. */
import type { SignedOrder } from './order.ts'
import type { Address, MarketId, Millis, Price, Quote, Rate, Steps, Ticks } from './units.ts'

/** A price with the signatures of the oracle's signers, as the market's contract checks it. */
export interface OracleReport {
  readonly price: Price
  readonly observedAt: Millis
  /** Concatenated 65-byte signatures, ascending by signer address. */
  readonly signatures: `0x${string}`
}

export interface SettlementFill {
  readonly order: SignedOrder
  readonly fill: Steps
  /** The share of `fill` that pays the taker rate. */
  readonly taker: Steps
  /** The maker's slot that holds (or will hold) the filled quantity of a partly filled order; null where the fill completes an order that never had one. */
  readonly partialSlot: number | null
}

/** One transaction's worth of a batch. A batch has one or more parts with the same price, `asOf` and report. */
export interface SettlementPart {
  readonly marketId: MarketId
  /** Exactly the market's last action + 1; given at signing. */
  readonly actionId: number
  /** The auction's number: never reused, distinct from the action. */
  readonly batchId: number
  readonly part: number
  /** Number of parts in this batch. */
  readonly parts: number
  readonly asOf: Millis
  readonly price: Ticks
  readonly makerFee: Rate
  readonly takerFee: Rate
  readonly oracle: OracleReport
  /** Within an account in tranche order: reducing before opening. */
  readonly fills: readonly SettlementFill[]
}

/** One order's share of a settled part, as decoded from the log. */
export interface SettledFill {
  readonly maker: Address
  readonly salt: bigint
  readonly side: SignedOrder['side']
  readonly fill: Steps
  readonly taker: Steps
  /** Charged to the maker for this fill. */
  readonly fee: Quote
  /** Change of the maker's free balance at the bank, fee included. */
  readonly freeDelta: Quote
}
