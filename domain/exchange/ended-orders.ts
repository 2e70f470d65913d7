/**
 * Ended orders that a state still has, by the row that ended each. Derived from the orders, like the books.
 */
import { keyOfAccount, SeqMap } from '../book/seq-map.ts'
import type { MarketId, Seq, UserId } from '../units.ts'
import type { OrderRow } from './tables/orders.ts'

interface Ended {
  readonly endedSeq: Seq
  readonly accepted: Seq
}

export class EndedOrders {
  /** Ended orders, ascending by row. */
  readonly #markets = new Map<MarketId, Ended[]>()
  /** Number of ended orders by account. */
  readonly #accounts = new Map<MarketId, SeqMap<number>>()

  /**
   * Acceptance sequences of the market's first `most` orders that ended with rows up to `upTo`, in row order.
   */
  upTo(marketId: MarketId, upTo: number, most = Number.POSITIVE_INFINITY): Seq[] {
    const ended = this.#markets.get(marketId) ?? []
    return ended.slice(0, Math.min(most, placeOf(ended, upTo + 1))).map(({ accepted }) => accepted)
  }

  /** Whether an order of the account has ended in the market, and is not released yet. */
  hasAny(marketId: MarketId, account: UserId): boolean {
    return this.#accounts.get(marketId)?.get(keyOfAccount(account)) !== undefined
  }

  /** Follows the change of one order. */
  readonly follow = (before: OrderRow | undefined, after: OrderRow | undefined): void => {
    if (before?.endedSeq === after?.endedSeq) return
    if (before !== undefined && before.endedSeq > 0) this.#remove(before)
    if (after !== undefined && after.endedSeq > 0) this.#insert(after)
  }

  #count(marketId: MarketId, account: UserId, change: 1 | -1): void {
    const counts = this.#accounts.get(marketId) ?? new SeqMap<number>()
    this.#accounts.set(marketId, counts)
    const key = keyOfAccount(account)
    const count = (counts.get(key) ?? 0) + change
    if (count === 0) counts.delete(key)
    else counts.set(key, count)
  }

  #insert({ marketId, account, endedSeq, accepted }: OrderRow): void {
    this.#count(marketId, account, 1)
    const ended = this.#markets.get(marketId) ?? []
    this.#markets.set(marketId, ended)
    const last = ended.at(-1)
    const one = { endedSeq, accepted }
    if (last === undefined || last.endedSeq <= endedSeq) ended.push(one)
    else ended.splice(placeOf(ended, endedSeq + 1), 0, one)
  }

  #remove({ marketId, account, endedSeq, accepted }: OrderRow): void {
    this.#count(marketId, account, -1)
    const ended = this.#markets.get(marketId) ?? []
    let at = placeOf(ended, endedSeq)
    // One row can end several orders, so the search continues by acceptance sequence.
    while (ended[at]?.accepted !== accepted) at++
    ended.splice(at, 1)
  }
}

/** Index of the first order that ended with this row or a later row. */
function placeOf(ended: readonly Ended[], seq: number): number {
  let low = 0
  let high = ended.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ended[middle] as Ended).endedSeq < seq) low = middle + 1
    else high = middle
  }
  return low
}
