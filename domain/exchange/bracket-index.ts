/**
 * Finds the live orders of a bracket. Derived from the orders, like the books.
 * Each operation reads only the bracket's own orders, at most four.
 */
import { isTerminal } from '../orders/order-state.ts'
import type { MarketId, Seq, UserId } from '../units.ts'
import { PartedMap } from './parted-map.ts'
import type { OrderRow } from './tables/orders.ts'

/** Bracket number, with the account and market in which it is unique. */
export interface BracketKey {
  readonly marketId: MarketId
  readonly account: UserId
  /** 0: no bracket. */
  readonly bracket: number
}

export const bracketText = ({ marketId, account, bracket }: BracketKey): string =>
  `${marketId}-${account}-${bracket}`

export class BracketIndex {
  readonly #live = new PartedMap<readonly Seq[]>()
  #size = 0

  /** Number of live orders in brackets. */
  get size(): number {
    return this.#size
  }

  /** Acceptance sequences of the bracket's live orders, ascending. */
  of(key: BracketKey): readonly Seq[] {
    return this.#live.get(bracketText(key)) ?? []
  }

  readonly follow = (before: OrderRow | undefined, after: OrderRow | undefined): void => {
    const order = (after ?? before) as OrderRow
    if (order.bracket === 0) return
    const wasLive = before !== undefined && !isTerminal(before.status)
    const isLive = after !== undefined && !isTerminal(after.status)
    if (wasLive === isLive) return
    const key = bracketText(order)
    const others = (this.#live.get(key) ?? []).filter((seq) => seq !== order.accepted)
    const live = isLive ? [...others, order.accepted].sort((a, b) => a - b) : others
    this.#size += isLive ? 1 : -1
    if (live.length > 0) this.#live.set(key, live)
    else this.#live.delete(key)
  }
}
