/**
 * The parameters of a market (grid, limits, risk, fees) and the listing rules that they satisfy. Mirrors the
 * parameters of the market's contract.
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
 * `open`: everything is allowed. `cancel_only`: no placement, and no batches but those of liquidations. `halted`: neither, nor liquidations.
 * `settling`, `settled`: the market has ended.
 */
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
  /** Width of the price band above and below the oracle price, fractions of it. */
  readonly mtbLong: Rate
  readonly mtbShort: Rate
  /** Fractions of notional, or the coefficients of the binary formula; 0 while fees are off. */
  readonly makerFee: Rate
  readonly takerFee: Rate
  /**
   * Largest absolute funding rate, a fraction of the oracle price per hour; 0 if the market has no funding.
   */
  readonly fundingCap: Rate
  /** Whether funding accrues only during the session of the underlying. */
  readonly fundingSession: boolean
  /** Bounds of a final price; both 0 for a perpetual, 0 and 1 for a binary market. */
  readonly finalLow: Price
  readonly finalHigh: Price
  /** The listed expiry; 0 for a perpetual. No batch has an `asOf` at or after it. */
  readonly expiresAt: Millis
  /** Time from the first final report in which another report can replace it. */
  readonly disputeWindow: Millis
}

/**
 * Wei of one tick of price on one step of quantity. Whole by the listing rule, so a notional never rounds.
 */
export const tickStepValue = (spec: MarketSpec): Quote => ((spec.tick * spec.step) / ONE) as Quote

/** Notional of `steps` at `price` in wei; exact. */
export const notionalAt = (spec: MarketSpec, price: Ticks, steps: Steps): Quote =>
  (BigInt(price) * BigInt(steps) * tickStepValue(spec)) as Quote

export const priceOf = (spec: MarketSpec, ticks: Ticks): Price => (BigInt(ticks) * spec.tick) as Price
export const quantityOf = (spec: MarketSpec, steps: Steps): Quantity =>
  (BigInt(steps) * spec.step) as Quantity

/** Price 1 in ticks: the upper end of a binary market. The tick divides 1 by the listing rule. */
export const oneInTicks = (spec: MarketSpec): Ticks => Number(ONE / spec.tick) as Ticks

/** The settlement record stores prices in 40 bits. */
export const MAX_TICKS = (2 ** 40 - 1) as Ticks

/** The highest price of an order or a batch: one tick below 1 on a binary market. */
export const highestPrice = (spec: MarketSpec): Ticks =>
  spec.kind === 'binary_future' ? ((oneInTicks(spec) - 1) as Ticks) : MAX_TICKS

/**
 * Why a market cannot be listed. Closed list; the contract's ListingLib checks the same rules on its
 * parameters.
 */
export type ListingRefusal =
  /** tick × step × 1e-6 is not whole wei; binary: see `isBinaryGrid`. */
  | 'GRID'
  /** A rate is not a multiple of 1e-6, or negative. */
  | 'RATE_GRID'
  /** Not 1 <= minPrice <= the highest price. */
  | 'MIN_PRICE'
  /** Not 1 <= minQuantity <= maxQuantity <= 2^33 steps. */
  | 'QUANTITY_BOUNDS'
  /** Not a whole number from 1 to 127. */
  | 'MAX_LEVERAGE'
  /**
   * Not 0 < MMR and MMR + 0.75 points <= IMR. With a smaller spread the liquidation buffer would include
   * positions that have just opened.
   */
  | 'MARGIN_SPREAD'
  /** IMR × maxLeverage above 1: an order at the highest leverage could not open at the oracle price. */
  | 'MARGIN_LEVERAGE'
  /** Not mtbShort < 1 and mtbLong <= 1. */
  | 'BAND_WIDTH'
  /** Not maker <= taker <= 5 %: the fee allowance is computed at the taker rate. */
  | 'FEES'
  /** A cap above 4 % per hour, or funding in a market that is not perpetual. */
  | 'FUNDING'
  /** Not low < high, 0 and 1 for a binary market, 0 and 0 for a perpetual. */
  | 'FINAL_PRICE'
  /** No expiry, or an expiry of a perpetual. */
  | 'EXPIRY'
  /** Not 1 s <= dispute window <= 14 days. */
  | 'DISPUTE_WINDOW'

/** Order sizes stay at or below this many steps, so that sums over a whole book are safe integers. */
export const MAX_ORDER_STEPS = (2 ** 33) as Steps
/** The packed position has 7 bits for the leverage. */
export const MAX_LEVERAGE = 127

const MILLIONTH = 10n ** 12n
const MIN_MARGIN_SPREAD = 7_500n * MILLIONTH
/** On a production chain the contract demands a day. */
const MIN_DISPUTE_WINDOW = 1_000
const MAX_DISPUTE_WINDOW = 1_209_600_000
const MAX_FEE = 50_000n * MILLIONTH
const MAX_FUNDING_CAP = 40_000n * MILLIONTH

/**
 * The tick divides 1 and is a multiple of 1e-6, so that p(1-p) has whole millionths at 18 decimals and p(1-p)
 * × coefficient does not round. tick² × step × 1e-6 is whole wei, so that the product with the quantity does
 * not round either.
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
