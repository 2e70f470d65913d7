/** Bounds a batch's payouts by the market's pool, because the contract rejects an overdraft. */

import type { RestingOrder } from '../book/book.ts'
import type { Quote, Seq, UserId } from '../units.ts'

interface PoolDraw {
  readonly account: UserId
  /** Wei that the pool pays to the account and for its fees; negative if the account pays in. */
  paid: bigint
  readonly orders: RestingOrder[]
}

/**
 * Pool during the settlement of a batch's parts; mutable. It is the sum of all equities: with +100 and -20 it is 80, so
 * the first account cannot close in full.
 */
export class PoolBalance {
  readonly #pool: Quote
  readonly #draws = new Map<UserId, PoolDraw>()
  #left: bigint
  #isShort = false

  constructor(pool: Quote) {
    this.#pool = pool
    this.#left = pool
  }

  /** `orders`: the account's orders that close steps in this part. */
  pay(account: UserId, paid: bigint, orders: readonly RestingOrder[]): void {
    this.#left -= paid
    const draw = this.#draws.get(account)
    if (draw === undefined) this.#draws.set(account, { account, paid, orders: [...orders] })
    else {
      draw.paid += paid
      draw.orders.push(...orders)
    }
  }

  endPart(): void {
    if (this.#left < 0n) this.#isShort = true
  }

  /**
   * Orders that the pool cannot pay, by account; empty if no part overdraws it. Forced orders are paid first, then
   * accounts by oldest closing order, without counting payments into the pool.
   */
  unpaid(): ReadonlyMap<UserId, readonly Seq[]> {
    const unpaid = new Map<UserId, readonly Seq[]>()
    if (!this.#isShort) return unpaid
    let left: bigint = this.#pool
    for (const { account, paid, orders } of [...this.#draws.values()].sort(byTurn)) {
      if (paid <= 0n) continue
      if (paid <= left) left -= paid
      else unpaid.set(account, [...new Set(orders.map(({ seq }) => seq))])
    }
    return unpaid
  }
}

const byTurn = (a: PoolDraw, b: PoolDraw): number =>
  Number(isForced(b)) - Number(isForced(a)) || oldest(a) - oldest(b) || a.account - b.account

const isForced = ({ orders }: PoolDraw): boolean => orders.some(({ forced }) => forced)
const oldest = ({ orders }: PoolDraw): number => Math.min(...orders.map(({ seq }) => seq))
