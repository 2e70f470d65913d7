/** Computes maxima and estimates by running the rules of admission on the current state. */

import type { Db } from '../../db/client.ts'
import { priceBand } from '../../domain/market/band.ts'
import { type MarketSpec, quantityOf } from '../../domain/market/market.ts'
import { type EstimateInput, estimate, maximaByLeverage } from '../../domain/orders/estimate.ts'
import { isAlwaysReduceOnly } from '../../domain/orders/order.ts'
import {
  type BindingConstraint,
  type Sizing as DomainSizing,
  maximumOf,
  type UnsizedOrder,
} from '../../domain/orders/sizing.ts'
import { ONE, type Quantity, type Quote, type Rate, type Steps } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Caller } from '../auth/caller.ts'
import { parseFlags, parseOrder, refusalError } from '../commands/parse-order.ts'
import { ApiError } from '../errors.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import { offChainTermsAt } from '../markets/query.ts'
import { depthFacing } from '../order-book/depth-query.ts'
import { decimalText, parseDecimal } from '../wire/amounts.ts'
import type { AdmissionInputOf } from './admission-inputs.ts'
import type { Estimate, EstimateBody, Quantity as QuantityAnswer, QuantityBody } from './schema.ts'
import { estimateView, leveragesOf, quantityView } from './view.ts'

export interface Sizing {
  estimate(caller: Caller, body: EstimateBody): Promise<Estimate>
  quantity(caller: Caller, body: QuantityBody): Promise<QuantityAnswer>
}

export interface SizingPorts {
  readonly db: Db
  readonly markets: MarketDirectory
  readonly clock: Clock
  readonly admissionInputOf: AdmissionInputOf
}

const HUNDRED = 100n
/** Available balance for `calculate-quantity`, which does not check whether the account can pay for the order. */
const BOUNDLESS = (1n << 127n) as Quote

type OrderFields = Omit<EstimateBody, 'sizing_intent' | 'size'>

/** Parses the fields with the smallest quantity, so that all other fields are checked as in a placement. */
function unsizedOrder(spec: MarketSpec, { address }: Caller, body: OrderFields): UnsizedOrder {
  const quantity_e18_raw = (BigInt(spec.minQuantity) * spec.step).toString()
  const { quantity: _, ...order } = parseOrder(spec, address, {
    ...body,
    quantity_e18_raw,
    salt: '0',
    signature: '',
  })
  return order
}

function amountIn(field: string, value: number | string): bigint {
  const wei = parseDecimal(value)
  if (wei !== null) return wei
  throw new ApiError('INVALID_FIELD', {
    field,
    expected: 'a decimal with at most 18 decimals',
    received: value,
  })
}

function sizingOf(intent: EstimateBody['sizing_intent'], size: bigint): DomainSizing {
  const refusal = (expected: string, nearest_valid: string) =>
    new ApiError('INVALID_FIELD', { field: 'size', expected, received: decimalText(size), nearest_valid })
  const share = (): Rate => {
    if (size <= HUNDRED * ONE) return (size / HUNDRED) as Rate
    throw refusal('a percentage from 0 to 100', '100')
  }
  switch (intent) {
    case 'units':
      return { intent, quantity: size as Quantity }
    case 'notional':
      return { intent, notional: size as Quote }
    case 'max':
      if (size === 0n) return { intent }
      throw refusal('0 or no size with the intent max', '0')
    default:
      return { intent, share: share() }
  }
}

/** If the budget buys too little or too much, the error names the budget; every other error is that of a placement. */
function notBought(
  spec: MarketSpec,
  { code, ...refusal }: BindingConstraint,
  budget: number | string,
): ApiError {
  const units = (steps: Steps): string => `${decimalText(quantityOf(spec, steps))} units`
  const context = { field: 'usd_amount', received: budget }
  if (code === 'MIN_ORDER_SIZE')
    return new ApiError(code, { ...context, expected: `enough for ${units(spec.minQuantity)}` })
  if (code === 'MAX_ORDER_SIZE')
    return new ApiError(code, { ...context, expected: `no more than buys ${units(spec.maxQuantity)}` })
  return refusalError({ ...refusal, code: code as Exclude<typeof code, 'POSITION_SIZE'> })
}

export function createSizing({ db, clock, markets, admissionInputOf }: SizingPorts): Sizing {
  const factsFor = async (
    spec: MarketSpec,
    userId: number,
    side: UnsizedOrder['side'],
  ): Promise<EstimateInput> => {
    const [admissionInput, facing, offChain] = await Promise.all([
      admissionInputOf(spec, userId),
      depthFacing(db, { marketId: spec.marketId, userId, side }),
      offChainTermsAt(db, spec, clock.now()),
    ])
    const { oracle } = admissionInput
    if (oracle === null)
      throw new ApiError('ORACLE_STALE', { field: 'market_id', expected: 'a fresh oracle price' }, '1')
    return {
      ...admissionInput,
      oracle,
      band: priceBand(admissionInput.spec, oracle),
      ...facing,
      ...offChain,
    }
  }

  return {
    async estimate(caller, { sizing_intent: intent, size: requestedSize = 0, ...body }) {
      const spec = await markets.byId(Number(body.market_id))
      const size = amountIn('size', requestedSize)
      const sizing = sizingOf(intent, size)
      const mustReduce = intent === 'reduce_percentage' || isAlwaysReduceOnly(body.order_type)
      const order = unsizedOrder(spec, caller, { reduce_only: mustReduce, ...body })
      parseFlags(body, order)
      const facts = await factsFor(spec, caller.userId, order.side)
      const atMaximum = estimate({ intent: 'max' }, order, facts)
      const isMaximumAlone = size === 0n && intent !== 'max'
      return estimateView({
        ...{ order, facts, intent, size, atMaximum, maximum: maximumOf(order, facts) },
        byLeverage: maximaByLeverage(order, facts, leveragesOf(spec)),
        estimate: isMaximumAlone ? null : intent === 'max' ? atMaximum : estimate(sizing, order, facts),
      })
    },

    async quantity(caller, { usd_amount, order_type, ...body }) {
      const spec = await markets.byId(Number(body.market_id))
      const budget = amountIn('usd_amount', usd_amount)
      const type = order_type ?? (body.price === undefined ? 'MARKET' : 'LIMIT')
      const order = { ...unsizedOrder(spec, caller, { ...body, order_type: type }), type }
      const facts = { ...(await factsFor(spec, caller.userId, order.side)), available: BOUNDLESS }
      const bought = estimate({ intent: 'notional', notional: budget as Quote }, order, facts)
      if (bought.refusal !== null) throw notBought(spec, bought.refusal, usd_amount)
      return quantityView({ order, spec, budget, estimate: bought })
    },
  }
}
