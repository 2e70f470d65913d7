/**
 * Recomputes a market's reservations in bounded steps after a rise of its highest taker rate. No batch runs meanwhile.
 * The journal records progress, so that another owner can continue.
 */
import { areReserved } from '../auction/action-basis.ts'
import type { MarketPlan } from '../auction/batch-plan.ts'
import type { MarketSnapshot } from '../auction/market-snapshot.ts'
import { MAX_ORDERS_PER_TURN } from '../auction/turn-bound.ts'
import type { LiveBook } from '../book/live-book.ts'
import type { TermsInForce } from '../market/in-force.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Position } from '../positions/position.ts'
import type { Millis, Quote, UserId } from '../units.ts'
import { isReservable, type OpenOrder } from './open-order.ts'
import { OrderChanges } from './order-changes.ts'
import { type Funds, reserveLive } from './recompute-reservations.ts'

export interface ReserveAgainInput {
  /** Specification with the new taker rate. */
  readonly spec: MarketSpec
  readonly at: Millis
  /** All live orders of the accounts in the market. */
  readonly orders: readonly OpenOrder[]
  /** The matched position of an account. */
  readonly positions: (account: UserId) => Position
  readonly fundsOf: (account: UserId) => Funds
}

/**
 * Orders that an account can no longer pay for end, newest first. Held reservations of settling fills stay,
 * because their rate is fixed.
 */
export function planReserveAgain({ spec, at, orders, positions, fundsOf }: ReserveAgainInput): MarketPlan {
  const changes = new OrderChanges(new Map(orders.map((order) => [order.seq, order])))
  for (const [account, own] of Map.groupBy(orders, (order) => order.account)) {
    const live = own.filter(isReservable)
    const before = live.reduce((sum, { reserved }) => sum + reserved, 0n) as Quote
    reserveLive(changes, { spec, at, live, before, size: positions(account).size, funds: fundsOf(account) })
  }
  return { asOf: at, batch: null, ...changes.plan() }
}

// ---------------------------------------------------------------------- accounts of one step

/** Below the id of every account. */
const START = 0 as UserId

/** Accounts of one step, and whether further accounts follow. */
export interface ReservingTurn {
  readonly accounts: ReadonlySet<UserId>
  readonly hasMore: boolean
}

/** Null if all reservations use the highest taker rate in force. */
export function reservingTurn(
  snapshot: Pick<MarketSnapshot, 'terms' | 'reservingAfter'>,
  live: LiveBook,
  terms: TermsInForce,
): ReservingTurn | null {
  if (areReserved(snapshot, terms)) return null
  const isStarted = snapshot.terms.reservedFee === terms.spec.takerFee
  return nextAccounts(live, isStarted ? (snapshot.reservingAfter ?? START) : START)
}

/** The next accounts by id with at most `MAX_ORDERS_PER_TURN` orders in total; at least one account. */
function nextAccounts(live: LiveBook, after: UserId): ReservingTurn {
  const waiting = live.accounts().filter((account) => account > after)
  const chosen: UserId[] = []
  let orders = 0
  for (const account of waiting) {
    orders += live.ordersOf(account).length
    if (chosen.length > 0 && orders > MAX_ORDERS_PER_TURN) break
    chosen.push(account)
  }
  return { accounts: new Set(chosen), hasMore: chosen.length < waiting.length }
}

/** Last recomputed account after the step; null: all accounts are done. */
export const reservedUpTo = ({ accounts, hasMore }: ReservingTurn): UserId | null =>
  hasMore ? ([...accounts].at(-1) as UserId) : null
