/**
 * Decides whether a post-only order could take: an order that crosses no earlier limit order at acceptance is the maker
 * in every pair.
 */
import { highestPrice, type MarketSpec, priceOf } from '../../../market/market.ts'
import type { Order } from '../../../orders/order.ts'
import type { OrderRefusal } from '../../../orders/order-request.ts'
import { maxOf, minOf, type Ticks, toDecimal } from '../../../units.ts'
import type { MarketBooks } from '../../books.ts'

/** Reason why the order could take; null if it cannot. */
export function takeRefusal(
  spec: MarketSpec,
  { side, price }: Order,
  books: Pick<MarketBooks, 'book' | 'returning'>,
): OrderRefusal<'WOULD_TAKE'> | null {
  const isBuy = side === 'LONG'
  const opposite = isBuy ? 'SHORT' : 'LONG'
  // Orders that may return to the book at their seq count too. So do the account's own: self-trade prevention would end
  // the later order.
  const limits = [books.book.best(opposite)?.price, books.returning.best(opposite)].filter(
    (limit) => limit !== undefined,
  )
  const [first, second = first] = limits
  if (first === undefined || second === undefined) return null
  const best = isBuy ? minOf(first, second) : maxOf(first, second)
  if (isBuy ? price < best : price > best) return null
  const nearest = (isBuy ? best - 1 : best + 1) as Ticks
  const isValid = nearest >= spec.minPrice && nearest <= highestPrice(spec)
  return {
    code: 'WOULD_TAKE',
    field: 'price',
    expected: `${isBuy ? 'below the lowest sell' : 'above the highest buy'}, ${toDecimal(priceOf(spec, best))}`,
    received: toDecimal(priceOf(spec, price)),
    ...(isValid && { nearestValid: toDecimal(priceOf(spec, nearest)) }),
  }
}
