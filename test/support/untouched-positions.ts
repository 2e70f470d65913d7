/** Positions on which a job may decide. */
import { matchedOf } from '../../domain/exchange/market-indexes.ts'
import { pendingActions } from '../../domain/exchange/queued-actions.ts'
import type { ExchangeState } from '../../domain/exchange/state.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { Address, MarketId } from '../../domain/units.ts'
import type { Positions } from './legal-deleveraging.ts'

/** The matched positions of the market, without those that a queued action may change. */
export function untouchedPositions(state: ExchangeState, marketId: number): Positions {
  const touched = new Set<number>()
  for (const { touches } of pendingActions(state, marketId as MarketId))
    for (const account of touches) touched.add(account)
  for (const { user_id } of state.marketIndexes.adjusting(marketId as MarketId)) touched.add(user_id)
  const untouched = [...state.positions.rows()]
    .filter((row) => row.marketId === marketId && row.matchedSize !== 0 && !touched.has(row.userId))
    .sort((a, b) => b.userId - a.userId)
  return new Map(
    untouched.map((row): [Address, Position] => [state.users.need(row.userId).address, matchedOf(row)]),
  )
}
