/** `read.book_levels`: what the open limit orders offer at each price. It follows from the orders alone. */
import type { Side } from '../../../domain/orders/order.ts'
import type { ReadOrder } from './orders.ts'

export interface LevelDelta {
  readonly market_id: number
  readonly side: Side
  readonly price: number
  readonly quantity: number
  readonly order_count: number
}

/** What a change of an order from `before` to `after` does to the levels. An order never moves to another level. */
export function levelDeltas(before: ReadOrder | undefined, after: ReadOrder | undefined): LevelDelta[] {
  const order = after ?? before
  if (order === undefined) return []
  const quantity = offered(after) - offered(before)
  const count = Number(offered(after) > 0) - Number(offered(before) > 0)
  if (quantity === 0) return []
  return [{ market_id: order.market_id, side: order.side, price: order.price, quantity, order_count: count }]
}

/** Steps that an order shows in the book: a limit order's that is open, less what is filled or settling. */
function offered(order: ReadOrder | undefined): number {
  if (order === undefined || order.status !== 'OPEN' || order.price === 0) return 0
  return Math.max(0, order.quantity - order.filled - order.settling)
}

/** One delta per level; those that cancel out are left out. */
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
