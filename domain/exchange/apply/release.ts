/** Removes ended data that is durable for readers and final on chain. */
import type { ActionKind } from '../../actions/action.ts'
import type { EndedReleased } from '../../journal/operator-rows.ts'
import { orderIdOf } from '../../orders/order.ts'
import type { MarketId } from '../../units.ts'
import type { ExchangeState } from '../state.ts'
import { keyOfTransaction } from '../tables/blocks.ts'
import { type ActionRow, actionKey, batchKey, isPending } from '../tables/markets.ts'
import type { Place } from './change.ts'

export function releaseEnded(state: ExchangeState, { marketId }: Place, { up_to }: EndedReleased): void {
  for (const accepted of state.ended.upTo(marketId, up_to)) {
    state.orders.remove(marketId, accepted)
    state.signatures.remove(marketId, accepted)
    state.orderNotes.remove(orderIdOf(marketId, accepted))
  }
  const newest = newestMined(state, marketId)
  releaseBatches(state, marketId, up_to, newest.get('settle_part')?.batch_id ?? null)
  for (const action of actionsOf(state, marketId)) {
    const { kind, queue_no, status, changed } = action
    if (isPending(status) || changed > up_to || queue_no === newest.get(kind)?.queue_no) continue
    releaseTransactions(state, action)
    state.actions.remove(actionKey(marketId, queue_no))
  }
}

/** Removes every transaction signed with the action's nonce. */
function releaseTransactions(state: ExchangeState, { relayer, nonce }: ActionRow): void {
  if (relayer === null || nonce === null) return
  for (let attempt = 1; ; attempt++) {
    const key = keyOfTransaction({ relayer, nonce, attempt })
    if (state.transactions.get(key) === undefined) return
    state.transactions.remove(key)
  }
}

/** `kept`: batch of the newest mined part; later actions follow its report. */
function releaseBatches(state: ExchangeState, marketId: MarketId, upTo: number, kept: number | null): void {
  for (const { market_id, batch_id, status, changed } of [...state.batches.rows()])
    if (market_id === marketId && status !== 'SETTLING' && changed <= upTo && batch_id !== kept)
      state.batches.remove(batchKey(market_id, batch_id))
}

const actionsOf = (state: ExchangeState, marketId: MarketId): ActionRow[] =>
  [...state.actions.rows()].filter(({ market_id }) => market_id === marketId)

/** The newest mined action of each kind stays, because later actions follow its time and its report. */
function newestMined(state: ExchangeState, marketId: MarketId): ReadonlyMap<ActionKind, ActionRow> {
  const newest = new Map<ActionKind, ActionRow>()
  for (const action of actionsOf(state, marketId)) {
    const before = newest.get(action.kind)
    if (action.status === 'MINED' && (before === undefined || before.queue_no < action.queue_no))
      newest.set(action.kind, action)
  }
  return newest
}
