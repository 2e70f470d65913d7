/**
 * Positions and pool of a market after its queued inheritances and deleveragings, and the pool less possible
 * payouts of adjustments.
 */
import type { MarketSnapshot } from '../../../auction/market-snapshot.ts'
import { FLAT } from '../../../positions/position.ts'
import { type BackstopAccount, PendingMoves } from '../../../risk/pending-moves.ts'
import type { RiskPrices } from '../../../risk/score-bounds.ts'
import type { Quote } from '../../../units.ts'
import { pendingActions, singleActionOf } from '../../queued-actions.ts'
import type { ExchangeState } from '../../state.ts'
import type { MarketState } from './market-state.ts'

export interface QueuedMoves {
  readonly moves: PendingMoves
  /** Number of queued actions. */
  readonly count: number
}

export function pendingMovesOf(
  state: ExchangeState,
  market: MarketState,
  { backstop, removals }: Pick<MarketSnapshot, 'backstop' | 'removals'>,
  prices: RiskPrices,
): QueuedMoves {
  const pending = pendingActions(state, market.marketId).filter(
    ({ kind }) => kind === 'inherit_position' || kind === 'deleverage',
  )
  const moves = new PendingMoves(prices, backstopAccount(market, backstop), {
    matched: (address) => {
      const account = market.userOf(address)
      return account === undefined ? FLAT : market.positions.of(account)
    },
    pool: (market.positions.pool - removals) as Quote,
  })
  for (const action of pending) moves.apply(singleActionOf(action))
  return { moves, count: pending.length }
}

function backstopAccount(market: MarketState, backstop: MarketSnapshot['backstop']): BackstopAccount | null {
  if (backstop === null) return null
  const account = market.userOf(backstop.address)
  return { ...backstop, free: account === undefined ? (0n as Quote) : market.fundsOf(account).free }
}
