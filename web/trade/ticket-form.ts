/** The fields of the ticket, and the order that they describe. Pure. */
import type { EstimateRequest, SizingIntent } from '../../client/estimates.ts'
import type { NewOrder } from '../../client/order-factory.ts'
import type { Market } from '../../client/responses.ts'
import { roundPrice } from '../../client/rounding.ts'
import {
  isAlwaysReduceOnly,
  isConditional,
  isMarketType,
  type OrderType,
  type Side,
} from '../../domain/orders/order.ts'
import { parsed } from '../base/numbers.ts'

export type SizeUnit = 'units' | 'notional' | 'available_margin'

export interface TicketForm {
  readonly side: Side
  readonly type: OrderType
  readonly size: string
  readonly unit: SizeUnit
  readonly price: string
  readonly trigger: string
  readonly leverage: number
  readonly reduceOnly: boolean
  readonly hasBracket: boolean
  readonly takeProfit: string
  readonly stopLoss: string
}

export const emptyForm = (maxLeverage: number): TicketForm => ({
  side: 'LONG',
  type: 'LIMIT',
  size: '',
  unit: 'units',
  price: '',
  trigger: '',
  leverage: Math.min(5, maxLeverage),
  reduceOnly: false,
  hasBracket: false,
  takeProfit: '',
  stopLoss: '',
})

export const needsPrice = ({ type }: TicketForm): boolean => !isMarketType(type)
export const needsTrigger = ({ type }: TicketForm): boolean => isConditional(type)
export const isReducing = ({ type, reduceOnly }: TicketForm): boolean =>
  reduceOnly || isAlwaysReduceOnly(type)

/** The first field that is missing, in words; null if the exchange can judge the order. */
export function missingField(form: TicketForm): string | null {
  if ((parsed(form.size) ?? 0n) <= 0n) return 'Enter a size'
  if (needsPrice(form) && (parsed(form.price) ?? 0n) <= 0n) return 'Enter a price'
  if (needsTrigger(form) && (parsed(form.trigger) ?? 0n) <= 0n) return 'Enter a trigger price'
  if (!form.hasBracket) return null
  if (form.takeProfit === '' && form.stopLoss === '') return 'Enter a take profit or a stop loss'
  if (form.takeProfit !== '' && parsed(form.takeProfit) === null) return 'The take profit is not a number'
  if (form.stopLoss !== '' && parsed(form.stopLoss) === null) return 'The stop loss is not a number'
  return null
}

const optional = (text: string): bigint | undefined => parsed(text) ?? undefined

export function estimateRequest(marketId: number, form: TicketForm): EstimateRequest {
  const intent: SizingIntent =
    isReducing(form) && form.unit === 'available_margin' ? 'reduce_percentage' : form.unit
  const price = needsPrice(form) ? optional(form.price) : undefined
  const trigger = needsTrigger(form) ? optional(form.trigger) : undefined
  const size = optional(form.size)
  return {
    marketId,
    side: form.side,
    type: form.type,
    intent,
    leverage: form.leverage,
    reduceOnly: isReducing(form),
    ...(size !== undefined && { size }),
    ...(price !== undefined && { price }),
    ...(trigger !== undefined && { trigger }),
  }
}

/** `quantity` as the estimate has computed it from the size. */
export function orderOf(marketId: number, form: TicketForm, quantity: bigint): NewOrder {
  return {
    marketId,
    side: form.side,
    type: form.type,
    quantity,
    leverage: form.leverage,
    reduceOnly: isReducing(form),
    ...(needsPrice(form) && { price: parsed(form.price) ?? 0n }),
    ...(needsTrigger(form) && { trigger: parsed(form.trigger) ?? 0n }),
  }
}

export interface Exits {
  readonly takeProfit: string
  readonly stopLoss: string
}

/** Market orders against the side, at triggers that are rounded to the grid. `side`: that of the position. */
export function exitOrders(
  market: Market,
  side: Side,
  quantity: bigint,
  leverage: number,
  { takeProfit, stopLoss }: Exits,
): readonly NewOrder[] {
  const against: Side = side === 'LONG' ? 'SHORT' : 'LONG'
  const exit = (type: OrderType, text: string): NewOrder[] => {
    const trigger = parsed(text)
    if (trigger === null) return []
    const rounded = roundPrice(market, trigger, against)
    return [
      {
        marketId: market.market_id,
        side: against,
        type,
        quantity,
        leverage,
        reduceOnly: true,
        trigger: rounded,
      },
    ]
  }
  return [...exit('TAKE_PROFIT_MARKET', takeProfit), ...exit('STOP_LOSS_MARKET', stopLoss)]
}
