/**
 * Ends the first action of a market that will not be mined as signed.
 * For a part, its batch and all later batches are voided; a single action is dropped.
 */

import { fundingAfter } from '../../../actions/queue.ts'
import { NO_FUNDS } from '../../../auction/auction-turn.ts'
import { matchedPosition } from '../../../auction/batch-plan.ts'
import { invariant } from '../../../invariant.ts'
import { specAt } from '../../../market/changes.ts'
import { reservingSpec } from '../../../market/in-force.ts'
import type { MarketSpec } from '../../../market/market.ts'
import { fromStoredTerms } from '../../../market/stored-terms.ts'
import { FLAT, type Position } from '../../../positions/position.ts'
import { BEHIND_VOID } from '../../../risk/liquidation-outcome.ts'
import { type QueuedFills, replayParts } from '../../../settlement/replay-parts.ts'
import { type Culprit, planVoid, type VoidedBatch } from '../../../settlement/void-batch.ts'
import type { FundingIndex, MarketId, Millis, Price, Rate, Ticks, UserId } from '../../../units.ts'
import { idOf } from '../../apply/orders.ts'
import type { Draft } from '../../draft.ts'
import type { Inputs } from '../../inputs.ts'
import { minedFunding } from '../../market-terms.ts'
import { toOpenOrder } from '../../open-orders.ts'
import { fundingStepOf, pendingActions } from '../../queued-actions.ts'
import type { ExchangeState } from '../../state.ts'
import { type ActionRow, batchKey } from '../../tables/markets.ts'
import { restrictToCancels } from './blocks.ts'
import { fillIdOf, minedPosition, minedPositions, waitingFills } from './read.ts'
import { partOf } from './signable.ts'

/** `queueNo`: the market's first action that is neither mined nor ended. */
export interface VoidCommand {
  readonly kind: 'void'
  readonly spec: MarketSpec
  readonly queueNo: number
  readonly culprit: Culprit
}

export interface RestartCommand {
  readonly kind: 'restart_queue'
  readonly spec: MarketSpec
  readonly queueNo: number
  /** True: the action ends. False: the action is signed again, like the later actions. */
  readonly isDropped: boolean
  readonly error: string
}

export type EndAnswer =
  | { readonly kind: 'done' }
  /** `isRestricted`: two consecutive failures had no culprit, so the market now accepts only cancels. */
  | { readonly kind: 'voided'; readonly batchIds: readonly number[]; readonly isRestricted: boolean }
  /** Earlier actions are not recorded as mined, or this action has ended. */
  | { readonly kind: 'not_first' }
  /** The actions from this one on cannot be signed again; they must be voided. */
  | { readonly kind: 'unsettleable'; readonly queueNo: number }

export const decideEnd = (draft: Draft, inputs: Inputs, command: VoidCommand | RestartCommand): EndAnswer =>
  command.kind === 'void' ? voidFrom(draft, inputs, command) : restart(draft, inputs, command)

// ---------------------------------------------------------------------- void

function voidFrom(draft: Draft, { now: at }: Inputs, { spec, queueNo, culprit }: VoidCommand): EndAnswer {
  const { state } = draft
  const { marketId } = spec
  const actions = pendingActions(state, marketId)
  if (actions[0]?.queue_no !== queueNo) return { kind: 'not_first' }
  const batches = batchesOf(state, marketId, actions)
  const accounts = new Set(batches.flatMap(({ fills }) => fills.map(({ user_id }) => user_id as UserId)))
  const orders = [...accounts]
    .flatMap((account) => state.orderIndex.liveOf(marketId, account))
    .sort((a, b) => a.seq - b.seq)
    .map((order) => toOpenOrder(state, order))
  const voiding = planVoid({
    spec: reservingSpec(spec, state.progress.need(marketId).reservedFee),
    at,
    culprit,
    batches,
    orders,
    positions: (account) => minedPosition(state.positions.get(account, marketId)),
    fundsOf: (account) => state.accounts.get(account) ?? NO_FUNDS,
  })
  const isSecond = culprit.kind === 'unnamed' && isAfterUnnamed(state, marketId, queueNo)
  for (const row of voiding.rows) draft.write(marketId, row)
  for (const { kind, queue_no } of actions) {
    if (kind === 'settle_part') continue
    const dropped = { action: kind, queue_no, reason: BEHIND_VOID, at, rematched: [] }
    draft.write(marketId, { kind: 'action_dropped', ...dropped })
  }
  const first = actions.find(({ action_id }) => action_id !== null)?.action_id ?? null
  if (first !== null)
    draft.write(marketId, { kind: 'queue_restarted', requeued: [], last_action_id: first - 1, at })
  if (isSecond) restrictToCancels(draft, marketId, 'reverts')
  return { kind: 'voided', batchIds: batches.map(({ batchId }) => batchId), isRestricted: isSecond }
}

/** The first action counts as reverted if it was ever signed: its transactions can no longer be mined. */
const isReverted = ({ status, nonce }: ActionRow): boolean => status !== 'QUEUED' && nonce !== null

function batchesOf(state: ExchangeState, marketId: MarketId, actions: readonly ActionRow[]): VoidedBatch[] {
  const fromPart = new Map<number, number>()
  for (const action of actions) {
    const part = partOf(action)
    if (part !== null && !fromPart.has(part.batchId)) fromPart.set(part.batchId, part.part)
  }
  const [first] = actions
  return [...fromPart].map(([batchId, from]) => {
    const { parts } = state.batches.need(batchKey(marketId, batchId))
    const fills = []
    for (let part = from; part <= parts; part++)
      for (const fill of waitingFills(state, marketId, { batchId, part }))
        fills.push({
          fill_id: fillIdOf(fill),
          order_id: idOf(state.orders.need(marketId, fill.accepted)),
          user_id: fill.account,
          part,
          side: fill.side,
          steps: fill.steps,
          taker_steps: fill.takerSteps,
          held: fill.held.toString(),
        })
    return {
      batchId,
      fromPart: from,
      isReverted: first !== undefined && isReverted(first) && first.batch_id === batchId,
      fills,
    }
  })
}

/** Whether the preceding part also reverted without a culprit. */
function isAfterUnnamed(state: ExchangeState, marketId: MarketId, queueNo: number): boolean {
  let last: ActionRow | null = null
  for (const action of state.actions.rows()) {
    const { market_id, queue_no, kind, status } = action
    if (market_id !== marketId || queue_no >= queueNo || kind !== 'settle_part') continue
    if (status !== 'MINED' && status !== 'REVERTED') continue
    if (last === null || queue_no > last.queue_no) last = action
  }
  return last?.status === 'REVERTED' && last.is_unnamed === true
}

// ---------------------------------------------------------------------- restart

function restart(draft: Draft, { now: at }: Inputs, command: RestartCommand): EndAnswer {
  const { spec, queueNo, isDropped, error } = command
  const { state } = draft
  const { marketId } = spec
  const actions = pendingActions(state, marketId)
  const [first] = actions
  if (first?.queue_no !== queueNo) return { kind: 'not_first' }
  const rest = isDropped ? actions.slice(1) : actions
  const rematched = isDropped ? rematch(state, spec, rest) : new Map<UserId, Position>()
  const requeued = rest.filter(({ action_id }) => action_id !== null).map(({ queue_no }) => queue_no)
  const last_action_id = first.action_id === null ? null : first.action_id - 1
  if (isDropped) {
    const { kind: action, queue_no, status } = first
    invariant(action !== 'settle_part', 'a part of a batch is voided with its batch, not dropped')
    const matched = [...(rematched ?? [])]
    draft.write(marketId, {
      kind: 'action_dropped',
      action,
      queue_no,
      reason: error,
      at,
      rematched: matched.map(([account]) => account),
      ...(status !== 'QUEUED' && { is_reverted: true }),
      matched: matched.map(([account, position]) => matchedPosition(account, position)),
    })
  }
  draft.write(marketId, { kind: 'queue_restarted', requeued, last_action_id, at })
  const next = rest[0]?.queue_no
  return rematched === null && next !== undefined ? { kind: 'unsettleable', queueNo: next } : { kind: 'done' }
}

/**
 * Matched positions of the queued parts under funding without the dropped action. Null if a part can no longer settle.
 */
function rematch(
  state: ExchangeState,
  spec: MarketSpec,
  actions: readonly ActionRow[],
): ReadonlyMap<UserId, Position> | null {
  const { marketId } = spec
  const chain = fromStoredTerms(state.markets.need(String(marketId)).terms, spec)
  let funding = minedFunding(state, marketId)
  const parts: QueuedFills[] = []
  for (const action of actions) {
    funding = fundingAfter(funding, [fundingStepOf(action)])
    const fills = queuedFills(state, action, funding.index)
    if (fills !== null) parts.push({ ...fills, spec: specAt(spec, chain, action.as_of as Millis) })
  }
  const accounts = parts.flatMap(({ fills }) => fills.map(({ account }) => account))
  const mined = minedPositions(state, marketId, accounts)
  return replayParts(spec, parts, (account) => mined.get(account) ?? FLAT)
}

function queuedFills(
  state: ExchangeState,
  action: ActionRow,
  fundingIndex: FundingIndex,
): QueuedFills | null {
  const part = partOf(action)
  if (part === null) return null
  const marketId = action.market_id as MarketId
  const batch = state.batches.need(batchKey(marketId, part.batchId))
  return {
    terms: {
      price: batch.price as Ticks,
      oracle: BigInt(batch.oracle_price) as Price,
      makerFee: BigInt(batch.maker_fee) as Rate,
      takerFee: BigInt(batch.taker_fee) as Rate,
      fundingIndex,
    },
    fills: waitingFills(state, marketId, part).map(({ account, side, accepted, steps, takerSteps }) => {
      const { price: limit, leverage } = state.orders.need(marketId, accepted)
      return { account, side, limit, leverage, steps, takerSteps }
    }),
  }
}
