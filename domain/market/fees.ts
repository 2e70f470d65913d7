/**
 * Computes the fees of fills and the fee allowance of orders.
 * The listing rules make every fee whole wei per step, so the fees of parts add up to the fee of the whole fill.
 */

import type { Side } from '../orders/order.ts'
import {
  mulDivDown,
  mulDivUp,
  ONE,
  type Price,
  type Quote,
  type Rate,
  type Steps,
  type Ticks,
} from '../units.ts'
import { type MarketSpec, notionalAt, priceOf, quantityOf } from './market.ts'

/** Maker and taker rate of one batch: at most the market's schedule, 0 while fees are off. */
export interface FeeRates {
  readonly makerFee: Rate
  readonly takerFee: Rate
}

/** Steps of one order's fill at each rate. */
export interface FeeShares {
  readonly maker: Steps
  readonly taker: Steps
}

/**
 * p(1-p) × coefficient × quantity in wei, rounded down at 18 decimals after each step, as the contract with
 * traders specifies.
 */
function binaryFee(spec: MarketSpec, price: Ticks, steps: Steps, coefficient: Rate): Quote {
  const p = priceOf(spec, price)
  const variance = mulDivDown(p, ONE - p, ONE)
  const perUnit = mulDivDown(variance, coefficient, ONE)
  return mulDivDown(perUnit, quantityOf(spec, steps), ONE) as Quote
}

/**
 * Fee in wei of `steps` at `price` ticks under one rate.
 * Perpetual and future: notional × rate, rounded up (exact on a listed market). Binary: `binaryFee`, rounded down.
 */
export function feeOf(spec: MarketSpec, price: Ticks, steps: Steps, rate: Rate): Quote {
  if (rate === 0n || steps === 0) return 0n as Quote
  if (spec.kind === 'binary_future') return binaryFee(spec, price, steps, rate)
  return mulDivUp(notionalAt(spec, price, steps), rate, ONE) as Quote
}

/** Fee of one order's fill: its maker steps at the maker rate, its taker steps at the taker rate. */
export const fillFee = (spec: MarketSpec, price: Ticks, shares: FeeShares, rates: FeeRates): Quote =>
  (feeOf(spec, price, shares.maker, rates.makerFee) +
    feeOf(spec, price, shares.taker, rates.takerFee)) as Quote

/** Fees of one pair: each side pays its rate. */
export function pairFees(
  spec: MarketSpec,
  pair: { readonly price: Ticks; readonly steps: Steps; readonly makerSide: Side },
  rates: FeeRates,
): { readonly long: Quote; readonly short: Quote } {
  const maker = feeOf(spec, pair.price, pair.steps, rates.makerFee)
  const taker = feeOf(spec, pair.price, pair.steps, rates.takerFee)
  return pair.makerSide === 'LONG' ? { long: maker, short: taker } : { long: taker, short: maker }
}

/** Closing fee, capped at the close proceeds so that a fee never prevents a close. */
export const closingFee = (fee: Quote, proceeds: Quote): Quote => (fee < proceeds ? fee : proceeds)

/** Price × 1e18 with the largest fee in a binary market: p(1-p) peaks at 0.50. */
const HIGHEST_BINARY_FEE_PRICE = (ONE / 2n) as Price

/** Price × 1e18 of the fee allowance for an order reserved at `price` ticks. */
export const feeAllowancePrice = (spec: MarketSpec, price: Ticks): Price =>
  spec.kind === 'binary_future' ? HIGHEST_BINARY_FEE_PRICE : priceOf(spec, price)

/**
 * Wei per step reserved for the fee of an opening fill at `price` or better, at the scheduled taker rate, rounded up.
 * Binary: computed at price 0.50 for every `price`, because the fee peaks there.
 */
export function feeAllowancePerStep(spec: MarketSpec, price: Ticks): Quote {
  if (spec.kind !== 'binary_future') return feeOf(spec, price, 1 as Steps, spec.takerFee)
  return mulDivUp(spec.takerFee * spec.step, 1n, 4n * ONE) as Quote
}
