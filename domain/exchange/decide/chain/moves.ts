/** Facts that move positions outside batches, and facts of actions that move none. */

import { expectationOf } from '../../../actions/action-rules.ts'
import { movedAccounts, type PositionMoveFact, type SingleFact } from '../../../chain/fact-accounts.ts'
import type { LoggedFact } from '../../../chain/facts.ts'
import { evidenceOf, movedPositions, moveRow } from '../../../chain/position-move.ts'
import { type ActionFact, actionKindOf, eventsOf, singleRow } from '../../../chain/single-action.ts'
import { isWithoutEffect, type Mismatch, mismatch } from '../../../settlement/receipt.ts'
import { reconcile } from '../../../settlement/reconcile.ts'
import { closeWithMove, type MovedSize } from '../../../settlement/settling-order.ts'
import type { Address } from '../../../units.ts'
import { minedFunding } from '../../market-terms.ts'
import { singleActionOf } from '../../queued-actions.ts'
import { type ActionRow, actionKey } from '../../tables/markets.ts'
import { endAdjustment } from './adjustments.ts'
import { type FactContext, minedAt, readPositions, userOf, type WantedPositions } from './fact-context.ts'
import { minedPositions, movedOrders } from './read.ts'

type Log = LoggedFact['log']

/** Null once the fact is applied. */
export function movePositions(
  context: FactContext,
  fact: PositionMoveFact,
  log: Log,
): WantedPositions | null {
  const { marketId } = fact.spec
  const { draft } = context
  const { state } = draft
  const accounts = [...new Set(movedAccounts(fact))]
  const idOf = (account: Address) => userOf(context, account)
  const byId = minedPositions(state, marketId, accounts.map(idOf))
  const before = new Map(
    accounts.flatMap((account) => {
      const position = byId.get(idOf(account))
      return position === undefined ? [] : [[account, position] as const]
    }),
  )
  const explained = movedPositions(fact, before)
  const after = explained ?? readPositions(context, log.logIndex, accounts)
  if (after === null) return { logIndex: log.logIndex, marketId, accounts }
  const time = { part: null, asOf: evidenceOf(fact).as_of ?? null }
  const moves = new Map([...after].map(([account, position]) => [idOf(account), position]))
  const { moved, reduceOnly } = movedOrders(state, marketId, moves, time)
  const closed = reduceOnly.flatMap(
    (order) => closeWithMove(order, moved.get(order.userId) as MovedSize)?.order ?? [],
  )
  const lastIndex = minedFunding(state, marketId).index
  const mined = minedAt(context, log)
  const row = moveRow(fact, { before, after, idOf, closed, lastIndex, mined })
  const own = endOwn(context, fact, log, explained !== null)
  // The action is compared before its row marks it as mined.
  draft.write(marketId, row)
  own.after?.()
  const unexplained =
    explained === null
      ? mismatch(
          'trade_events_without_position_updates',
          'the positions do not follow from what the log says',
        )
      : null
  const found = own.found === undefined ? unexplained : own.found
  if (found !== null) context.mismatches.push({ ...found, ...placeOf(fact, log) })
  return null
}

interface OwnEnd {
  /** First mismatch of the fact; undefined if the exchange did not send the transaction. */
  readonly found: Mismatch | null | undefined
  /** Writes rows that follow the move's row. */
  readonly after?: () => void
}

/** Ends the attempt or action that this exchange sent. */
function endOwn(context: FactContext, fact: PositionMoveFact, log: Log, movesPositions: boolean): OwnEnd {
  switch (fact.kind) {
    case 'position_inherited':
    case 'positions_deleveraged':
      return mineAction(context, fact, movesPositions)
    case 'position_adjusted':
      return endAdjustment(context, fact, { log, movesPositions })
    default:
      return { found: undefined }
  }
}

export function applySingle(context: FactContext, fact: SingleFact, log: Log): void {
  const { draft, mismatches } = context
  const { marketId } = fact.spec
  const own = mineAction(context, fact, true)
  if (own.found) mismatches.push({ ...own.found, ...placeOf(fact, log) })
  own.after?.()
  const { mode } = draft.state.markets.need(String(marketId))
  draft.write(marketId, singleRow(fact, minedAt(context, log), mode))
}

/**
 * Marks an action as mined. An action that only had no effect is recorded with that result, and is not a mismatch.
 */
function mineAction({ draft }: FactContext, fact: ActionFact, movesPositions: boolean): OwnEnd {
  const { marketId } = fact.spec
  const { actionId } = fact.event
  const action = sentAction(draft.state, marketId, actionId)
  if (action === undefined || action.kind === 'settle_part' || action.kind !== actionKindOf(fact))
    return { found: undefined }
  const { queue_no } = action
  const sent = singleActionOf(action)
  const verdict = reconcile({ ...eventsOf(fact), movesPositions }, expectationOf(sent, actionId))
  if (verdict.ok) return { found: null }
  if (!isWithoutEffect(verdict.refusal)) return { found: verdict.refusal }
  const { reason } = verdict.refusal
  return { found: null, after: () => draft.write(marketId, { kind: 'action_failed', queue_no, reason }) }
}

function sentAction(
  state: FactContext['draft']['state'],
  marketId: number,
  actionId: number,
): ActionRow | undefined {
  const queueNo = state.queues.ofActionId(marketId, actionId)
  const action = queueNo === undefined ? undefined : state.actions.get(actionKey(marketId, queueNo))
  return action?.status === 'SIGNED' || action?.status === 'SUBMITTED' ? action : undefined
}

const placeOf = ({ spec }: PositionMoveFact | SingleFact, { txHash }: Log) => ({
  marketId: spec.marketId,
  txHash,
  batchId: null,
  part: null,
})
