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
import { parsed, toE18 } from '../base/numbers.ts'

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
  /** Only limit orders have the two flags, and at most one flag. */
  readonly postOnly: boolean
  readonly isIoc: boolean
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
  postOnly: false,
  isIoc: false,
  hasBracket: false,
  takeProfit: '',
  stopLoss: '',
})

export const needsPrice = ({ type }: TicketForm): boolean => !isMarketType(type)
export const needsTrigger = ({ type }: TicketForm): boolean => isConditional(type)
export const isReducing = ({ type, reduceOnly }: TicketForm): boolean =>
  reduceOnly || isAlwaysReduceOnly(type)

export const hasFlags = ({ type }: TicketForm): boolean => type === 'LIMIT'
export const isPostOnly = (form: TicketForm): boolean => hasFlags(form) && form.postOnly
export const isIoc = (form: TicketForm): boolean => hasFlags(form) && form.isIoc

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
    ...(isPostOnly(form) && { postOnly: true }),
    ...(isIoc(form) && { timeInForce: 'ioc' as const }),
  }
}

/** The best price that a post-only order may have beside the book, if its own price would take from it; else null. */
export function nearestMakerPrice(
  form: TicketForm,
  tick: bigint,
  best: { readonly bid: bigint | null; readonly ask: bigint | null },
): bigint | null {
  const price = isPostOnly(form) ? parsed(form.price) : null
  const opposite = form.side === 'LONG' ? best.ask : best.bid
  if (price === null || opposite === null) return null
  if (form.side === 'LONG') return price >= opposite ? opposite - tick : null
  return price <= opposite ? opposite + tick : null
}

export interface Exits {
  readonly takeProfit: string
  readonly stopLoss: string
}

/** Whether two orders have the same role in a bracket. */
export const exitKind = (type: OrderType): 'take_profit' | 'stop_loss' =>
  type.startsWith('TAKE_PROFIT') ? 'take_profit' : 'stop_loss'

/** Market orders of a side, the opposite of the position's, at triggers that are rounded to the grid. The take profit is first. */
export function exitOrders(
  market: Market,
  side: Side,
  quantity: bigint,
  leverage: number,
  { takeProfit, stopLoss }: Exits,
): readonly (NewOrder & { readonly type: OrderType })[] {
  return (
    [
      ['TAKE_PROFIT_MARKET', takeProfit],
      ['STOP_LOSS_MARKET', stopLoss],
    ] as const
  ).flatMap(([type, text]) => {
    const trigger = parsed(text)
    if (trigger === null) return []
    return {
      marketId: market.market_id,
      side,
      type,
      quantity,
      leverage,
      reduceOnly: true,
      trigger: toE18(roundPrice(market, trigger, side)),
    }
  })
}
