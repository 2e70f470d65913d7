/** Plans the reservations of accounts at another taker rate, after the highest rate of their market has changed. */
import type { MarketPlan } from '../auction/batch-plan.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Position } from '../positions/position.ts'
import type { Millis, Quote, UserId } from '../units.ts'
import { isReservable, type OpenOrder } from './open-order.ts'
import { OrderChanges } from './order-changes.ts'
import { type Funds, reserveLive } from './recompute-reservations.ts'

export interface ReserveAgainInput {
  /** With the new taker rate. */
  readonly spec: MarketSpec
  readonly at: Millis
  /** All live orders of the accounts in the market. */
  readonly orders: readonly OpenOrder[]
  /** The matched position of an account. */
  readonly positions: (account: UserId) => Position
  readonly fundsOf: (account: UserId) => Funds
}

/** Orders that an account can no longer pay for end, the newest first. Held reservations of settling fills stay: their rate is fixed. */
export function planReserveAgain({ spec, at, orders, positions, fundsOf }: ReserveAgainInput): MarketPlan {
  const changes = new OrderChanges(new Map(orders.map((order) => [order.seq, order])))
  for (const [account, own] of Map.groupBy(orders, (order) => order.account)) {
    const live = own.filter(isReservable)
    const before = live.reduce((sum, { reserved }) => sum + reserved, 0n) as Quote
    reserveLive(changes, { spec, at, live, before, size: positions(account).size, funds: fundsOf(account) })
  }
  return { asOf: at, batch: null, ...changes.plan() }
}
