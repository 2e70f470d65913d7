/** Finds live orders by account: derived from the orders, like the books. */
import { isTerminal } from '../orders/order-state.ts'
import type { MarketId, Seq, UserId } from '../units.ts'
import type { RecordTable } from './record-table.ts'
import type { OrderRow } from './tables/orders.ts'

export class OrderIndex {
  readonly #orders: RecordTable<OrderRow>
  readonly #live = new Map<MarketId, Map<UserId, Set<Seq>>>()

  constructor(orders: RecordTable<OrderRow>) {
    this.#orders = orders
    orders.observe((before, after) => this.#follow(before, after))
  }

  /** The account's live orders in the market, by their place in the book. */
  liveOf(marketId: MarketId, account: UserId): OrderRow[] {
    const accepted = this.#live.get(marketId)?.get(account) ?? []
    return [...accepted].map((seq) => this.#orders.need(marketId, seq)).sort((a, b) => a.seq - b.seq)
  }

  #follow(before: OrderRow | undefined, after: OrderRow | undefined): void {
    const wasLive = before !== undefined && !isTerminal(before.status)
    const isLive = after !== undefined && !isTerminal(after.status)
    if (wasLive === isLive) return
    const { marketId, account, accepted } = (after ?? before) as OrderRow
    const accounts = this.#live.get(marketId) ?? new Map<UserId, Set<Seq>>()
    this.#live.set(marketId, accounts)
    const own = accounts.get(account) ?? new Set()
    if (isLive) accounts.set(account, own.add(accepted))
    else if (own.delete(accepted) && own.size === 0) accounts.delete(account)
  }
}
