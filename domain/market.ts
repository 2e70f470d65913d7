/** What a market is: its grid, its limits, its risk and fee parameters. Mirrors the parameters of the market's contract. */
import { ONE, type Address, type MarketId, type Price, type Quantity, type Quote, type Rate, type Steps, type Ticks } from './units.ts'

export type MarketKind = 'perpetual' | 'future' | 'binary_future'

/** Open: all. Cancel-only: no placement, no batches. Halted: the same, set by risk. Settling and settled: the market has ended. */
export type MarketMode = 'open' | 'cancel_only' | 'halted' | 'settling' | 'settled'

export interface MarketSpec {
  readonly marketId: MarketId
  readonly symbol: string
  readonly kind: MarketKind
  /** The market's IsolatedTrader: verifying contract of the signing domain. */
  readonly trader: Address
  readonly chainId: bigint
  readonly tick: Price
  readonly step: Quantity
  readonly minPrice: Ticks
  readonly minQuantity: Steps
  readonly maxQuantity: Steps
  readonly maxLeverage: number
  /** Initial and maintenance margin requirement, fractions of notional at the oracle price. */
  readonly imr: Rate
  readonly mmr: Rate
  /** Price band around the oracle price, fractions of it. */
  readonly mtbLong: Rate
  readonly mtbShort: Rate
  /** Fractions of notional, or the coefficients of the binary formula; 0 while fees are off. */
  readonly makerFee: Rate
  readonly takerFee: Rate
}

/** Value of one tick of price on one step of quantity, in wei. Whole by the listing rule, so a notional never rounds. */
export const tickStepValue = (spec: MarketSpec): Quote => ((spec.tick * spec.step) / ONE) as Quote

/** Notional of `steps` at `price`: exact. */
export const notionalAt = (spec: MarketSpec, price: Ticks, steps: Steps): Quote =>
  (BigInt(price) * BigInt(steps) * tickStepValue(spec)) as Quote

export const priceOf = (spec: MarketSpec, ticks: Ticks): Price => (BigInt(ticks) * spec.tick) as Price
export const quantityOf = (spec: MarketSpec, steps: Steps): Quantity => (BigInt(steps) * spec.step) as Quantity

/** Price 1, in ticks: the upper end of a binary market. The tick divides 1 by the listing rule. */
export const oneInTicks = (spec: MarketSpec): Ticks => Number(ONE / spec.tick) as Ticks
