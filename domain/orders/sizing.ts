/**
 * How large an order may be, and how large the order is that a trader has in mind. Nothing is computed twice: the answer is
 * found by asking `admit`, so what is said here to be accepted is accepted, and one step more is not.
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

/** An order that has no size yet. */
export type UnsizedOrder = Omit<Order, 'quantity'>

/** What ends the maximum: a refusal of `admit`, or a bound that admission does not need to know. Closed list. */
export type BindingCode = AdmissionCode | 'MAX_ORDER_SIZE' | 'POSITION_SIZE'
export type BindingConstraint = OrderRefusal<BindingCode>

export interface Maximum {
  /** 0 where no quantity is accepted. */
  readonly steps: Steps
  /** Why not one step more; where nothing is accepted, why not the smallest order. */
  readonly binding: BindingConstraint
}

interface Ceiling {
  readonly steps: Steps
  readonly binding: BindingConstraint
}

const tooMuch = (
  code: BindingCode,
  { spec }: Pick<AdmissionInput, 'spec'>,
  most: Steps,
  what: string,
): BindingConstraint => {
  const nearestValid = toDecimal(quantityOf(spec, most))
  const received = toDecimal(quantityOf(spec, (most + 1) as Steps))
  return { code, field: 'quantity', expected: `at most ${nearestValid}, ${what}`, received, nearestValid }
}

/** Of one step more than the market's largest order. */
export const aboveLargest = (input: Pick<AdmissionInput, 'spec'>): BindingConstraint =>
  tooMuch('MAX_ORDER_SIZE', input, input.spec.maxQuantity, 'the largest order of the market')

/** Whether the order stands against the matched position. */
const reduces = ({ side }: Pick<Order, 'side'>, { position }: AdmissionInput): boolean =>
  position.size * signOf(side) < 0

/** More than the position is never of use to a reduce-only order, though admission would take it. */
function ceilingOf(order: UnsizedOrder, input: AdmissionInput): Ceiling {
  const { spec, position } = input
  const size = Math.abs(position.size) as Steps
  if (order.reduceOnly && reduces(order, input) && size <= spec.maxQuantity) {
    return { steps: size, binding: tooMuch('POSITION_SIZE', input, size, 'the position') }
  }
  const most = spec.maxQuantity
  return { steps: most, binding: aboveLargest(input) }
}

/**
 * The largest quantity that `admit` accepts, by bisection: from the smallest order on, admission only ever gets harder with the
 * size. Costs some thirty admissions. For a reduce-only order it ends with the position.
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

/** What a trader says instead of a quantity. Shares are fractions x 1e18, at most ONE. */
export type Sizing =
  | { readonly intent: 'units'; readonly quantity: Quantity }
  | { readonly intent: 'notional'; readonly notional: Quote }
  /** A share of what is available for margin and fee allowance. */
  | { readonly intent: 'available_margin'; readonly share: Rate }
  | { readonly intent: 'max' }
  /** A share of the matched position. */
  | { readonly intent: 'reduce_percentage'; readonly share: Rate }

/** What rests on the side that an order would meet, best first. */
export type Depth = readonly { readonly price: Ticks; readonly steps: Steps }[]

/**
 * The steps that a sizing comes to, down to the grid; 0 where it comes to less than a step, one step more than the market's largest
 * order where it comes to more than that.
 * `stepsFor` turns a notional into steps: at a fixed price, or by the depth of the book (`stepsOfNotional`).
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
      return upTo(beyond(spec), sizing.quantity / spec.step)
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
      return upTo(beyond(spec), mulDivDown(BigInt(Math.abs(position.size)), sizing.share, ONE))
    }
  }
}

const beyond = ({ maxQuantity }: MarketSpec): Steps => (maxQuantity + 1) as Steps
const upTo = (most: Steps, steps: bigint): Steps => (steps < BigInt(most) ? Number(steps) : most) as Steps

/** The steps whose notional at `price` is at most `notional`; not more than `sizeOf` gives. */
export const stepsAt = ({ spec }: Pick<AdmissionInput, 'spec'>, price: Ticks, notional: Quote): Steps =>
  upTo(beyond(spec), notional / notionalAt(spec, price, 1 as Steps))

/** The book that a market order meets; `fallback` is the price where nothing rests in it. */
export interface OpposingBook {
  readonly side: Order['side']
  readonly depth: Depth
  readonly band: Band
  readonly fallback: Ticks
}

/**
 * The most steps that a market order can take for `notional`, all at one price as in an auction: that of the worst level it
 * needs, which is also the price of what the book cannot give. A level is never emptied to the last step: with nothing left on the
 * other side the price would follow the reference instead.
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
    if (affordable < reached + steps) return maxOf(affordable, maxOf(0, reached - 1)) as Steps
    reached += steps
  }
  const beyond = stepsAt(input, levels.at(-1)?.price ?? fallback, notional)
  return (beyond > reached ? beyond : maxOf(0, reached - 1)) as Steps
}
