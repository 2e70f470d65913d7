/** One auction of a market: reads the journal, decides, and writes the batch in one transaction. */

import type { Fence } from '../../db/fence.ts'
import { actionBasis, type BatchBasis, dueOrders, isIdle } from '../../domain/auction/action-basis.ts'
import {
  ATTEMPTS,
  type AuctionTerms,
  clearBook,
  deferredBy,
  NO_FUNDS,
  resolvedOutcome,
} from '../../domain/auction/auction-turn.ts'
import type { BatchOutcome, MatchRefusal } from '../../domain/auction/batch.ts'
import {
  affectedOrders,
  type BatchDecision,
  decideBatch,
  planBatch,
} from '../../domain/auction/batch-plan.ts'
import { completeAuction, type Deferrals } from '../../domain/auction/deferral.ts'
import { updatePace } from '../../domain/auction/settlement-pace.ts'
import { MAX_ORDERS_PER_TURN } from '../../domain/auction/turn-bound.ts'
import type { MarketBook } from '../../domain/book/market-book.ts'
import { keyOfTerms, termsAt } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { reservingTurn } from '../../domain/orders/reserve-again.ts'
import { fundingIndexAt } from '../../domain/prices/funding-state.ts'
import type { MarketPositions } from '../../domain/risk/market-positions.ts'
import type { Millis, Quote, Seq, UserId } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { Metrics } from '../ports.ts'
import { catchUp, type MarketMemory, type MarketView } from './market-memory.ts'
import { readPendingMoves } from './pending-moves.ts'
import type { AuctionStore, MarketTransaction } from './ports.ts'
import { reserveAgain } from './reserve-again.ts'

export interface AuctionPorts {
  readonly store: AuctionStore
  readonly clock: Clock
  /** Block time of the chain's head; null while no node responds. */
  readonly headTime: () => Millis | null
  readonly killPoint: KillPointHook<'after-batch-commit'>
  readonly metrics: Metrics
  readonly logger: Logger
  /** Wakes the market's settlement. A lost wake-up loses nothing: settlement also sweeps. */
  readonly wake: (batchId: number) => void
}

export interface Auction {
  /** Returns the number of the new batch; null if there is none. After an error the memory is discarded. */
  run(fence: Fence): Promise<number | null>
}

export function createAuction(ports: AuctionPorts, spec: MarketSpec, memory: MarketMemory): Auction {
  async function attempt(fence: Fence): Promise<AuctionAttempt | null> {
    const before = memory.view
    memory.view = null
    const snapshot = await ports.store.snapshot(spec)
    const started = ports.clock.now()
    memory.pace = updatePace(memory.pace, snapshot.backlog, snapshot.now)
    if (before !== null && isIdle(spec, before, memory.deferrals, snapshot)) {
      memory.view = before
      return null
    }
    let known = before
    const work = async (transaction: MarketTransaction) => {
      known = await catchUp(spec, transaction, known)
      return runAuction(ports, { spec, memory }, transaction, known)
    }
    const done = await ports.store.transaction(spec, fence, work)
    memory.view = done.view
    memory.deferrals = done.deferrals
    ports.metrics.auction(spec.marketId, (ports.clock.now() - started) / 1000)
    return done
  }

  async function run(fence: Fence): Promise<number | null> {
    let done = await attempt(fence)
    for (let attempts = 1; done?.isRepeated && attempts < ATTEMPTS; attempts++) done = await attempt(fence)
    if (done === null || done.batchId === null) return null
    ports.killPoint('after-batch-commit')
    ports.wake(done.batchId)
    return done.batchId
  }

  return { run }
}

interface AuctionScope {
  readonly spec: MarketSpec
  readonly memory: MarketMemory
}

interface AuctionAttempt {
  readonly view: MarketView
  readonly deferrals: Deferrals
  /** The auction's result was discarded, or reservations are computed again: it is repeated. */
  readonly isRepeated: boolean
  readonly batchId: number | null
}

async function runAuction(
  ports: AuctionPorts,
  { spec: listed, memory }: AuctionScope,
  transaction: MarketTransaction,
  { feed, positions, standingSeq }: MarketView,
): Promise<AuctionAttempt> {
  const { snapshot } = transaction
  const now = termsAt(listed, snapshot.terms, snapshot.now)
  const due = dueOrders(feed, now, snapshot.now, MAX_ORDERS_PER_TURN)
  const allowed = actionBasis(listed, memory, snapshot, ports.headTime())
  const basis = allowed?.matching === 'none' ? null : allowed
  const spec = (basis?.terms ?? now).reserving
  const pool = basis === null ? positions.pool : await poolAfterQueue(transaction, positions, basis)
  const terms = { snapshot, standingSeq, due, deferrals: memory.deferrals, pool }
  const outcome = basis === null ? null : clearBook(feed, positions.of, basis, terms)
  logRefused(ports.logger, spec, feed, outcome?.refused ?? [])
  const turn = basis === null ? reservingTurn(snapshot, feed, now) : null
  const reserving = turn?.accounts ?? new Set()
  const { decision, deferred } = await decide(spec, transaction, feed, { due, outcome, reserving, ...memory })
  const isComplete = outcome !== null && deferred === null
  const view: MarketView = {
    feed,
    seq: snapshot.head,
    positions,
    standingSeq: isComplete ? snapshot.head : standingSeq,
    cleared: isComplete && basis ? { report: snapshot.report, terms: keyOfTerms(basis.terms) } : null,
  }
  const batchId = await write(spec, transaction, view, { decision, basis })
  const matched = decision.matched
  if (matched) ports.metrics.batch(spec.marketId, matched.clearing.fills.length, matched.parts.length)
  if (deferred !== null) {
    const details = { market_id: spec.marketId, accounts: deferred.excluded.size }
    ports.logger.warn(details, 'auction is repeated without some accounts: its batch cannot be written')
  }
  if (turn !== null) await reserveAgain(transaction, now, positions, turn)
  const after = isComplete ? completeAuction(memory.deferrals) : memory.deferrals
  return { view, deferrals: deferred ?? after, isRepeated: deferred !== null || turn !== null, batchId }
}

function logRefused(
  logger: Logger,
  { marketId }: MarketSpec,
  feed: MarketBook,
  refused: readonly MatchRefusal[],
): void {
  const unpaid = refused.filter(({ reason }) => reason === 'POOL_SHORT')
  if (unpaid.length > 0) {
    const details = {
      market_id: marketId,
      accounts: unpaid.length,
      first: feed.idOf(unpaid[0]?.orders[0] as Seq),
    }
    logger.warn(details, 'closing orders wait: the pool of the market cannot pay them')
  }
  for (const { orders, reason } of refused) {
    if (reason === 'POOL_SHORT') continue
    const details = { market_id: marketId, order_ids: orders.map((seq) => feed.idOf(seq)), reason }
    if (reason === 'NOT_LIQUIDATABLE')
      logger.warn(details, 'forced orders wait: a part of the batch makes their positions healthy')
    else logger.error(details, 'orders excluded from the batch: the contract would reject them')
  }
}

/** What the pool holds once everything in the queue is mined. A deleveraging pays out of it. */
async function poolAfterQueue(
  transaction: MarketTransaction,
  positions: MarketPositions,
  { terms, report, asOf }: BatchBasis,
): Promise<Quote> {
  const { touched, funding } = transaction.snapshot
  if (touched.size === 0) return positions.pool
  const prices = { spec: terms.spec, oracle: report.price, index: fundingIndexAt(funding, asOf) }
  return (await readPendingMoves(transaction, positions, prices)).moves.pool
}

interface AuctionDecision {
  readonly decision: BatchDecision
  /** Set if the outcome is discarded, and the auction repeated without further accounts. */
  readonly deferred: Deferrals | null
}

interface DecisionInput extends Pick<AuctionTerms, 'due' | 'deferrals'> {
  readonly outcome: BatchOutcome | null
  /** Accounts whose reservations the same transaction computes again: the funds of all accounts are read at once. */
  readonly reserving: ReadonlySet<UserId>
}

/** Orders that are due end also if the outcome is discarded. */
async function decide(
  spec: MarketSpec,
  transaction: MarketTransaction,
  feed: MarketBook,
  { due, outcome, deferrals, reserving }: DecisionInput,
): Promise<AuctionDecision> {
  const { resolved, accounts } = resolvedOutcome(feed, due, outcome)
  const funds = await transaction.funds(new Set([...accounts, ...reserving]))
  const decisionOn = (result: BatchOutcome | null) =>
    decideBatch(spec, feed, due, result, (account) => funds.get(account) ?? NO_FUNDS)
  const decision = decisionOn(resolved)
  const deferred = outcome === null ? null : deferredBy(outcome, decision, feed, deferrals)
  return { decision: deferred === null ? decision : decisionOn(null), deferred }
}

interface AuctionResult {
  readonly decision: BatchDecision
  readonly basis: BatchBasis | null
}

/** Writes the result, if there is anything to write. Returns the batch's number; null if nothing was matched. */
async function write(
  spec: MarketSpec,
  transaction: MarketTransaction,
  { feed, seq }: MarketView,
  { decision, basis }: AuctionResult,
): Promise<number | null> {
  const { overdue, cancels, matched } = decision
  if (overdue.length + cancels.length === 0 && matched === null) return null

  const [orders, slots] = await Promise.all([
    transaction.orders([...affectedOrders(decision, feed)].map((seq) => feed.idOf(seq))),
    transaction.slots(new Set(matched?.positions.keys())),
  ])
  const { lastBatchId, now } = transaction.snapshot
  const batchId = lastBatchId + 1
  const terms = { asOf: basis?.asOf ?? now, oracle: basis?.report ?? null }
  await transaction.save(planBatch({ spec, ...terms, at: now, head: seq, batchId, decision, orders, slots }))
  return matched === null ? null : batchId
}
