/**
 * Market parameters (grid, limits, risk, fees) and the listing rules that they satisfy.
 * The fields mirror the parameters of the market contract.
 */
import {
  type Address,
  type MarketId,
  type Millis,
  ONE,
  type Price,
  type Quantity,
  type Quote,
  type Rate,
  type Steps,
  type Ticks,
} from '../units.ts'

export type MarketKind = 'perpetual' | 'future' | 'binary_future'

/**
 * `open`: every command is allowed. `cancel_only`: placements and ordinary batches stop; liquidation batches
 * run.
 * `halted`: liquidation batches stop as well. `settling`, `settled`: the market has ended.
 */
export type MarketMode = 'open' | 'cancel_only' | 'halted' | 'settling' | 'settled'

export interface MarketSpec {
  readonly marketId: MarketId
  readonly symbol: string
  readonly kind: MarketKind
  /** IsolatedTrader contract of the market; the verifying contract of its signing domain. */
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
  /** Width of the price band above and below the oracle price, as fractions of the oracle price. */
  readonly mtbLong: Rate
  readonly mtbShort: Rate
  /** Fractions of notional, or coefficients of the binary fee formula; 0 while fees are off. */
  readonly makerFee: Rate
  readonly takerFee: Rate
  /**
   * Largest absolute funding rate, a fraction of the oracle price per hour; 0 if the market has no funding.
   */
  readonly fundingCap: Rate
  /** True: funding accrues only during the sessions of the underlying. */
  readonly fundingSession: boolean
  /** Bounds of a final price; both 0 for a perpetual, 0 and 1 for a binary market. */
  readonly finalLow: Price
  readonly finalHigh: Price
  /** Listed expiry; 0 for a perpetual. Every batch has an `asOf` before the expiry. */
  readonly expiresAt: Millis
  /** Time after the first final report during which another report can replace it. */
  readonly disputeWindow: Millis
}

/**
 * Wei of one price tick on one quantity step. The listing rules make it whole, so a notional never rounds.
 */
export const tickStepValue = (spec: MarketSpec): Quote => ((spec.tick * spec.step) / ONE) as Quote

/** Notional of `steps` at `price` in wei; exact. */
export const notionalAt = (spec: MarketSpec, price: Ticks, steps: Steps): Quote =>
  (BigInt(price) * BigInt(steps) * tickStepValue(spec)) as Quote

export const priceOf = (spec: MarketSpec, ticks: Ticks): Price => (BigInt(ticks) * spec.tick) as Price
export const quantityOf = (spec: MarketSpec, steps: Steps): Quantity =>
  (BigInt(steps) * spec.step) as Quantity

/** Price 1 in ticks: the upper end of a binary market. By the listing rules, the tick divides 1. */
export const oneInTicks = (spec: MarketSpec): Ticks => Number(ONE / spec.tick) as Ticks

/** The settlement record stores prices in 40 bits. */
export const MAX_TICKS = (2 ** 40 - 1) as Ticks

/** The highest price of an order or a batch: one tick below 1 on a binary market. */
export const highestPrice = (spec: MarketSpec): Ticks =>
  spec.kind === 'binary_future' ? ((oneInTicks(spec) - 1) as Ticks) : MAX_TICKS

/**
 * Reasons why a market cannot be listed. The list is closed; ListingLib in the contract checks the same
 * rules.
 */
export type ListingRefusal =
  /** tick × step × 1e-6 is not whole wei; for a binary market, see `isBinaryGrid`. */
  | 'GRID'
  /** A rate is not a multiple of 1e-6, or negative. */
  | 'RATE_GRID'
  /** Minimum price is below 1 tick or above the highest price. */
  | 'MIN_PRICE'
  /** The bounds violate 1 <= minQuantity <= maxQuantity <= 2^33 steps. */
  | 'QUANTITY_BOUNDS'
  /** Maximum leverage is not a whole number from 1 to 127. */
  | 'MAX_LEVERAGE'
  /**
   * MMR is not positive, or IMR is below MMR + 0.75 points.
   * With a smaller spread the liquidation buffer would include positions that have just opened.
   */
  | 'MARGIN_SPREAD'
  /** IMR × maxLeverage is above 1: an order at maximum leverage could not open at the oracle price. */
  | 'MARGIN_LEVERAGE'
  /** The band violates mtbShort < 1 or mtbLong <= 1. */
  | 'BAND_WIDTH'
  /** The rates violate maker <= taker <= 5 %. The fee allowance is computed at the taker rate. */
  | 'FEES'
  /** The funding cap exceeds 4 % per hour, or a market other than a perpetual has funding. */
  | 'FUNDING'
  /** The bounds violate low < high, or are not 0 and 1 (binary), or are not 0 and 0 (perpetual). */
  | 'FINAL_PRICE'
  /** A dated market has no expiry, or a perpetual has an expiry. */
  | 'EXPIRY'
  /** The dispute window is not from 1 s to 14 days. */
  | 'DISPUTE_WINDOW'

/** Largest order size in steps. Sums over a whole book stay safe integers. */
export const MAX_ORDER_STEPS = (2 ** 33) as Steps
/** The packed position has 7 bits for the leverage. */
export const MAX_LEVERAGE = 127

const MILLIONTH = 10n ** 12n
const MIN_MARGIN_SPREAD = 7_500n * MILLIONTH
/** The contract requires a day on a production chain. */
const MIN_DISPUTE_WINDOW = 1_000
const MAX_DISPUTE_WINDOW = 1_209_600_000
const MAX_FEE = 50_000n * MILLIONTH
const MAX_FUNDING_CAP = 40_000n * MILLIONTH

/**
 * p(1-p) × coefficient does not round, because the tick divides 1 and is a multiple of 1e-6.
 * Its product with the quantity does not round, because tick² × step × 1e-6 is whole wei.
 */
const isBinaryGrid = ({ tick, step }: MarketSpec): boolean =>
  tick < ONE && ONE % tick === 0n && tick % MILLIONTH === 0n && (tick * tick * step) % 10n ** 42n === 0n

function isGrid(spec: MarketSpec): boolean {
  if (spec.tick <= 0n || spec.step <= 0n) return false
  if ((spec.tick * spec.step) % 10n ** 24n !== 0n) return false
  return spec.kind !== 'binary_future' || isBinaryGrid(spec)
}

function isFinalRange({ kind, finalLow, finalHigh }: MarketSpec): boolean {
  if (kind === 'perpetual') return finalLow === 0n && finalHigh === 0n
  if (kind === 'binary_future') return finalLow === 0n && finalHigh === ONE
  return finalLow >= 0n && finalLow < finalHigh
}

const isBetween = (value: number, low: number, high: number): boolean =>
  Number.isSafeInteger(value) && value >= low && value <= high

/** Every rule that `spec` violates; empty if the market can be listed. */
export function listingRefusals(spec: MarketSpec): readonly ListingRefusal[] {
  if (!isGrid(spec)) return ['GRID']
  const { imr, mmr, mtbLong, mtbShort, makerFee, takerFee, maxLeverage, fundingCap } = spec
  const rates = [imr, mmr, mtbLong, mtbShort, makerFee, takerFee, fundingCap]
  const funds = fundingCap > 0n || spec.fundingSession
  const rules: readonly (readonly [ListingRefusal, boolean])[] = [
    ['RATE_GRID', rates.every((rate) => rate >= 0n && rate % MILLIONTH === 0n)],
    ['MIN_PRICE', isBetween(spec.minPrice, 1, highestPrice(spec))],
    [
      'QUANTITY_BOUNDS',
      isBetween(spec.minQuantity, 1, spec.maxQuantity) && isBetween(spec.maxQuantity, 1, MAX_ORDER_STEPS),
    ],
    ['MAX_LEVERAGE', isBetween(maxLeverage, 1, MAX_LEVERAGE)],
    ['MARGIN_SPREAD', mmr > 0n && imr >= mmr + MIN_MARGIN_SPREAD],
    ['MARGIN_LEVERAGE', imr * BigInt(Math.ceil(maxLeverage)) <= ONE],
    ['BAND_WIDTH', mtbShort < ONE && mtbLong <= ONE],
    ['FEES', makerFee <= takerFee && takerFee <= MAX_FEE],
    ['FUNDING', fundingCap <= MAX_FUNDING_CAP && (!funds || spec.kind === 'perpetual')],
    ['FINAL_PRICE', isFinalRange(spec)],
    [
      'EXPIRY',
      isBetween(spec.expiresAt, 0, 2 ** 48 - 1) && (spec.expiresAt === 0) === (spec.kind === 'perpetual'),
    ],
    ['DISPUTE_WINDOW', isBetween(spec.disputeWindow, MIN_DISPUTE_WINDOW, MAX_DISPUTE_WINDOW)],
  ]
  return rules.filter(([, holds]) => !holds).map(([refusal]) => refusal)
}
