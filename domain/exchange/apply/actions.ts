/** Applies rows of a market's action queue, and the funding of mined actions. */
import { invariant } from '../../invariant.ts'
import type {
  ActionDropped,
  FundingUpdatedRow,
  InheritanceFailed,
  MarketEndedRow,
} from '../../journal/action-rows.ts'
import type { PartSettled } from '../../journal/batch-rows.ts'
import type { PositionsMoved } from '../../journal/journal-row.ts'
import type {
  ActionFailed,
  ActionIdAdopted,
  ActionNumbered,
  ActionQueued,
  ActionSigned,
  ActionSubmitted,
  BatchIdAdopted,
  PartAdopted,
  QueueRestarted,
} from '../../journal/queue-rows.ts'
import { advanceFunding, changesFunding } from '../../prices/funding-state.ts'
import type { FundingIndex, HourlyFunding, Millis } from '../../units.ts'
import { minedFunding } from '../market-terms.ts'
import type { ExchangeState } from '../state.ts'
import { keyOfFunding } from '../tables/chain.ts'
import { type ActionRow, actionKey } from '../tables/markets.ts'
import { changeProgress, type Place, setMatched } from './change.ts'
import { assignNonces } from './switches.ts'

const changeAction = (
  state: ExchangeState,
  { marketId, seq }: Place,
  queueNo: number,
  fields: Partial<ActionRow>,
): void => {
  const before = state.actions.need(actionKey(marketId, queueNo))
  state.actions.put({ ...before, ...fields, changed: seq })
}

/** How the rows of the queue change a state. */
export const QUEUE_HANDLERS = {
  action_queued: queueAction,
  action_numbered: numberAction,
  action_signed: signAction,
  action_submitted: submitAction,
  action_failed: (state: ExchangeState, place: Place, { queue_no, reason }: ActionFailed) =>
    changeAction(state, place, queue_no, { failure: reason }),
  queue_restarted: restartQueue,
  action_id_adopted: (state: ExchangeState, place: Place, { action_id }: ActionIdAdopted) =>
    changeProgress(state, place, { lastActionId: action_id }),
  batch_id_adopted: (state: ExchangeState, place: Place, { batch_id }: BatchIdAdopted) =>
    changeProgress(state, place, { lastBatchId: batch_id }),
  part_adopted: adoptPart,
}

function queueAction(state: ExchangeState, place: Place, row: ActionQueued): void {
  const { queue_no, action, payload, touches, as_of } = row
  state.actions.put({
    market_id: place.marketId,
    queue_no,
    kind: action,
    batch_id: null,
    part: null,
    payload,
    // Older rows contain texts.
    touches: touches.map(Number),
    as_of,
    status: 'QUEUED',
    action_id: null,
    relayer: null,
    nonce: null,
    failure: null,
    changed: place.seq,
  })
  changeProgress(state, place, { lastQueueNo: queue_no, lastAsOf: as_of as Millis })
}

function numberAction(state: ExchangeState, place: Place, row: ActionNumbered): void {
  const { queue_no, action_id, relayer, nonce } = row
  changeAction(state, place, queue_no, { action_id, relayer, nonce })
  assignNonces(state, relayer, nonce + 1)
  const { lastActionId } = state.progress.need(place.marketId)
  if (action_id > lastActionId) changeProgress(state, place, { lastActionId: action_id })
}

/** Records the first attempt to use the action's nonce. Other attempts have their own rows. */
function signAction(state: ExchangeState, place: Place, { queue_no, tx_hash }: ActionSigned): void {
  changeAction(state, place, queue_no, { status: 'SIGNED' })
  const { relayer, nonce, kind: purpose } = state.actions.need(actionKey(place.marketId, queue_no))
  if (relayer !== null && nonce !== null)
    state.transactions.put({ relayer, nonce, attempt: 1, tx_hash, purpose })
}

function adoptPart(state: ExchangeState, place: Place, { queue_no, action_id }: PartAdopted): void {
  // A number assigned without a signature belongs to another action on chain.
  changeAction(state, place, queue_no, { status: 'SUBMITTED', action_id, relayer: null, nonce: null })
  const { lastActionId } = state.progress.need(place.marketId)
  if (action_id > lastActionId) changeProgress(state, place, { lastActionId: action_id })
}

function submitAction(state: ExchangeState, place: Place, { queue_no }: ActionSubmitted): void {
  const { status } = state.actions.need(actionKey(place.marketId, queue_no))
  if (status === 'SIGNED') changeAction(state, place, queue_no, { status: 'SUBMITTED' })
}

function restartQueue(
  state: ExchangeState,
  place: Place,
  { requeued, last_action_id }: QueueRestarted,
): void {
  for (const queueNo of requeued)
    changeAction(state, place, queueNo, { status: 'QUEUED', action_id: null, relayer: null, nonce: null })
  if (last_action_id !== null) changeProgress(state, place, { lastActionId: last_action_id })
}

export function dropAction(state: ExchangeState, place: Place, row: ActionDropped): void {
  const status = row.is_reverted ? 'REVERTED' : 'VOIDED'
  changeAction(state, place, row.queue_no, { status, failure: row.reason })
  setMatched(state, place, row.matched ?? [])
}

// ---------------------------------------------------------------------- mined

type MinedSingle = FundingUpdatedRow | InheritanceFailed | MarketEndedRow | PositionsMoved

/**
 * Marks the single action with the row's id as mined (rollback: as sent again), and applies its funding.
 * Actions that this exchange did not send are unknown.
 */
export function mineSingle(state: ExchangeState, place: Place, row: MinedSingle): void {
  markMined(state, place, row)
  settleFunding(state, place, row)
}

function markMined(state: ExchangeState, place: Place, row: MinedSingle): void {
  if (row.action_id === undefined) return
  const queueNo = state.queues.ofActionId(place.marketId, row.action_id)
  const action = queueNo === undefined ? undefined : state.actions.get(actionKey(place.marketId, queueNo))
  if (action === undefined || action.kind === 'settle_part' || !isOwn(action, row)) return
  if (row.rollback) {
    if (action.status === 'MINED')
      changeAction(state, place, action.queue_no, { status: 'SUBMITTED', failure: null })
  } else if (action.status === 'SIGNED' || action.status === 'SUBMITTED') {
    changeAction(state, place, action.queue_no, { status: 'MINED' })
  }
}

/** Whether the row belongs to the action. A freeze also has an action id, but any account may send it. */
function isOwn({ kind }: ActionRow, row: MinedSingle): boolean {
  if (row.rollback) return true
  switch (row.kind) {
    case 'funding_updated':
      return kind === 'update_funding'
    case 'inheritance_failed':
      return kind === 'inherit_position'
    case 'market_ended':
      return kind === 'finalize_market' && row.how === 'finalized'
    case 'positions_moved':
      return kind === (row.cause === 'inherited' ? 'inherit_position' : 'deleverage')
  }
}

type FundingRowOf = MinedSingle | PartSettled

/** Rate that a mined action sets; null if it keeps the rate. The market's last action ends the rate. */
function rateOf(row: FundingRowOf): { readonly rate: HourlyFunding; readonly validUntil: Millis } | null {
  if (row.kind === 'funding_updated')
    return { rate: BigInt(row.rate) as HourlyFunding, validUntil: row.valid_until as Millis }
  if (row.kind === 'market_ended') return { rate: 0n as HourlyFunding, validUntil: row.as_of as Millis }
  return null
}

/** Stores the funding after a mined action if it differs; in a rollback, removes the action's funding. */
export function settleFunding(state: ExchangeState, { marketId }: Place, row: FundingRowOf): void {
  const { action_id: actionId, funding_index, as_of } = row
  if (actionId === undefined || state.markets.need(String(marketId)).spec.kind !== 'perpetual') return
  if (row.rollback) {
    state.fundings.remove(keyOfFunding({ market_id: marketId, action_id: actionId }))
    return
  }
  invariant(
    funding_index !== undefined && as_of !== undefined,
    'the row of a mined action has its funding and time',
  )
  const before = minedFunding(state, marketId)
  const index = BigInt(funding_index) as FundingIndex
  const after = { ...advanceFunding(before, as_of as Millis, rateOf(row)), index }
  if (!changesFunding(before, after)) return
  const { rate, validFrom, validUntil } = after.running
  state.fundings.put({
    market_id: marketId,
    action_id: actionId,
    as_of,
    funding_index,
    rate: rate.toString(),
    valid_from: validFrom,
    valid_until: validUntil,
  })
}
