/** One attempt of a market's auction. */
import { actionBasis, type BatchBasis, dueOrders, isIdle } from '../../../auction/action-basis.ts'
import { clearBook, deferredBy, resolvedOutcome } from '../../../auction/auction-turn.ts'
import type { BatchOutcome, MatchRefusal } from '../../../auction/batch.ts'
import { affectedOrders, type BatchDecision, decideBatch, planBatch } from '../../../auction/batch-plan.ts'
import type { Cancel, ClearingInputs } from '../../../auction/clearing.ts'
import { completeAuction, type Deferrals } from '../../../auction/deferral.ts'
import type { MarketSnapshot } from '../../../auction/market-snapshot.ts'
import { updatePace } from '../../../auction/settlement-pace.ts'
import { MAX_ORDERS_PER_TURN } from '../../../auction/turn-bound.ts'
import { keyOfTerms, type TermsInForce, termsAt } from '../../../market/in-force.ts'
import type { MarketSpec } from '../../../market/market.ts'
import {
  planReserveAgain,
  type ReservingTurn,
  reservedUpTo,
  reservingTurn,
} from '../../../orders/reserve-again.ts'
import { riskPricesOf } from '../../../risk/liquidation-due.ts'
import type { Quote } from '../../../units.ts'
import type { TurnContext } from './context.ts'
import type { MarketState } from './market-state.ts'
import type { TurnMemory } from './memory.ts'
import { pendingMovesOf } from './pending-moves.ts'

export interface AuctionAttempt {
  readonly memory: TurnMemory
  /** The number of the new batch; null if nothing was matched. */
  readonly batchId: number | null
  /** Inputs for a recomputation of the batch; null without a batch. */
  readonly inputs: ClearingInputs | null
  /** Orders left out because the contract would reject them. */
  readonly refused: readonly MatchRefusal[]
  /** The auction is repeated, because its result was discarded or reservations are being recomputed. */
  readonly isRepeated: boolean
}

export function attemptAuction(context: TurnContext, before: TurnMemory): AuctionAttempt {
  const { listed, snapshot, market, inputs } = context
  const memory = { ...before, pace: updatePace(before.pace, snapshot.backlog, snapshot.now) }
  if (isUnchanged(listed, market, memory, snapshot))
    return { memory, batchId: null, inputs: null, refused: [], isRepeated: false }
  const now = termsAt(listed, snapshot.terms, snapshot.now)
  const rules = inputs.reportRules(context.marketId)
  const allowed = actionBasis(listed, { pace: memory.pace, rules }, snapshot, inputs.headTime)
  const basis = allowed?.matching === 'none' ? null : allowed
  const due = dueOrders(market.live, now, snapshot.now, MAX_ORDERS_PER_TURN)
  const outcome = basis === null ? null : clear(context, memory, { basis, due, snapshot })
  const spec = (basis?.terms ?? now).reserving
  const { decision, deferred } = decide(spec, market, { due, outcome, deferrals: memory.deferrals })
  const reserving = basis === null ? reservingTurn(snapshot, market.live, now) : null
  const batchId = write(context, { spec, basis, decision, snapshot })
  if (reserving !== null) reserveAgain(context, now, reserving)
  const isComplete = outcome !== null && deferred === null
  const after =
    isComplete && basis !== null ? completed(memory, snapshot, basis) : { ...memory, cleared: null }
  return {
    memory: deferred === null ? after : { ...after, deferrals: deferred },
    batchId,
    inputs: batchId === null ? null : (decision.clearing?.inputs ?? null),
    refused: outcome?.refused ?? [],
    isRepeated: deferred !== null || reserving !== null,
  }
}

/** Whether nothing can have changed since the last completed auction. */
function isUnchanged(
  listed: MarketSpec,
  { live }: MarketState,
  { cleared, standingSeq, deferrals }: TurnMemory,
  snapshot: MarketSnapshot,
): boolean {
  const { head, lastBatchHead } = snapshot
  const view = { feed: live, seq: head, standingSeq: standingSeq ?? lastBatchHead, cleared }
  return isIdle(listed, view, deferrals, snapshot)
}

const completed = (
  memory: TurnMemory,
  { head, report }: MarketSnapshot,
  { terms }: BatchBasis,
): TurnMemory => ({
  ...memory,
  deferrals: completeAuction(memory.deferrals),
  standingSeq: head,
  cleared: { report, terms: keyOfTerms(terms) },
})

interface ClearTerms {
  readonly basis: BatchBasis
  /** Orders that end because of time, or because the market has closed. */
  readonly due: readonly Cancel[]
  readonly snapshot: MarketSnapshot
}

function clear(
  context: TurnContext,
  { standingSeq, deferrals }: TurnMemory,
  { basis, due, snapshot }: ClearTerms,
): BatchOutcome | null {
  const { live, positions } = context.market
  return clearBook(live, positions.of, basis, {
    snapshot,
    standingSeq: standingSeq ?? snapshot.lastBatchHead,
    due,
    deferrals,
    pool: poolAfterQueue(context, basis),
  })
}

/** Market pool once every queued action is mined. A deleveraging pays out of the pool. */
function poolAfterQueue({ state, market, snapshot }: TurnContext, basis: BatchBasis): Quote {
  if (snapshot.touched.size === 0) return market.positions.pool
  return pendingMovesOf(state, market, snapshot, riskPricesOf(basis, snapshot)).moves.pool
}

interface Decided {
  readonly decision: BatchDecision
  /** Set if the outcome is discarded and the auction is repeated without further accounts. */
  readonly deferred: Deferrals | null
}

/** Decides the auction. Due orders end even if the outcome is discarded. */
function decide(
  spec: MarketSpec,
  { live, fundsOf }: MarketState,
  terms: {
    readonly due: readonly Cancel[]
    readonly outcome: BatchOutcome | null
    readonly deferrals: Deferrals
  },
): Decided {
  const { due, outcome, deferrals } = terms
  const { resolved } = resolvedOutcome(live, due, outcome)
  const decision = decideBatch(spec, live, due, resolved, fundsOf)
  const deferred = outcome === null ? null : deferredBy(outcome, decision, live, deferrals)
  return { decision: deferred === null ? decision : decideBatch(spec, live, due, null, fundsOf), deferred }
}

interface AuctionResult {
  readonly spec: MarketSpec
  readonly basis: BatchBasis | null
  readonly decision: BatchDecision
  readonly snapshot: MarketSnapshot
}

/** Writes the result, if there is one. Returns the batch number; null if nothing was matched. */
function write(context: TurnContext, { spec, basis, decision, snapshot }: AuctionResult): number | null {
  const { overdue, cancels, matched } = decision
  if (overdue.length + cancels.length === 0 && matched === null) return null
  const { market } = context
  const batchId = snapshot.lastBatchId + 1
  const { rows } = planBatch({
    spec,
    asOf: basis?.asOf ?? snapshot.now,
    oracle: basis?.report ?? null,
    at: snapshot.now,
    head: snapshot.head,
    batchId,
    decision,
    orders: market.orders(affectedOrders(decision, market.live)),
    slots: market.slots(matched?.positions.keys() ?? []),
  })
  context.write(...rows)
  return matched === null ? null : batchId
}

/** The rows of this step are applied first, because they may have ended orders. */
function reserveAgain(context: TurnContext, { spec }: TermsInForce, turn: ReservingTurn): void {
  const { market } = context
  const { rows } = planReserveAgain({
    spec,
    at: context.inputs.now,
    orders: market.liveOrders(turn.accounts),
    positions: market.positions.of,
    fundsOf: market.fundsOf,
  })
  const fee = spec.takerFee.toString()
  context.write(...rows, { kind: 'reserved_fee_changed', fee, after: reservedUpTo(turn) })
}
