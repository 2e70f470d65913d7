/** Types of a settlement part as it is sent to the chain, and of the event that the chain emits for it. */
import type { FeeRates } from '../market/fees.ts'
import type { Side, SignedOrder } from '../orders/order.ts'
import type { Address, FundingIndex, MarketId, Millis, Price, Quote, Rate, Steps, Ticks } from '../units.ts'

/** SETTLED while all of its parts are mined; VOIDED if at least one of them will not be. */
export type BatchStatus = 'SETTLING' | 'SETTLED' | 'VOIDED'

/** A price with the signatures of the oracle's signers, as the market's contract verifies it. */
export interface OracleReport {
  readonly price: Price
  readonly observedAt: Millis
  /** Concatenated 65-byte signatures, ascending by signer address. */
  readonly signatures: `0x${string}`
}

export interface SettlementFill {
  readonly order: SignedOrder
  readonly fill: Steps
  /** Steps of `fill` that pay the taker rate. */
  readonly taker: Steps
  /**
   * The maker's slot for the filled steps of a partly filled order. Null if the fill completes an order that
   * never had a slot, and for a market order that ends with this part, which the chain marks as dead at once.
   */
  readonly partialSlot: number | null
}

/**
 * A liquidation by the book: an unsigned reduce-only market order. The contract allows it only if
 * `isLiquidatable`.
 */
export interface ForcedFill {
  readonly account: Address
  /** Number of the forced order. It takes the place of the salt in the record; no salt state changes. */
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
  /** The market's last action + 1; assigned at signing. */
  readonly actionId: number
  /** Number of the auction: from 1, never reused, distinct from the action. */
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
  /** The fills of one account are adjacent and in tranche order: forced, reducing, opening. */
  readonly fills: readonly (SettlementFill | ForcedFill)[]
}

/** One order's share of a settled part, as decoded from the event. */
export interface SettledFill {
  readonly maker: Address
  /** Salt of the order, or number of the forced order. */
  readonly salt: bigint
  /** A liquidation: no trader has signed the order. */
  readonly isForced: boolean
  readonly side: Side
  readonly reduceOnly: boolean
  readonly leverage: number
  readonly fill: Steps
  readonly taker: Steps
  /** The slot of an order that stays partly filled. The order that the slot held before is dead. */
  readonly partialSlot: number | null
  /** The order can never fill again. */
  readonly isDead: boolean
  /** The closing fee was capped at the close proceeds. */
  readonly isFeeCapped: boolean
  /** Wei charged to the maker for this fill. */
  readonly fee: Quote
  /** Change of the maker's free balance at the bank in wei, fee included. */
  readonly freeDelta: Quote
}

/** The event of one settled part, with its fills in the order in which the chain applied them. */
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
