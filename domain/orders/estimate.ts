/**
 * What an order would come to if it entered the next batch now: found by clearing that batch over what rests in the book. An
 * estimate: orders that arrive meanwhile, and the requirements of those that rest, are not known to it.
 */
import { clear } from '../auction/auction.ts'
import type { Reference } from '../auction/clearing.ts'
import { Book, type RestingOrder } from '../book/book.ts'
import { type Band, tickNearest } from '../market/band.ts'
import { quantityOf } from '../market/market.ts'
import { applyFill, type FillResult, FLAT, openingBasis } from '../positions/position.ts'
import { liquidationPrice } from '../risk/liquidation-price.ts'
import {
  type Millis,
  maxOf,
  minOf,
  type Price,
  type Quote,
  type Seconds,
  type Seq,
  type Steps,
  type Ticks,
  toDecimal,
  type UserId,
} from '../units.ts'
import { type AdmissionInput, type AdmissionResult, admit } from './admission.ts'
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

/** Where the estimated price comes from: the batch, the order's own limit, its trigger, or the oracle where nothing else says. */
export type PriceSource = 'batch' | 'limit' | 'trigger' | 'oracle'

export interface EstimatedFill {
  readonly price: Ticks
  readonly source: PriceSource
  /** What the book would fill in the next batch, and what of it pays the taker rate. */
  readonly fillable: Steps
  readonly taker: Steps
}

export interface EstimateInput extends AdmissionInput {
  readonly oracle: Price
  readonly band: Band
  /** What rests on the side that the order would meet, without the account's own orders: its best price first. */
  readonly depth: Depth
  readonly reference: Reference | null
}

const OTHERS = 0 as UserId
const SELF = 1 as UserId

/** One order stands for a level, at leverage 1 and covered to the last step: nothing but its limit binds it. */
function restingLevels(order: Order, { spec, band, depth }: EstimateInput): RestingOrder[] {
  const side = order.side === 'LONG' ? 'SHORT' : 'LONG'
  const isRising = side === 'SHORT' && spec.kind !== 'binary_future'
  return depth.map(({ price, steps }, at) => ({
    seq: (at + 1) as Seq,
    account: OTHERS,
    side,
    type: 'LIMIT',
    limit: price,
    remaining: steps,
    leverage: 1,
    reduceOnly: false,
    forced: false,
    openable: steps,
    reservedPrice: isRising ? maxOf(price, band.hi) : price,
    expiration: 0 as Seconds,
    acceptedAt: 0 as Millis,
  }))
}

/** The next batch with this order in it; null where the order meets nobody. */
function inNextBatch(order: Order, admission: AdmissionResult, input: EstimateInput): EstimatedFill | null {
  const levels = restingLevels(order, input)
  const seq = (levels.length + 1) as Seq
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
    openable: admission.openable,
    reservedPrice: admission.reservedPrice,
    expiration: 0 as Seconds,
    acceptedAt: input.now,
  }
  const clearing = clear({
    ...input,
    book: Book.of([...levels, own]),
    positions: (account) => (account === SELF ? input.position : FLAT),
    asOf: input.now,
  })
  const fill = clearing.fills.find((one) => one.seq === seq)
  if (clearing.outcome !== 'cleared' || fill === undefined) return null
  return { price: clearing.price, source: 'batch', fillable: fill.fill, taker: fill.taker }
}

/** At which price, and how much of it at once. A conditional order is priced at its limit or where it will trigger. */
export function estimateFill(order: Order, admission: AdmissionResult, input: EstimateInput): EstimatedFill {
  const nothingYet = { fillable: 0 as Steps, taker: 0 as Steps }
  const batch = isConditional(order.type) ? null : inNextBatch(order, admission, input)
  if (batch !== null) return batch
  if (!isMarketType(order.type)) return { price: order.price, source: 'limit', ...nothingYet }
  if (isConditional(order.type)) return { price: order.trigger, source: 'trigger', ...nothingYet }
  return { price: tickNearest(input.spec, input.oracle), source: 'oracle', ...nothingYet }
}

export interface EstimatedOutcome extends FillResult {
  /** Where the position would become eligible for liquidation; null where no price would make it so. */
  readonly liquidationPrice: Price | null
}

/**
 * What the whole order, filled at that price, would make of position and balance; null where its fill would be refused. A
 * limit order that rests pays the maker rate; what triggers later counts as a taker.
 */
export function estimateOutcome(
  order: Order,
  { price, taker }: EstimatedFill,
  { spec, position, fundingIndex, oracle }: EstimateInput,
): EstimatedOutcome | null {
  const takerSteps = order.type === 'LIMIT' ? taker : order.quantity
  const basis = openingBasis(spec, { side: order.side, limit: order.price }, price, oracle)
  const fill = { side: order.side, price, steps: order.quantity, takerSteps, leverage: order.leverage, basis }
  const { makerFee, takerFee } = spec
  const result = applyFill(spec, position, fill, { makerFee, takerFee, fundingIndex })
  if (!result.ok) return null
  return { ...result.value, liquidationPrice: liquidationPrice(spec, result.value.position, fundingIndex) }
}

/** What a trader has in mind, as an order: how much that is, whether it would be taken, and what it would come to. */
export interface Estimate {
  /** 0 where the sizing comes to less than one step; the largest order where it comes to more. */
  readonly steps: Steps
  /** Why an order of that size is refused; null where it is accepted. */
  readonly refusal: BindingConstraint | null
  /** The rest is null where the order could not even be estimated. What it would reserve is told whether or not it is affordable. */
  readonly admission: AdmissionResult | null
  readonly fill: EstimatedFill | null
  readonly outcome: EstimatedOutcome | null
}

/** More than any order can cost. */
const UNLIMITED = (1n << 127n) as Quote

/** The price that a notional is counted at: the order's own where it has one, else the book's. */
function stepsFor(order: UnsizedOrder, input: EstimateInput, notional: Quote): Steps {
  const own = isMarketType(order.type) ? order.trigger : order.price
  if (own !== 0) return stepsAt(input, own, notional)
  const { side } = order
  const { depth, band, spec, oracle } = input
  return stepsOfNotional(input, { side, depth, band, fallback: tickNearest(spec, oracle) }, notional)
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

/** Either no order at all would be taken, or what was asked for is less than one step. */
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

/** The maximum at each leverage, for the same order otherwise. */
export const maximaByLeverage = (
  order: UnsizedOrder,
  input: AdmissionInput,
  leverages: readonly number[],
): (Maximum & { readonly leverage: number })[] =>
  leverages.map((leverage) => ({ leverage, ...maximumOf({ ...order, leverage }, input) }))
