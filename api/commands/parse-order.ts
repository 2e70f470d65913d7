/** Parses the body of a placement to an order in ticks and steps of its market. */
import type { MarketSpec } from '../../domain/market/market.ts'
import { ORDER_TYPES, type Order, type OrderType, TIMES_IN_FORCE } from '../../domain/orders/order.ts'
import { flagsRefusal, type OrderFlags } from '../../domain/orders/order-flags.ts'
import { type OrderRefusal, toOrder } from '../../domain/orders/order-request.ts'
import type { Address, Price, Quantity } from '../../domain/units.ts'
import type { ErrorCode } from '../error-catalogue.ts'
import { ApiError } from '../errors.ts'
import type { PlaceOrderBody } from '../order-entry/schema.ts'
import { parseDecimal } from '../wire/amounts.ts'

function orderType(text: string): OrderType {
  const type = ORDER_TYPES.find((known) => known === text)
  if (type !== undefined) return type
  throw new ApiError('ORDER_TYPE_UNKNOWN', { field: 'order_type', expected: ORDER_TYPES, received: text })
}

function decimal(field: string, value: number | string): bigint {
  const wei = parseDecimal(value)
  if (wei !== null) return wei
  throw new ApiError('INVALID_FIELD', {
    field,
    expected: 'a decimal with at most 18 decimals',
    received: value,
  })
}

function quantity({ quantity: human, quantity_e18_raw: raw }: PlaceOrderBody): bigint {
  const fromRaw = raw === undefined ? null : BigInt(raw)
  const fromHuman = human === undefined ? null : decimal('quantity', human)
  if (fromRaw !== null && fromHuman !== null && fromRaw !== fromHuman) {
    const context = { field: 'quantity_e18_raw', expected: fromHuman.toString(), received: raw }
    throw new ApiError('QUANTITY_MISMATCH', context)
  }
  return fromRaw ?? fromHuman ?? 0n
}

/** Converts a refusal of the domain to an ApiError. */
export const refusalError = (
  { code, nearestValid, nearestValidLeverage, ...context }: OrderRefusal<ErrorCode>,
  retryAfter?: string,
): ApiError =>
  new ApiError(
    code,
    {
      ...context,
      ...(nearestValid !== undefined && { nearest_valid: nearestValid }),
      ...(nearestValidLeverage !== undefined && { nearest_valid_leverage: nearestValidLeverage }),
    },
    retryAfter,
  )

/** The flags of a placement, which must be those of an order of the type. */
export function parseFlags(
  {
    time_in_force: timeInForce = 'gtc',
    post_only: postOnly = false,
    bracket_id: bracket,
    builder,
  }: Pick<PlaceOrderBody, 'time_in_force' | 'post_only' | 'bracket_id'> &
    Partial<Pick<PlaceOrderBody, 'builder'>>,
  order: Parameters<typeof flagsRefusal>[0],
): OrderFlags {
  const field = 'time_in_force'
  if (timeInForce === 'fok')
    throw new ApiError('FOK_NOT_SUPPORTED', {
      field,
      expected: TIMES_IN_FORCE,
      received: 'fok',
      nearest_valid: 'ioc',
    })
  const known = TIMES_IN_FORCE.find((one) => one === timeInForce)
  if (known === undefined)
    throw new ApiError('INVALID_FIELD', { field, expected: TIMES_IN_FORCE, received: timeInForce })
  const flags = {
    timeInForce: known,
    postOnly,
    ...(bracket !== undefined && { bracket }),
    ...(builder !== undefined && { builder }),
  }
  const refusal = flagsRefusal(order, flags)
  if (refusal !== null) throw refusalError(refusal)
  return flags
}

/** Checks all that depends on the order and the market specification alone: format, grid, bounds. */
export function parseOrder(spec: MarketSpec, maker: Address, body: PlaceOrderBody): Order {
  const type = orderType(body.order_type)
  if ((body.signature_type ?? 1) !== 1) {
    throw new ApiError('SIGNATURE_TYPE', {
      field: 'signature_type',
      expected: 1,
      received: body.signature_type,
    })
  }
  const verdict = toOrder(spec, {
    marketId: spec.marketId,
    maker,
    side: body.side,
    type,
    price: decimal('price', body.price ?? 0) as Price,
    quantity: quantity(body) as Quantity,
    trigger: decimal('trigger_price', body.trigger_price ?? 0) as Price,
    leverage: Number(body.leverage ?? 1),
    reduceOnly: body.reduce_only ?? false,
    expiration: Number(body.expiration_seconds ?? 0),
    salt: BigInt(body.salt),
  })
  if (!verdict.ok) throw refusalError(verdict.refusal)
  return verdict.value
}
