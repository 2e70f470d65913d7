/**
 * Estimates an order's fill, position and margin by clearing the next batch over the resting orders.
 * Later orders and the resting accounts' margin requirements are ignored.
 */
import { clear } from '../auction/auction.ts'
import type { Protection } from '../auction/clearing.ts'
import { protectionsOf } from '../auction/protection.ts'
import { riskTermsAt } from '../auction/tranches.ts'
import { Book, type RestingOrder } from '../book/book.ts'
import { type Band, tickNearest } from '../market/band.ts'
import type { FeeRates } from '../market/fees.ts'
import { type MarketSpec, quantityOf } from '../market/market.ts'
import { applyFill, type FillResult, FLAT, openingBasis } from '../positions/position.ts'
import { liquidationPrice } from '../risk/liquidation-price.ts'
import {
  type FundingIndex,
  type Millis,
  maxOf,
  minOf,
  type Price,
  type Quote,
  type Rate,
  type Seconds,
  type Seq,
  type Steps,
  type Ticks,
  toDecimal,
  type UserId,
} from '../units.ts'
import { type AdmissionInput, type AdmissionResult, admit } from './admission.ts'
import type { BookOrder } from './executable.ts'
import { isConditional, isMarketType, type Order } from './order.ts'
import {
  aboveLargest,
  type BindingConstraint,
  type Depth,
  type Maximum,
  maximumOf,
  type Sizing,
  sizeOf,
  stepsAt,
  stepsOfNotional,
  type UnsizedOrder,
} from './sizing.ts'

/**
 * Source of the estimated price: the batch, the order's limit, its trigger, or otherwise the oracle price.
 */
export type PriceSource = 'batch' | 'limit' | 'trigger' | 'oracle'

export interface EstimatedFill {
  readonly price: Ticks
  readonly source: PriceSource
  /** Steps that the next batch would fill, and the part of them at the taker rate. */
  readonly fillable: Steps
  readonly taker: Steps
}

/** A market in the form that an estimate reads. */
export interface QuotedMarket {
  readonly spec: MarketSpec
  readonly oracle: Price
  readonly band: Band
  /** Levels that the order would meet, best price first, without the account's own orders. */
  readonly depth: Depth
  /** The market's width of price protection. */
  readonly priceProtection: Rate
}

export interface EstimateInput extends Omit<AdmissionInput, 'spec' | 'oracle'>, QuotedMarket {
  /** The account's own limit orders on the opposite side, because the auction prevents self-trades. */
  readonly ownOrders: readonly BookOrder[]
  /** Rates that batches charge; by default the highest rates. */
  readonly fees?: FeeRates
}

const OTHERS = 0 as UserId
const SELF = 1 as UserId
/** The accounts of the levels have no positions, so no funding accrues. */
const NO_FUNDING = 0n as FundingIndex

/** A resting order bounded only by its limit: leverage 1, and a reservation for every opening step. */
const restingOrder = (
  { spec, band }: QuotedMarket,
  order: BookOrder & Pick<RestingOrder, 'account'>,
): RestingOrder => ({
  ...order,
  ...{ type: 'LIMIT', leverage: 1, forced: false, triggered: false, widenings: 0 },
  reservedPrice:
    order.side === 'SHORT' && spec.kind !== 'binary_future' ? maxOf(order.limit, band.hi) : order.limit,
  ...{ expiration: 0 as Seconds, acceptedAt: 0 as Millis },
})

/** One order per level. */
function restingLevels({ side }: Pick<Order, 'side'>, market: QuotedMarket): RestingOrder[] {
  const facing = side === 'LONG' ? 'SHORT' : 'LONG'
  return market.depth.map(({ price, steps }, at) => {
    const order = { seq: (at + 1) as Seq, account: OTHERS, side: facing, limit: price } as const
    return restingOrder(market, { ...order, remaining: steps, openable: steps, reduceOnly: false })
  })
}

/**
 * Protection price of a market order in the next batch; for a conditional order, in the first batch after its trigger.
 * The depth stands in for the orders that were in the book at the previous auction.
 */
export function expectedProtection(order: Pick<Order, 'side' | 'type'>, market: QuotedMarket): Protection {
  const levels = restingLevels(order, market)
  const terms = riskTermsAt({ ...market, fundingIndex: NO_FUNDING, positions: () => FLAT })
  const seq = (levels.length + 1) as Seq
  const own: RestingOrder = {
    ...{ seq, account: SELF, side: order.side, type: 'MARKET', limit: 0 as Ticks, remaining: 1 as Steps },
    ...{ leverage: 1, reduceOnly: false, forced: false, widenings: 0 },
    ...{ triggered: isConditional(order.type), openable: 0 as Steps, reservedPrice: 0 as Ticks },
    ...{ expiration: 0 as Seconds, acceptedAt: 0 as Millis },
  }
  const { bySeq } = protectionsOf(
    {
      ...{ terms, book: Book.of(levels), isEligible: () => true },
      ...{ standingSeq: levels.length as Seq, width: market.priceProtection },
    },
    order.side === 'LONG' ? [own] : [],
    order.side === 'SHORT' ? [own] : [],
  )
  return bySeq.get(seq) as Protection
}

/** Clears the next batch with this order; null if the order does not fill. */
function inNextBatch(order: Order, admission: AdmissionResult, input: EstimateInput): EstimatedFill | null {
  const levels = restingLevels(order, input)
  const ownOrders = input.ownOrders.map((own, at) =>
    restingOrder(input, { ...own, seq: (levels.length + 1 + at) as Seq, account: SELF }),
  )
  const resting = [...levels, ...ownOrders]
  const seq = (resting.length + 1) as Seq
  const own: RestingOrder = {
    seq,
    account: SELF,
    side: order.side,
    type: isMarketType(order.type) ? 'MARKET' : 'LIMIT',
    limit: order.price,
    remaining: order.quantity,
    leverage: order.leverage,
    reduceOnly: order.reduceOnly,
    forced: false,
    triggered: false,
    widenings: 0,
    openable: admission.openable,
    reservedPrice: admission.reservedPrice,
    expiration: 0 as Seconds,
    acceptedAt: input.now,
  }
  const clearing = clear({
    ...input,
    book: Book.of([...resting, own]),
    positions: (account) => (account === SELF ? input.position : FLAT),
    asOf: input.now,
    standingSeq: resting.length as Seq,
  })
  const fill = clearing.fills.find((one) => one.seq === seq)
  if (clearing.outcome !== 'cleared' || fill === undefined) return null
  return { price: clearing.price, source: 'batch', fillable: fill.fill, taker: fill.taker }
}

/**
 * Estimated price, and the steps that fill at once. A conditional order is priced at its limit or at its trigger.
 */
export function estimateFill(order: Order, admission: AdmissionResult, input: EstimateInput): EstimatedFill {
  const nothingYet = { fillable: 0 as Steps, taker: 0 as Steps }
  const batch = isConditional(order.type) ? null : inNextBatch(order, admission, input)
  if (batch !== null) return batch
  if (!isMarketType(order.type)) return { price: order.price, source: 'limit', ...nothingYet }
  if (isConditional(order.type)) return { price: order.trigger, source: 'trigger', ...nothingYet }
  return { price: tickNearest(input.spec, input.oracle), source: 'oracle', ...nothingYet }
}

export interface EstimatedOutcome extends FillResult {
  /** Price at which the resulting position becomes eligible for liquidation; null if there is none. */
  readonly liquidationPrice: Price | null
}

/**
 * Position and balance change after the whole order fills at the estimated price; null if the fill would be refused.
 * A resting limit order pays the maker rate; a conditional order counts as a taker.
 */
export function estimateOutcome(
  order: Order,
  { price, taker }: EstimatedFill,
  { spec, position, fundingIndex, oracle, fees }: EstimateInput,
): EstimatedOutcome | null {
  const takerSteps = order.type === 'LIMIT' ? taker : order.quantity
  const basis = openingBasis(spec, { side: order.side, limit: order.price }, price, oracle)
  const fill = { side: order.side, price, steps: order.quantity, takerSteps, leverage: order.leverage, basis }
  const { makerFee, takerFee } = fees ?? spec
  const result = applyFill(spec, position, fill, { makerFee, takerFee, fundingIndex })
  if (!result.ok) return null
  return { ...result.value, liquidationPrice: liquidationPrice(spec, result.value.position, fundingIndex) }
}

/** A sized order: its size, whether it would be accepted, and its estimated fill. */
export interface Estimate {
  /** 0 if the size is below one step; the market's largest order if the size exceeds it. */
  readonly steps: Steps
  /** Why an order of this size is rejected; null if it is accepted. */
  readonly refusal: BindingConstraint | null
  /**
   * The reservation, even if the balance does not cover it.
   * This and the fields below are null if the order cannot be estimated.
   */
  readonly admission: AdmissionResult | null
  readonly fill: EstimatedFill | null
  readonly outcome: EstimatedOutcome | null
}

/** More wei than any order can reserve. */
const UNLIMITED = (1n << 127n) as Quote

/**
 * Prices at which the order may fill in the next batch: the band, cut at the protection of a market order.
 */
export function reachOf(order: UnsizedOrder, input: EstimateInput): Band {
  const { lo, hi } = input.band
  const { price } = expectedProtection(order, input)
  return order.side === 'LONG' ? { lo, hi: price } : { lo: price, hi }
}

/**
 * Steps for a notional at the order's own price or trigger if it has one, otherwise at the prices of the
 * book.
 */
function stepsFor(order: UnsizedOrder, input: EstimateInput, notional: Quote): Steps {
  const own = isMarketType(order.type) ? order.trigger : order.price
  if (own !== 0) return stepsAt(input, own, notional)
  const { side } = order
  const { depth, spec, oracle } = input
  return stepsOfNotional(
    input,
    { side, depth, band: reachOf(order, input), fallback: tickNearest(spec, oracle) },
    notional,
  )
}

export function estimate(sizing: Sizing, unsized: UnsizedOrder, input: EstimateInput): Estimate {
  const sized = sizeOf(sizing, unsized, input, (notional) => stepsFor(unsized, input, notional))
  const steps = minOf(sized, input.spec.maxQuantity)
  const nothing = { steps, admission: null, fill: null, outcome: null }
  if (steps === 0) return { ...nothing, refusal: tooSmall(unsized, input) }

  const order = { ...unsized, quantity: steps }
  const verdict = admit(order, input)
  const refusal = sized > steps ? aboveLargest(input) : verdict.ok ? null : verdict.refusal
  const unfunded = verdict.ok ? verdict : admit(order, { ...input, available: UNLIMITED })
  if (!unfunded.ok) return { ...nothing, refusal }
  const admission = unfunded.value
  const fill = estimateFill(order, admission, input)
  return { steps, refusal, admission, fill, outcome: estimateOutcome(order, fill, input) }
}

/** Why the size is 0: either no order would be accepted, or the requested size is below one step. */
function tooSmall(order: UnsizedOrder, input: EstimateInput): BindingConstraint {
  const { spec } = input
  const { steps, binding } = maximumOf(order, input)
  if (steps === 0) return binding
  const least = toDecimal(quantityOf(spec, minOf(spec.minQuantity, steps)))
  return {
    code: 'MIN_ORDER_SIZE',
    field: 'quantity',
    expected: `at least ${least}`,
    received: '0',
    nearestValid: least,
  }
}

/** Maximum of the same order at each leverage. */
export const maximaByLeverage = (
  order: UnsizedOrder,
  input: AdmissionInput,
  leverages: readonly number[],
): (Maximum & { readonly leverage: number })[] =>
  leverages.map((leverage) => ({ leverage, ...maximumOf({ ...order, leverage }, input) }))
