/** Removes what has ended, is durable for readers, and is final on the chain. */
import type { EndedReleased } from '../../journal/operator-rows.ts'
import { orderIdOf } from '../../orders/order.ts'
import type { MarketId } from '../../units.ts'
import type { ExchangeState } from '../state.ts'
import { actionKey, batchKey, isPending } from '../tables/markets.ts'
import type { Place } from './change.ts'

export function releaseEnded(state: ExchangeState, { marketId }: Place, { up_to }: EndedReleased): void {
  for (const accepted of state.ended.upTo(marketId, up_to)) {
    state.orders.remove(marketId, accepted)
    state.signatures.remove(marketId, accepted)
    state.orderNotes.remove(orderIdOf(marketId, accepted))
  }
  for (const { market_id, batch_id, status, changed } of [...state.batches.rows()])
    if (market_id === marketId && status !== 'SETTLING' && changed <= up_to)
      state.batches.remove(batchKey(market_id, batch_id))
  releaseActions(state, marketId, up_to)
}

/** The newest action of each kind stays: later actions follow its time and its report. */
function releaseActions(state: ExchangeState, marketId: MarketId, upTo: number): void {
  const own = [...state.actions.rows()].filter(({ market_id }) => market_id === marketId)
  const newest = new Map<string, number>()
  for (const { kind, queue_no, status } of own)
    if (status === 'MINED') newest.set(kind, Math.max(queue_no, newest.get(kind) ?? 0))
  for (const { kind, queue_no, status, changed } of own)
    if (!isPending(status) && changed <= upTo && queue_no !== newest.get(kind))
      state.actions.remove(actionKey(marketId, queue_no))
}
