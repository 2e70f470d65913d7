/**
 * Sums over each account's live orders in a market, so that a placement need not read every order. Derived
 * from the orders, like the books.
 */
import { keyOfAccount, SeqMap } from '../book/seq-map.ts'
import { isTerminal, unmatched } from '../orders/order-state.ts'
import type { MarketId, UserId } from '../units.ts'
import type { OrderRow } from './tables/orders.ts'

export interface Exposure {
  readonly orders: number
  /** Fillable steps of plain orders, by side: in the book, or once triggered. */
  readonly plainLong: number
  readonly plainShort: number
  readonly openable: number
  /** Sum of openable steps × reserved price, in ticks. */
  readonly openValue: bigint
  /** Sum of `reserved` and `held`. */
  readonly reserved: bigint
}

export const NO_EXPOSURE: Exposure = {
  orders: 0,
  plainLong: 0,
  plainShort: 0,
  openable: 0,
  openValue: 0n,
  reserved: 0n,
}

export class Exposures {
  readonly #markets = new Map<MarketId, SeqMap<Exposure>>()

  of(marketId: MarketId, account: UserId): Exposure {
    return this.#markets.get(marketId)?.get(keyOfAccount(account)) ?? NO_EXPOSURE
  }

  /** Follows the change of one order. */
  readonly follow = (before: OrderRow | undefined, after: OrderRow | undefined): void => {
    if (before !== undefined && after !== undefined && isSame(before, after)) return
    if (before !== undefined) this.#add(before, -1)
    if (after !== undefined) this.#add(after, 1)
  }

  #add(order: OrderRow, sign: 1 | -1): void {
    if (isTerminal(order.status)) return
    let accounts = this.#markets.get(order.marketId)
    if (accounts === undefined) {
      accounts = new SeqMap()
      this.#markets.set(order.marketId, accounts)
    }
    const key = keyOfAccount(order.account)
    const sums = accounts.get(key) ?? NO_EXPOSURE
    const plain = !order.reduceOnly && order.closingReason === null ? sign * unmatched(order) : 0
    const orders = sums.orders + sign
    if (orders === 0) accounts.delete(key)
    else
      accounts.set(key, {
        orders,
        plainLong: sums.plainLong + (order.side === 'LONG' ? plain : 0),
        plainShort: sums.plainShort + (order.side === 'SHORT' ? plain : 0),
        openable: sums.openable + sign * order.openable,
        openValue: sums.openValue + openValueOf(sign * order.openable, order.reservedPrice),
        reserved: sums.reserved + (sign === 1 ? order.reserved + order.held : -order.reserved - order.held),
      })
  }
}

/** Steps × ticks. A product within the safe integers needs no bigint arithmetic. */
function openValueOf(steps: number, price: number): bigint {
  const product = steps * price
  return Number.isSafeInteger(product) ? BigInt(product) : BigInt(steps) * BigInt(price)
}

/** Whether both rows count the same. */
const isSame = (a: OrderRow, b: OrderRow): boolean =>
  a.status === b.status &&
  a.closingReason === b.closingReason &&
  a.openable === b.openable &&
  a.reserved === b.reserved &&
  a.held === b.held &&
  a.filled + a.settling === b.filled + b.settling &&
  a.reservedPrice === b.reservedPrice
