/**
 * Checks form and grid of a requested order without account, clock or oracle price. Refusals use the API's field names
 * and human units, because the API returns them unchanged.
 */
import { tickNearest } from '../market/band.ts'
import { highestPrice, type MarketSpec, quantityOf } from '../market/market.ts'
import {
  maxOf,
  minOf,
  type Price,
  type Quantity,
  type Seconds,
  type Steps,
  type Ticks,
  toDecimal,
} from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'
import { isAlwaysReduceOnly, isConditional, isMarketType, type Order } from './order.ts'
import { SALT_END } from './order-hash.ts'

/** Order fields with amounts × 1e18 instead of ticks and steps; 0 if the order has no price or no trigger. */
export interface OrderRequest extends Omit<Order, 'price' | 'quantity' | 'trigger' | 'expiration'> {
  readonly price: Price
  readonly quantity: Quantity
  readonly trigger: Price
  readonly expiration: number
}

export type OrderField =
  | 'price'
  | 'quantity'
  | 'trigger_price'
  | 'leverage'
  | 'expiration_seconds'
  | 'reduce_only'
  | 'salt'
  | 'market_id'
  | 'post_only'
  | 'time_in_force'
  | 'bracket_id'
  | 'side'

/** Codes of `toOrder`. The list is closed. */
export type FormCode =
  | 'LEVERAGE_CAP'
  | 'SALT_RANGE'
  | 'EXPIRATION_RANGE'
  | 'REDUCE_ONLY_REQUIRED'
  | 'PRICE_NOT_ALLOWED'
  | 'PRICE_REQUIRED'
  | 'TRIGGER_NOT_ALLOWED'
  | 'TRIGGER_REQUIRED'
  | 'TICK_SIZE'
  | 'MIN_ORDER_PRICE'
  | 'MAX_ORDER_PRICE'
  | 'STEP_SIZE'
  | 'QUANTITY_REQUIRED'
  | 'MAX_ORDER_SIZE'

/** Why an order is rejected. Values are decimals in human units; `nearestValid` would pass this check. */
export interface OrderRefusal<Code extends string> {
  readonly code: Code
  readonly field: OrderField
  readonly expected: string
  readonly received: string
  readonly nearestValid?: string
  /** Highest leverage that would pass this check at the order's price. */
  readonly nearestValidLeverage?: number
}

type FormRefusal = OrderRefusal<FormCode>

/** Maximum expiration; the settlement record stores 40 bits. A larger value is probably in milliseconds. */
export const MAX_EXPIRATION = 2 ** 40 - 1

/**
 * The order in ticks and steps. Checks run in `FormCode` order and stop at the first refusal.
 * `admit` checks the minimum size, because a full close is exempt from it.
 */
export function toOrder(spec: MarketSpec, request: OrderRequest): Verdict<Order, FormRefusal> {
  const refusal =
    leverageRefusal(spec, request) ??
    saltRefusal(request) ??
    expirationRefusal(request) ??
    reduceOnlyRefusal(request) ??
    priceRefusal(spec, request) ??
    triggerRefusal(spec, request) ??
    quantityRefusal(spec, request)
  if (refusal !== null) return refuse(refusal)
  return accept({
    ...request,
    price: Number(request.price / spec.tick) as Ticks,
    trigger: Number(request.trigger / spec.tick) as Ticks,
    quantity: Number(request.quantity / spec.step) as Steps,
    expiration: request.expiration as Seconds,
  })
}

export function leverageRefusal(
  { maxLeverage }: Pick<MarketSpec, 'maxLeverage'>,
  { leverage }: Pick<OrderRequest, 'leverage'>,
): FormRefusal | null {
  if (Number.isInteger(leverage) && leverage >= 1 && leverage <= maxLeverage) return null
  const nearest = Number.isFinite(leverage) ? maxOf(1, minOf(maxLeverage, Math.floor(leverage))) : 1
  return {
    code: 'LEVERAGE_CAP',
    field: 'leverage',
    expected: `a whole number from 1 to ${maxLeverage}`,
    received: String(leverage),
    nearestValid: String(nearest),
  }
}

function saltRefusal({ salt }: OrderRequest): FormRefusal | null {
  if (salt >= 0n && salt < SALT_END) return null
  return {
    code: 'SALT_RANGE',
    field: 'salt',
    expected: `a whole number from 0 to ${SALT_END - 1n}`,
    received: String(salt),
  }
}

function expirationRefusal({ expiration }: OrderRequest): FormRefusal | null {
  if (Number.isInteger(expiration) && expiration >= 0 && expiration <= MAX_EXPIRATION) return null
  return {
    code: 'EXPIRATION_RANGE',
    field: 'expiration_seconds',
    expected: `Unix seconds up to ${MAX_EXPIRATION}, or 0`,
    received: String(expiration),
  }
}

function reduceOnlyRefusal({ type, reduceOnly }: OrderRequest): FormRefusal | null {
  if (reduceOnly || !isAlwaysReduceOnly(type)) return null
  return {
    code: 'REDUCE_ONLY_REQUIRED',
    field: 'reduce_only',
    expected: `true for ${type}`,
    received: 'false',
    nearestValid: 'true',
  }
}

function priceRefusal(spec: MarketSpec, { type, price }: OrderRequest): FormRefusal | null {
  if (!isMarketType(type)) return gridPriceRefusal(spec, 'price', price, spec.minPrice, 'PRICE_REQUIRED')
  if (price === 0n) return null
  return {
    code: 'PRICE_NOT_ALLOWED',
    field: 'price',
    expected: `0 for ${type}`,
    received: toDecimal(price),
    nearestValid: '0',
  }
}

function triggerRefusal(spec: MarketSpec, { type, trigger }: OrderRequest): FormRefusal | null {
  if (isConditional(type)) {
    return gridPriceRefusal(spec, 'trigger_price', trigger, 1 as Ticks, 'TRIGGER_REQUIRED')
  }
  if (trigger === 0n) return null
  return {
    code: 'TRIGGER_NOT_ALLOWED',
    field: 'trigger_price',
    expected: `0 for ${type}`,
    received: toDecimal(trigger),
    nearestValid: '0',
  }
}

function gridPriceRefusal(
  spec: MarketSpec,
  field: 'price' | 'trigger_price',
  price: Price,
  lowest: Ticks,
  missing: 'PRICE_REQUIRED' | 'TRIGGER_REQUIRED',
): FormRefusal | null {
  const received = toDecimal(price)
  const at = (ticks: number): string => toDecimal(BigInt(ticks) * spec.tick)
  const highest = highestPrice(spec)
  if (price <= 0n) return { code: missing, field, expected: `at least ${at(lowest)}`, received }
  if (price > BigInt(highest) * spec.tick) {
    return {
      code: 'MAX_ORDER_PRICE',
      field,
      expected: `at most ${at(highest)}`,
      received,
      nearestValid: at(highest),
    }
  }
  if (price < BigInt(lowest) * spec.tick) {
    return {
      code: 'MIN_ORDER_PRICE',
      field,
      expected: `at least ${at(lowest)}`,
      received,
      nearestValid: at(lowest),
    }
  }
  if (price % spec.tick === 0n) return null
  const expected = `a multiple of ${at(1)}`
  return { code: 'TICK_SIZE', field, expected, received, nearestValid: at(tickNearest(spec, price)) }
}

/** The nearest valid quantity rounds down, but not below the minimum. */
function quantityRefusal(spec: MarketSpec, { quantity }: OrderRequest): FormRefusal | null {
  const field = 'quantity'
  const received = toDecimal(quantity)
  if (quantity <= 0n) {
    const least = toDecimal(quantityOf(spec, spec.minQuantity))
    return { code: 'QUANTITY_REQUIRED', field, expected: `at least ${least}`, received, nearestValid: least }
  }
  const most = quantityOf(spec, spec.maxQuantity)
  if (quantity > most) {
    const expected = `at most ${toDecimal(most)}`
    return { code: 'MAX_ORDER_SIZE', field, expected, received, nearestValid: toDecimal(most) }
  }
  if (quantity % spec.step === 0n) return null
  const nearest = maxOf(quantity - (quantity % spec.step), quantityOf(spec, spec.minQuantity))
  const expected = `a multiple of ${toDecimal(spec.step)}`
  return { code: 'STEP_SIZE', field, expected, received, nearestValid: toDecimal(nearest) }
}
