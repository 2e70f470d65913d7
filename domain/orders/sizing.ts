/**
 * Computes the largest order that admission accepts, and converts a trader's sizing to steps.
 * The maximum is found by calling `admit`: the returned size is accepted, and one step more is rejected.
 */
import type { Band } from '../market/band.ts'
import { type MarketSpec, notionalAt, quantityOf } from '../market/market.ts'
import { signOf } from '../positions/position.ts'
import {
  maxOf,
  minOf,
  mulDivDown,
  ONE,
  type Quantity,
  type Quote,
  type Rate,
  type Steps,
  type Ticks,
  toDecimal,
} from '../units.ts'
import { type AdmissionCode, type AdmissionInput, admit } from './admission.ts'
import type { Order } from './order.ts'
import type { OrderRefusal } from './order-request.ts'

/** An order without a quantity. */
export type UnsizedOrder = Omit<Order, 'quantity'>

/**
 * Constraint that ends the maximum: a refusal of `admit`, or a limit that admission does not check. The list is closed.
 */
export type BindingCode = AdmissionCode | 'MAX_ORDER_SIZE' | 'POSITION_SIZE'
export type BindingConstraint = OrderRefusal<BindingCode>

export interface Maximum {
  /** 0 if no quantity is accepted. */
  readonly steps: Steps
  /** Why one step more is rejected; if no quantity is accepted, why the smallest order is rejected. */
  readonly binding: BindingConstraint
}

interface Ceiling {
  readonly steps: Steps
  readonly binding: BindingConstraint
}

const exceeds = (
  code: BindingCode,
  { spec }: Pick<AdmissionInput, 'spec'>,
  most: Steps,
  what: string,
): BindingConstraint => {
  const nearestValid = toDecimal(quantityOf(spec, most))
  const received = toDecimal(quantityOf(spec, (most + 1) as Steps))
  return { code, field: 'quantity', expected: `at most ${nearestValid}, ${what}`, received, nearestValid }
}

/** Refusal of one step more than the market's largest order. */
export const aboveLargest = (input: Pick<AdmissionInput, 'spec'>): BindingConstraint =>
  exceeds('MAX_ORDER_SIZE', input, input.spec.maxQuantity, 'the largest order of the market')

/** Whether the order is on the side that reduces the matched position. */
const reduces = ({ side }: Pick<Order, 'side'>, { position }: AdmissionInput): boolean =>
  position.size * signOf(side) < 0

/**
 * Maximum steps to try. A reduce-only order gains nothing beyond the position, although admission would
 * accept more steps.
 */
function ceilingOf(order: UnsizedOrder, input: AdmissionInput): Ceiling {
  const { spec, position } = input
  const size = Math.abs(position.size) as Steps
  if (order.reduceOnly && reduces(order, input) && size <= spec.maxQuantity) {
    return { steps: size, binding: exceeds('POSITION_SIZE', input, size, 'the position') }
  }
  const most = spec.maxQuantity
  return { steps: most, binding: aboveLargest(input) }
}

/**
 * Largest quantity that `admit` accepts, by bisection with about thirty calls.
 * From the smallest order on, admission only gets stricter with size. A reduce-only order is bounded by the position.
 */
export function maximumOf(order: UnsizedOrder, input: AdmissionInput): Maximum {
  const ceiling = ceilingOf(order, input)
  const admitSteps = (steps: number) => admit({ ...order, quantity: steps as Steps }, input)
  const smallest = minOf(input.spec.minQuantity, ceiling.steps)
  const least = admitSteps(smallest)
  if (!least.ok) return { steps: 0 as Steps, binding: least.refusal }
  const most = admitSteps(ceiling.steps)
  if (most.ok) return ceiling
  let accepted: number = smallest
  let refused: number = ceiling.steps
  let { refusal } = most
  while (refused - accepted > 1) {
    const middle = Math.floor((accepted + refused) / 2)
    const verdict = admitSteps(middle)
    if (verdict.ok) accepted = middle
    else {
      refused = middle
      refusal = verdict.refusal
    }
  }
  return { steps: accepted as Steps, binding: refusal }
}

/** A trader's way to state a size. Shares are fractions × 1e18, at most ONE. */
export type Sizing =
  | { readonly intent: 'units'; readonly quantity: Quantity }
  | { readonly intent: 'notional'; readonly notional: Quote }
  /** Share of the available balance, for margin and fee allowance. */
  | { readonly intent: 'available_margin'; readonly share: Rate }
  | { readonly intent: 'max' }
  /** Share of the matched position. */
  | { readonly intent: 'reduce_percentage'; readonly share: Rate }

/** Levels that an order would meet, best price first. */
export type Depth = readonly { readonly price: Ticks; readonly steps: Steps }[]

/**
 * Steps of a sizing, rounded down to the grid: 0 below one step, and one step above the market's largest order if the
 * size exceeds that order.
 */
export function sizeOf(
  sizing: Sizing,
  order: UnsizedOrder,
  input: AdmissionInput,
  stepsFor: (notional: Quote) => Steps,
): Steps {
  const { spec, position } = input
  switch (sizing.intent) {
    case 'units':
      return cappedSteps(aboveMaximum(spec), sizing.quantity / spec.step)
    case 'notional':
      return stepsFor(sizing.notional)
    case 'available_margin': {
      const available = mulDivDown(maxOf(0n, input.available as bigint), sizing.share, ONE) as Quote
      return maximumOf(order, { ...input, available }).steps
    }
    case 'max':
      return maximumOf(order, input).steps
    case 'reduce_percentage': {
      if (!reduces(order, input)) return 0 as Steps
      return cappedSteps(aboveMaximum(spec), mulDivDown(BigInt(Math.abs(position.size)), sizing.share, ONE))
    }
  }
}

const aboveMaximum = ({ maxQuantity }: MarketSpec): Steps => (maxQuantity + 1) as Steps
const cappedSteps = (most: Steps, steps: bigint): Steps =>
  (steps < BigInt(most) ? Number(steps) : most) as Steps

/** Maximum steps with a notional of at most `notional` at `price`; capped as in `sizeOf`. */
export const stepsAt = ({ spec }: Pick<AdmissionInput, 'spec'>, price: Ticks, notional: Quote): Steps =>
  cappedSteps(aboveMaximum(spec), notional / notionalAt(spec, price, 1 as Steps))

/** Levels that a market order meets; `fallback` is the price in ticks if there are none. */
export interface OpposingBook {
  readonly side: Order['side']
  readonly depth: Depth
  readonly band: Band
  readonly fallback: Ticks
}

/**
 * Maximum steps that a market order can trade for `notional` at a single price, the worst level it needs. That price
 * also applies to steps beyond the book.
 */
export function stepsOfNotional(
  input: Pick<AdmissionInput, 'spec'>,
  { side, depth, band, fallback }: OpposingBook,
  notional: Quote,
): Steps {
  const isInBand = ({ price }: Depth[number]) => (side === 'LONG' ? price <= band.hi : price >= band.lo)
  const levels = depth.filter(isInBand)
  let reached = 0
  for (const { price, steps } of levels) {
    const affordable = stepsAt(input, price, notional)
    // The last step of a level is never used: with an empty opposite side, the clearing price would follow the
    // reference instead.
    if (affordable < reached + steps) return maxOf(affordable, maxOf(0, reached - 1)) as Steps
    reached += steps
  }
  const affordable = stepsAt(input, levels.at(-1)?.price ?? fallback, notional)
  return (affordable > reached ? affordable : maxOf(0, reached - 1)) as Steps
}
