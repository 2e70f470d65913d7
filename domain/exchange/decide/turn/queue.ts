/** Queues single actions at the end of their market's queue. */
import { type SingleAction, touchedAccounts } from '../../../actions/action.ts'
import { enqueue, type QueueRefusal, type QueueTail } from '../../../actions/queue.ts'
import { toStoredPayload } from '../../../actions/stored-action.ts'
import { nextAsOf } from '../../../auction/as-of.ts'
import type { MarketSnapshot } from '../../../auction/market-snapshot.ts'
import { invariant } from '../../../invariant.ts'
import type { MarketId, Millis } from '../../../units.ts'
import { accept, type Verdict } from '../../../verdict.ts'
import { pendingActions } from '../../queued-actions.ts'
import type { ExchangeState } from '../../state.ts'
import type { TurnContext } from './context.ts'

/**
 * Queue end that the market's next action follows. The parts of a batch are queued together, so no batch is open.
 */
const tailOf = (
  state: ExchangeState,
  marketId: MarketId,
  { lastAsOf, usedReport, terms }: MarketSnapshot,
): QueueTail => ({
  lastAsOf,
  usedReport,
  openBatch: null,
  isEnded:
    terms.mode === 'settled' ||
    pendingActions(state, marketId).some(({ kind }) => kind === 'finalize_market'),
})

/** Writes the action's row. Returns its number in the queue. */
export function queueSingle(context: TurnContext, action: SingleAction): number {
  const { state, marketId } = context
  const queueNo = state.progress.need(marketId).lastQueueNo + 1
  const touches = touchedAccounts(action).flatMap((address) => state.userIds.get(address) ?? [])
  context.write({
    kind: 'action_queued',
    queue_no: queueNo,
    action: action.kind,
    payload: toStoredPayload(action),
    touches: touches.sort((a, b) => a - b),
    as_of: action.asOf,
  })
  return queueNo
}

/**
 * Queues the action that `build` returns for the queue end, if the queue has room.
 * Returns its number; null if `build` returns null, or if no action can be mined now.
 */
export function enqueueAction(
  context: TurnContext,
  build: (asOf: Millis) => SingleAction | null,
): Verdict<number | null, QueueRefusal> {
  const { state, marketId, snapshot, inputs } = context
  const asOf = nextAsOf({ now: inputs.now, headTime: inputs.headTime, lastAsOf: snapshot.lastAsOf })
  const action = asOf === null ? null : build(asOf)
  if (action === null) return accept(null)
  invariant(action.asOf === asOf, 'an action is queued as of the time of the end of the queue')
  const verdict = enqueue(tailOf(state, marketId, snapshot), action)
  return verdict.ok ? accept(queueSingle(context, action)) : verdict
}
