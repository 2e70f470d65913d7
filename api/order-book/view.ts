/** Converts an order book level to its JSON form. */
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import type { Side } from '../../domain/orders/order.ts'
import type { Steps, Ticks } from '../../domain/units.ts'
import { amount } from '../wire/amounts.ts'
import type { Level } from './schema.ts'

export interface LevelRow {
  readonly side: Side
  readonly price: number
  readonly quantity: number
  readonly order_count: number
}

export const levelView = (spec: MarketSpec, row: LevelRow): Level => ({
  side: row.side,
  ...amount('price', priceOf(spec, row.price as Ticks)),
  ...amount('quantity', quantityOf(spec, row.quantity as Steps)),
  order_count: row.order_count,
})
