/** Groups of orders: an entry with take profit and stop loss, and a ladder of limit orders. Pure. */
import type { Side } from '../domain/orders/order.ts'
import { type Decimal, fromE18, toE18 } from './decimals.ts'
import type { NewOrder } from './order-factory.ts'
import { type Grid, roundPrice, roundQuantity } from './rounding.ts'

/** An exit of a position at the trigger: a market order, or a limit order if `price` is set. */
export interface BracketExit {
  readonly trigger: Decimal
  readonly price?: Decimal
}

export interface Bracket {
  /**
   * Entry order. The exits get its label with `-tp` or `-sl` added. Its `bracketId` links the orders; by
   * default a random number.
   */
  readonly entry: Omit<NewOrder, 'type' | 'trigger' | 'reduceOnly'>
  readonly takeProfit?: BracketExit
  readonly stopLoss?: BracketExit
}

const opposite = (side: Side): Side => (side === 'LONG' ? 'SHORT' : 'LONG')

function exitOf(
  { entry }: Bracket,
  { trigger, price }: BracketExit,
  kind: 'TAKE_PROFIT' | 'STOP_LOSS',
  suffix: string,
): NewOrder {
  const { marketId, side, quantity, leverage, clientOrderId, bracketId } = entry
  return {
    marketId,
    side: opposite(side),
    type: price === undefined ? `${kind}_MARKET` : `${kind}_LIMIT`,
    quantity,
    trigger,
    reduceOnly: true,
    ...(leverage === undefined ? {} : { leverage }),
    ...(price === undefined ? {} : { price }),
    ...(bracketId === undefined ? {} : { bracketId }),
    ...(clientOrderId === undefined ? {} : { clientOrderId: `${clientOrderId}${suffix}` }),
  }
}

/** A random bracket number. */
export const newBracketId = (): number => (crypto.getRandomValues(new Uint32Array(1))[0] as number) || 1

/**
 * Throws if an exit is on the wrong side of the entry price: the exit would trigger as soon as the entry matches.
 */
export function bracketOrders(terms: Bracket, bracketId = newBracketId()): readonly NewOrder[] {
  const bracket = { ...terms, entry: { bracketId, ...terms.entry } }
  const { entry, takeProfit, stopLoss } = bracket
  if (takeProfit === undefined && stopLoss === undefined)
    throw new RangeError('a bracket needs takeProfit, stopLoss, or both; received neither')
  checkTriggers(bracket)
  return [
    entry,
    ...(takeProfit === undefined ? [] : [exitOf(bracket, takeProfit, 'TAKE_PROFIT', '-tp')]),
    ...(stopLoss === undefined ? [] : [exitOf(bracket, stopLoss, 'STOP_LOSS', '-sl')]),
  ]
}

function checkTriggers({ entry: { side, price }, takeProfit, stopLoss }: Bracket): void {
  const sign = side === 'LONG' ? 1n : -1n
  const isAbove = (high: Decimal, low: Decimal) => sign * (toE18(high) - toE18(low)) > 0n
  const [better, worse] = side === 'LONG' ? ['above', 'below'] : ['below', 'above']
  const reject = (name: string, where: string, than: string, limit: Decimal, received: Decimal): never => {
    throw new RangeError(
      `${name}.trigger of a ${side} entry must be ${where} ${than} ${String(limit)}; received ${String(received)}`,
    )
  }
  if (takeProfit !== undefined && stopLoss !== undefined && !isAbove(takeProfit.trigger, stopLoss.trigger))
    reject('takeProfit', better, 'stopLoss.trigger', stopLoss.trigger, takeProfit.trigger)
  if (price === undefined) return
  if (takeProfit !== undefined && !isAbove(takeProfit.trigger, price))
    reject('takeProfit', better, 'the entry price', price, takeProfit.trigger)
  if (stopLoss !== undefined && !isAbove(price, stopLoss.trigger))
    reject('stopLoss', worse, 'the entry price', price, stopLoss.trigger)
}

export interface Scale extends Omit<NewOrder, 'type' | 'trigger' | 'price' | 'quantity'> {
  /** Prices of the first and the last order. */
  readonly from: Decimal
  readonly to: Decimal
  /** Total quantity of all orders. */
  readonly quantity: Decimal
  /** Number of orders, from 2 to 50. */
  readonly count: number
}

/** Maximum orders of one batch. */
export const MOST_ORDERS = 50

/**
 * Limit orders at equal price distances with equal quantities, on the market's grid.
 * Prices are never worse than requested. The last order also gets the steps that the division leaves.
 */
export function scaleOrders({ from, to, quantity, count, ...terms }: Scale, grid: Grid): readonly NewOrder[] {
  if (!Number.isInteger(count) || count < 2 || count > MOST_ORDERS)
    throw new RangeError(`count must be a whole number from 2 to ${MOST_ORDERS}; received ${count}`)
  const [first, last, whole] = [toE18(from), toE18(to), toE18(quantity)]
  if (first === last) throw new RangeError(`from and to must differ; received ${fromE18(first)} for both`)
  const each = toE18(roundQuantity(grid, whole / BigInt(count)))
  if (each === 0n)
    throw new RangeError(
      `quantity must be at least ${fromE18(BigInt(grid.step_size_e18_raw) * BigInt(count))}, one step per order; received ${fromE18(whole)}`,
    )
  return Array.from({ length: count }, (_, at) => {
    const price = first + ((last - first) * BigInt(at)) / BigInt(count - 1)
    const isLast = at === count - 1
    return {
      ...terms,
      price: roundPrice(grid, price, terms.side),
      quantity: isLast ? fromE18(whole - each * BigInt(count - 1)) : fromE18(each),
      ...(terms.clientOrderId === undefined ? {} : { clientOrderId: `${terms.clientOrderId}-${at + 1}` }),
    }
  })
}
