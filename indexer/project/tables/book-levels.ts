/** `read.book_levels`: one row per market, side and price, with the quantity of its open limit orders. Derived from changes of orders. */
import type { Side } from '../../../domain/orders/order.ts'
import { tableOf } from '../read-table.ts'
import type { ReadOrder } from './orders.ts'

export interface LevelDelta {
  readonly market_id: number
  readonly side: Side
  readonly price: number
  readonly quantity: number
  readonly order_count: number
}

export const LEVELS = tableOf<LevelDelta>({
  table: 'read.book_levels',
  key: ['market_id', 'side', 'price'],
  columns: {
    market_id: 'integer',
    side: 'text',
    price: 'bigint',
    quantity: 'bigint',
    order_count: 'integer',
  },
})

/** The change of a level when an order changes from `before` to `after`. An order never moves to another level. */
export function levelDeltas(before: ReadOrder | undefined, after: ReadOrder | undefined): LevelDelta[] {
  const order = after ?? before
  if (order === undefined) return []
  const quantity = restingQuantity(after) - restingQuantity(before)
  const count = Number(restingQuantity(after) > 0) - Number(restingQuantity(before) > 0)
  if (quantity === 0) return []
  return [{ market_id: order.market_id, side: order.side, price: order.price, quantity, order_count: count }]
}

/** Steps of an order in the book: the unfilled, unmatched steps of an open limit order; 0 for any other order. */
function restingQuantity(order: ReadOrder | undefined): number {
  if (order === undefined || order.status !== 'OPEN' || order.price === 0) return 0
  return Math.max(0, order.quantity - order.filled - order.settling)
}

/** One delta per level. Levels whose deltas sum to zero are left out. */
export function sumLevels(deltas: Iterable<LevelDelta>): LevelDelta[] {
  const sums = new Map<string, LevelDelta>()
  for (const delta of deltas) {
    const key = `${delta.market_id}-${delta.side}-${delta.price}`
    const sum = sums.get(key)
    sums.set(key, sum === undefined ? delta : add(sum, delta))
  }
  return [...sums.values()].filter(({ quantity, order_count }) => quantity !== 0 || order_count !== 0)
}

const add = (a: LevelDelta, b: LevelDelta): LevelDelta => ({
  ...a,
  quantity: a.quantity + b.quantity,
  order_count: a.order_count + b.order_count,
})
