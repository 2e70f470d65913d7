/** Types of a settlement part as sent to the chain, and of the event that the chain emits for it. */
import type { FeeRates } from '../market/fees.ts'
import type { Side, SignedOrder } from '../orders/order.ts'
import type { Address, FundingIndex, MarketId, Millis, Price, Quote, Rate, Steps, Ticks } from '../units.ts'

/** SETTLED: all parts are mined. VOIDED: at least one part will never be mined. */
export type BatchStatus = 'SETTLING' | 'SETTLED' | 'VOIDED'

/** A price with its oracle signatures, in the form that the market contract verifies. */
export interface OracleReport {
  readonly price: Price
  readonly observedAt: Millis
  /** Concatenated 65-byte signatures, ascending by signer address. */
  readonly signatures: `0x${string}`
}

export interface SettlementFill {
  readonly order: SignedOrder
  readonly fill: Steps
  /** Steps of `fill` at the taker rate. */
  readonly taker: Steps
  /**
   * Maker's slot for the filled steps of a partly filled order.
   * Null if the fill completes an order without a slot, or for a market order that ends here: the chain marks both as dead.
   */
  readonly partialSlot: number | null
}

/**
 * A liquidation through the book: an unsigned reduce-only market order. The contract requires
 * `isLiquidatable`.
 */
export interface ForcedFill {
  readonly account: Address
  /** Number of the forced order. It replaces the salt in the record and changes no salt state. */
  readonly number: bigint
  readonly side: Side
  readonly fill: Steps
  readonly taker: Steps
}

/**
 * One settlement transaction. A batch has one or more parts with the same price, `asOf`, rates and report.
 */
export interface SettlementPart {
  readonly marketId: MarketId
  /** Id of the market's last action + 1; assigned at signing. */
  readonly actionId: number
  /** Auction number: from 1, never reused, independent of the action id. */
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
  /** Fills of one account are adjacent and in tranche order: forced, reducing, opening. */
  readonly fills: readonly (SettlementFill | ForcedFill)[]
}

/** One order's share of a settled part, as decoded from the event. */
export interface SettledFill {
  readonly maker: Address
  /** Salt of the order, or number of the forced order. */
  readonly salt: bigint
  /** True for a forced order, which no trader signs. */
  readonly isForced: boolean
  readonly side: Side
  readonly reduceOnly: boolean
  readonly leverage: number
  readonly fill: Steps
  readonly taker: Steps
  /** Slot of an order that stays partly filled. The slot's previous order is dead. */
  readonly partialSlot: number | null
  /** True if the order can never fill again. */
  readonly isDead: boolean
  /** True if the closing fee was capped at the close proceeds. */
  readonly isFeeCapped: boolean
  /** Wei charged to the maker for this fill. */
  readonly fee: Quote
  /** Change of the maker's free balance at the bank in wei, fee included. */
  readonly freeDelta: Quote
}

/** Event of one settled part. Its fills are in the order in which the chain applied them. */
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
