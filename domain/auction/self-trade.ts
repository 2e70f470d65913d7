/**
 * Prevents self-trades: cancels orders of one account that could trade with each other.
 * The check compares signed limits only, before sizes and risk are computed.
 */
import type { RestingOrder } from '../book/book.ts'
import type { Side } from '../orders/order.ts'
import type { Seq, Ticks } from '../units.ts'
import type { MarketOrderBounds } from './tranches.ts'

export interface SelfTradePrevention {
  readonly retained: readonly RestingOrder[]
  readonly cancelled: readonly Seq[]
  /** Bounds one tick short of the account's best remaining limit on the other side. */
  readonly marketOrderBounds: MarketOrderBounds
}

const NO_BUY = Number.NEGATIVE_INFINITY
const NO_SELL = Number.POSITIVE_INFINITY

/**
 * Cancels the later order of each self-trading pair of one account: two crossing limit orders, or two opposite market
 * orders. A forced order stays and cancels every opposite order in its reach.
 */
export function preventSelfTrades(
  orders: readonly RestingOrder[],
  forcedLimit: (order: RestingOrder) => Ticks,
): SelfTradePrevention {
  const state = {
    bestBuy: NO_BUY,
    bestSell: NO_SELL,
    markets: new Set<Side>(),
    forcedBuy: NO_BUY,
    forcedSell: NO_SELL,
  }
  const retained: RestingOrder[] = []
  const cancelled: Seq[] = []
  // Compares with retained orders only, so a cancelled order cancels no other order.
  for (const order of orders.toSorted(forcedFirstBySeq)) {
    const isBuy = order.side === 'LONG'
    const other = isBuy ? 'SHORT' : 'LONG'
    const meetsMarket = order.type === 'MARKET' && state.markets.has(other)
    const meetsLimit =
      order.type === 'LIMIT' &&
      (isBuy
        ? order.limit >= Math.min(state.bestSell, state.forcedSell)
        : order.limit <= Math.max(state.bestBuy, state.forcedBuy))
    if (meetsMarket || meetsLimit) {
      cancelled.push(order.seq)
      continue
    }
    retained.push(order)
    if (order.forced && isBuy) state.forcedBuy = Math.max(state.forcedBuy, forcedLimit(order))
    if (order.forced && !isBuy) state.forcedSell = Math.min(state.forcedSell, forcedLimit(order))
    if (order.type === 'MARKET') state.markets.add(order.side)
    else if (isBuy) state.bestBuy = Math.max(state.bestBuy, order.limit)
    else state.bestSell = Math.min(state.bestSell, order.limit)
  }
  const marketOrderBounds = {
    highestBuy: (state.bestSell - 1) as Ticks,
    lowestSell: (state.bestBuy + 1) as Ticks,
  }
  return { retained, cancelled, marketOrderBounds }
}

const forcedFirstBySeq = (a: RestingOrder, b: RestingOrder): number =>
  Number(b.forced) - Number(a.forced) || a.seq - b.seq
