/**
 * Computes a market's reservations again after its highest taker rate has changed: account by account, a bounded number of orders per
 * transaction. Until all are done no batch runs, so that no fill costs more than was reserved for it. The place is in the database: another
 * owner continues there.
 */
import type { MarketBook } from '../../domain/book/market-book.ts'
import type { TermsInForce } from '../../domain/market/in-force.ts'
import { planReserveAgain } from '../../domain/orders/reserve-again.ts'
import type { MarketPositions } from '../../domain/risk/market-positions.ts'
import type { Quote, UserId } from '../../domain/units.ts'
import { MAX_ORDERS_PER_TURN } from '../turn-bound.ts'
import { areReserved } from './market-memory.ts'
import type { MarketSnapshot, MarketTransaction } from './ports.ts'

const NO_FUNDS = { free: 0n as Quote, reserved: 0n as Quote }
/** Below the id of every account. */
const START = 0 as UserId

/** The accounts of one transaction, and whether others follow. */
export interface ReservingTurn {
  readonly accounts: ReadonlySet<UserId>
  readonly hasMore: boolean
}

/** Null if all reservations are computed at the highest taker rate in force. */
export function reservingTurn(
  snapshot: MarketSnapshot,
  feed: MarketBook,
  terms: TermsInForce,
): ReservingTurn | null {
  if (areReserved(snapshot, terms)) return null
  const isStarted = snapshot.terms.reservedFee === terms.spec.takerFee
  return nextAccounts(feed, isStarted ? (snapshot.reservingAfter ?? START) : START)
}

/** The transaction has read the funds of the turn's accounts. `positions`: matched, at the locked head. */
export async function reserveAgain(
  transaction: MarketTransaction,
  { spec }: TermsInForce,
  positions: MarketPositions,
  { accounts, hasMore }: ReservingTurn,
): Promise<void> {
  const { now } = transaction.snapshot
  // Read again: the same transaction may have ended orders.
  const funds = await transaction.funds(accounts)
  const orders = accounts.size === 0 ? [] : await transaction.liveOrders(accounts)
  const plan = planReserveAgain({
    spec,
    at: now,
    orders,
    positions: positions.of,
    fundsOf: (account) => funds.get(account) ?? NO_FUNDS,
  })
  await transaction.save(plan)
  await transaction.setReserving(spec.takerFee, hasMore ? ([...accounts].at(-1) as UserId) : null)
}

/** The next accounts by id whose orders together are at most `MAX_ORDERS_PER_TURN`; at least one. */
function nextAccounts(feed: MarketBook, after: UserId): ReservingTurn {
  const waiting = feed.accounts().filter((account) => account > after)
  const chosen: UserId[] = []
  let orders = 0
  for (const account of waiting) {
    orders += feed.ordersOf(account).length
    if (chosen.length > 0 && orders > MAX_ORDERS_PER_TURN) break
    chosen.push(account)
  }
  return { accounts: new Set(chosen), hasMore: chosen.length < waiting.length }
}
