/** Restarts a market's queue behind an action that will not be mined as it was signed, in one transaction. */
import {
  type ActionRow,
  endActions,
  isSingle,
  loadPending,
  noteFailure,
  requeueActions,
  type SingleRow,
} from '../../db/actions.ts'
import type { Db, Tx } from '../../db/client.ts'
import { checkFence } from '../../db/fence.ts'
import { appendRows, lockShard } from '../../db/journal.ts'
import { resetActionId } from '../../db/markets.ts'
import { recordRevert } from '../../db/relayers.ts'
import { invariant } from '../../domain/invariant.ts'
import type { ActionDropped } from '../../domain/journal/action-rows.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { Millis } from '../../domain/units.ts'
import type { QueueRestart, RequeueStore } from './ports.ts'

/** Notes why single actions end. Returns their journal rows. */
export async function noteDropped(
  tx: Tx,
  actions: readonly SingleRow[],
  reason: string,
  at: Millis,
): Promise<ActionDropped[]> {
  for (const action of actions) await noteFailure(tx, action, reason)
  return actions.map(({ kind, queue_no }) => ({ kind: 'action_dropped', action: kind, queue_no, reason, at }))
}

async function drop(tx: Tx, action: ActionRow, { error, at }: QueueRestart): Promise<ActionDropped[]> {
  invariant(isSingle(action), 'a part of a batch is voided with its batch, not dropped')
  const status = action.status === 'QUEUED' ? 'VOIDED' : 'REVERTED'
  await endActions(tx, action.market_id, [action.queue_no], status)
  return noteDropped(tx, [action], error, at)
}

export const createRequeueStore = (db: Db): RequeueStore => ({
  restart: (marketId, fence, restart) =>
    db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, marketShard(marketId))
      await checkFence(tx, fence)
      const actions = await loadPending(tx, marketId)
      const [first] = actions
      if (first?.queue_no !== restart.queueNo) return false
      if (first.nonce !== null) await recordRevert(tx, first.relayer, first.nonce, restart.error)
      const rows = restart.isDropped ? await drop(tx, first, restart) : []
      const rest = restart.isDropped ? actions.slice(1) : actions
      const numbered = rest.filter(({ action_id }) => action_id !== null).map(({ queue_no }) => queue_no)
      await requeueActions(tx, marketId, numbered)
      // Ids are reserved in the order of the queue: those of the first action and of all behind it are free again.
      if (first.action_id !== null) await resetActionId(tx, marketId, first.action_id - 1)
      await appendRows(tx, head, rows)
      return true
    }),
})
