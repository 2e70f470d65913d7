/** Converts maxima and estimates to their JSON forms. */

import { type MarketSpec, notionalAt, priceOf, quantityOf } from '../../domain/market/market.ts'
import {
  type Estimate as DomainEstimate,
  type EstimateInput,
  expectedProtection,
} from '../../domain/orders/estimate.ts'
import { isMarketType } from '../../domain/orders/order.ts'
import type { BindingConstraint, Maximum, UnsizedOrder } from '../../domain/orders/sizing.ts'
import { equityOf, exposureOf, ratioOf } from '../../domain/positions/margin.ts'
import { marginOf, type Position } from '../../domain/positions/position.ts'
import { mulDivDown, ONE, type Price, type Quote, type Steps, type Ticks } from '../../domain/units.ts'
import { CATALOGUE } from '../error-catalogue.ts'
import { bandView, reservationView } from '../orders/reservation-view.ts'
import { amount, maybeAmount } from '../wire/amounts.ts'
import type { Estimate, Quantity } from './schema.ts'

const MESSAGES: Readonly<Record<BindingConstraint['code'], string>> = {
  ...Object.fromEntries(Object.entries(CATALOGUE).map(([code, { message }]) => [code, message])),
  POSITION_SIZE: 'A reduce-only order cannot exceed the position.',
} as Record<BindingConstraint['code'], string>

const refusalView = ({ nearestValid, nearestValidLeverage, ...refusal }: BindingConstraint) => ({
  ...refusal,
  message: MESSAGES[refusal.code],
  nearest_valid: nearestValid ?? null,
  nearest_valid_leverage: nearestValidLeverage ?? null,
})

/** Leverages with a maximum in an estimate: at most nine. */
export const leveragesOf = ({ maxLeverage }: MarketSpec): number[] => {
  const usual = [1, 2, 3, 5, 10, 20, 50, 100].filter((leverage) => leverage < maxLeverage)
  return [...usual, maxLeverage]
}

export interface Sized {
  readonly order: UnsizedOrder
  readonly facts: EstimateInput
  readonly intent: Estimate['sizing_intent']
  readonly size: bigint
  readonly maximum: Maximum
  /** Estimate of an order of the maximum quantity. */
  readonly atMaximum: DomainEstimate
  readonly byLeverage: readonly (Maximum & { readonly leverage: number })[]
  readonly estimate: DomainEstimate | null
}

export function estimateView({ order, facts, ...sized }: Sized): Estimate {
  const { spec, band } = facts
  return {
    market_id: spec.marketId,
    symbol: spec.symbol,
    side: order.side,
    order_type: order.type,
    leverage: order.leverage,
    reduce_only: order.reduceOnly,
    sizing_intent: sized.intent,
    ...amount('size', sized.size),
    ...amount('available', facts.available),
    ...maybeAmount('expected_protection_price', protectionOf(order, facts)),
    price_band: bandView(spec, band, facts.oracle),
    max_leverage: spec.maxLeverage,
    maximum: maximumView(spec, sized.maximum, sized.atMaximum),
    by_leverage: sized.byLeverage.map(({ leverage, steps, binding }) => ({
      leverage,
      ...amount('quantity', quantityOf(spec, steps)),
      binding: binding.code,
    })),
    estimate: sized.estimate && estimatedView(order, sized.estimate, facts),
  }
}

const protectionOf = (order: UnsizedOrder, facts: EstimateInput): Price | null =>
  isMarketType(order.type) ? priceOf(facts.spec, expectedProtection(order, facts).price) : null

function maximumView(spec: MarketSpec, { steps, binding }: Maximum, { admission, fill }: DomainEstimate) {
  return {
    ...amount('quantity', quantityOf(spec, steps)),
    ...amount('notional', fill === null ? 0n : notionalAt(spec, fill.price, steps)),
    ...amount('reserved_margin', admission?.reserved ?? 0n),
    binding: refusalView(binding),
  }
}

function estimatedView(
  order: UnsizedOrder,
  { steps, refusal, admission, fill, outcome }: DomainEstimate,
  facts: EstimateInput,
): NonNullable<Estimate['estimate']> {
  const { spec } = facts
  return {
    ...amount('quantity', quantityOf(spec, steps)),
    accepted: refusal === null,
    refusal: refusal && refusalView(refusal),
    ...maybeAmount('price', fill && priceOf(spec, fill.price)),
    price_source: fill?.source ?? null,
    ...maybeAmount('notional', fill && notionalAt(spec, fill.price, steps)),
    ...amount('fillable_quantity', quantityOf(spec, fill?.fillable ?? (0 as Steps))),
    reservation: admission && reservationView(spec, { ...order, ...admission, quantity: steps }),
    ...maybeAmount('fee', outcome?.fee ?? null),
    ...maybeAmount('realized_pnl', outcome?.realised ?? null),
    position: outcome && positionView(outcome.position, outcome.liquidationPrice, facts),
  }
}

function positionView(
  position: Position,
  liquidationPrice: Price | null,
  { spec, fundingIndex, oracle }: EstimateInput,
) {
  const { size } = position
  const exposure = exposureOf(spec, position, fundingIndex, oracle)
  const equity = equityOf(spec, position, fundingIndex, oracle)
  const isOpen = size !== 0
  const leverage = isOpen && equity > 0n ? mulDivDown(exposure.notional, 1n, equity) : null
  return {
    ...amount('size', BigInt(size) * spec.step),
    ...maybeAmount(
      'entry_price',
      isOpen ? mulDivDown(position.entryNotional, ONE, quantityOf(spec, Math.abs(size) as Steps)) : null,
    ),
    ...amount('margin', marginOf(position, fundingIndex)),
    leverage: position.leverage,
    ...maybeAmount('effective_leverage', leverage),
    ...maybeAmount('margin_ratio', ratioOf(exposure)),
    ...maybeAmount('liquidation_price', liquidationPrice),
  }
}

export interface Bought {
  readonly order: UnsizedOrder & { readonly type: 'MARKET' | 'LIMIT' }
  readonly spec: MarketSpec
  readonly budget: bigint
  readonly estimate: DomainEstimate
}

/** The estimate must have a price. */
export function quantityView({ order, spec, budget, estimate }: Bought): Quantity {
  const { steps, fill, outcome } = estimate
  const price = fill?.price ?? (0 as Ticks)
  return {
    market_id: spec.marketId,
    symbol: spec.symbol,
    side: order.side,
    order_type: order.type,
    ...amount('usd_amount', budget),
    ...amount('quantity', quantityOf(spec, steps)),
    ...amount('estimated_clearing_price', priceOf(spec, price)),
    price_source: fill?.source ?? 'oracle',
    ...amount('notional', notionalAt(spec, price, steps)),
    ...amount('fillable_quantity', quantityOf(spec, fill?.fillable ?? (0 as Steps))),
    ...amount('fee', outcome?.fee ?? (0n as Quote)),
  }
}
