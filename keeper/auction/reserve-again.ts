/** Writes one step of computing a market's reservations again. */
import { NO_FUNDS } from '../../domain/auction/auction-turn.ts'
import type { TermsInForce } from '../../domain/market/in-force.ts'
import { planReserveAgain, type ReservingTurn, reservedUpTo } from '../../domain/orders/reserve-again.ts'
import type { MarketPositions } from '../../domain/risk/market-positions.ts'
import type { MarketTransaction } from './ports.ts'

/** The transaction has read the funds of the turn's accounts. `positions`: matched, at the locked head. */
export async function reserveAgain(
  transaction: MarketTransaction,
  { spec }: TermsInForce,
  positions: MarketPositions,
  turn: ReservingTurn,
): Promise<void> {
  const { accounts } = turn
  // Read again: the same transaction may have ended orders.
  const funds = await transaction.funds(accounts)
  const orders = accounts.size === 0 ? [] : await transaction.liveOrders(accounts)
  const plan = planReserveAgain({
    spec,
    at: transaction.snapshot.now,
    orders,
    positions: positions.of,
    fundsOf: (account) => funds.get(account) ?? NO_FUNDS,
  })
  await transaction.save(plan)
  await transaction.setReserving(spec.takerFee, reservedUpTo(turn))
}
