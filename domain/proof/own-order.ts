/** Finds a trader's own order in a batch proof. */
import type { Keccak } from '../orders/order-hash.ts'
import type { BatchStatement, StatedOrder } from './batch-statement.ts'
import { type CommittedOrder, commitment } from './commitment.ts'

/** Place of the order, from 1; null if it took no part in the batch. */
export function placeOf(
  { orders, market, batchId }: BatchStatement,
  own: Pick<CommittedOrder, 'orderHash' | 'salt'>,
  keccak: Keccak,
): number | null {
  const wanted = commitment(keccak, { ...own, marketId: market.marketId, batchId })
  const index = orders.findIndex((order) => order.commitment === wanted)
  return index < 0 ? null : index + 1
}

/**
 * Limits at which a live order could trade: a buy at `LONG` or above, a sell at `SHORT` or below, in ticks.
 */
export interface Reach {
  readonly LONG: number
  readonly SHORT: number
}

/**
 * Reach of the batch; null if the sides did not cross. A live order within reach that is not stated was left out.
 */
export function reachOf({ orders, result }: BatchStatement): Reach | null {
  const protections = new Map(
    result.protections.map(({ order, price }) => [order as number, price as number]),
  )
  const limitOf = ({ type, limit, side }: StatedOrder, place: number): number => {
    const own = type === 'MARKET' ? (protections.get(place) ?? limit) : limit
    return side === 'LONG' ? Math.min(own, result.hi) : Math.max(own, result.lo)
  }
  const limits = orders.map((order, index) => ({ side: order.side, limit: limitOf(order, index + 1) }))
  const of = (side: 'LONG' | 'SHORT') => limits.filter((one) => one.side === side).map(({ limit }) => limit)
  const [highestBuy, lowestSell] = [Math.max(...of('LONG')), Math.min(...of('SHORT'))]
  return highestBuy < lowestSell ? null : { LONG: lowestSell, SHORT: highestBuy }
}
