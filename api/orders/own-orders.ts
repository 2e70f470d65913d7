/** Checks for every read of an order that it belongs to the caller. */
import { ApiError } from '../errors.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import type { ReadAfter } from '../read-after/read-after.ts'
import type { OrderRow } from './view.ts'

export interface ReadPorts {
  readonly markets: MarketDirectory
  readonly readAfter: ReadAfter
}

/** The request field that names the order, and its value. */
export interface RequestedOrder {
  readonly field: 'order_id' | 'order_hash' | 'client_order_id'
  readonly received: string
}

/** Throws ORDER_NOT_FOUND (404) if there is no order, NOT_YOURS (403) if it belongs to another account. */
export function ownOrder<Row extends OrderRow>(
  order: Row | undefined,
  userId: number,
  requested: RequestedOrder,
): Row {
  if (order === undefined) throw new ApiError('ORDER_NOT_FOUND', { ...requested })
  if (order.user_id !== userId)
    throw new ApiError('NOT_YOURS', { ...requested, expected: 'an order of your own' })
  return order
}
