/** What one part of a batch says to the chain, and what the chain says back. */
import type { FeeRates } from '../market/fees.ts'
import type { Side, SignedOrder } from '../orders/order.ts'
import type { Address, FundingIndex, MarketId, Millis, Price, Quote, Rate, Steps, Ticks } from '../units.ts'

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
  /**
   * The maker's slot that holds, or will hold, the filled quantity of a partly filled order. Null where the fill completes
   * an order that never had one, and for a market order that ends with this part: the chain then marks it dead at once.
   */
  readonly partialSlot: number | null
}

/** A liquidation by the book: a market order that only reduces, which nobody signed. Allowed by `isLiquidatable` alone. */
export interface ForcedFill {
  readonly account: Address
  /** Of the liquidation: stands where an order has its salt, and touches no salt. */
  readonly number: bigint
  readonly side: Side
  readonly fill: Steps
  readonly taker: Steps
}

/** One transaction's worth of a batch. A batch has one or more parts with the same price, `asOf`, rates and report. */
export interface SettlementPart {
  readonly marketId: MarketId
  /** Exactly the market's last action + 1; given at signing. */
  readonly actionId: number
  /** The auction's number: from 1, never reused, distinct from the action. */
  readonly batchId: number
  /** From 1 to `parts`. */
  readonly part: number
  /** Number of parts in this batch. */
  readonly parts: number
  readonly asOf: Millis
  readonly price: Ticks
  readonly makerFee: Rate
  readonly takerFee: Rate
  readonly oracle: OracleReport
  /** The fills of one account next to each other, in tranche order: forced, reducing, opening. */
  readonly fills: readonly (SettlementFill | ForcedFill)[]
}

/** One order's share of a settled part, as decoded from the log. */
export interface SettledFill {
  readonly maker: Address
  /** Of the order; the number of a liquidation. */
  readonly salt: bigint
  /** A liquidation: no order, no salt. */
  readonly isForced: boolean
  readonly side: Side
  readonly reduceOnly: boolean
  readonly leverage: number
  readonly fill: Steps
  readonly taker: Steps
  /** Where the order sits if it stays partly filled; what sat there before is dead. */
  readonly partialSlot: number | null
  /** The order can never fill again. */
  readonly isDead: boolean
  /** The closing fee was cut to the close proceeds. */
  readonly isFeeCapped: boolean
  /** Charged to the maker for this fill. */
  readonly fee: Quote
  /** Change of the maker's free balance at the bank, fee included. */
  readonly freeDelta: Quote
}

/** One settled part: everything that an indexer needs, in the order in which the chain applied it. */
export interface BatchSettled extends FeeRates {
  readonly actionId: number
  readonly batchId: number
  readonly part: number
  readonly parts: number
  readonly asOf: Millis
  readonly price: Ticks
  readonly oraclePrice: Price
  readonly observedAt: Millis
  readonly fundingIndex: FundingIndex
  readonly fills: readonly SettledFill[]
}
