/** What the routes that read an order have in common: it must be the caller's own. */
import { ApiError } from '../errors.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import type { ReadAfter } from '../read-after/read-after.ts'
import type { OrderRow } from './view.ts'

export interface ReadPorts {
  readonly markets: MarketDirectory
  readonly readAfter: ReadAfter
}

/** Which order was asked for, in the words of the request. */
export interface Asked {
  readonly field: 'order_id' | 'order_hash'
  readonly received: string
}

/** The order, if it is the caller's own: 404 where there is none, 403 where it is another's. */
export function ownOrder(order: OrderRow | undefined, userId: number, asked: Asked): OrderRow {
  if (order === undefined) throw new ApiError('ORDER_NOT_FOUND', { ...asked })
  if (order.user_id !== userId)
    throw new ApiError('NOT_YOURS', { ...asked, expected: 'an order of your own' })
  return order
}
