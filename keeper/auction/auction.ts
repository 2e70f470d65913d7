/** One auction of a market: reads the journal, decides, and writes the batch in one transaction. */

import type { Fence } from '../../db/fence.ts'
import { type BatchOutcome, clearAndMatch } from '../../domain/auction/batch.ts'
import { affectedOrders, decideBatch, planBatch } from '../../domain/auction/batch-plan.ts'
import type { Cancel } from '../../domain/auction/clearing.ts'
import { updatePace } from '../../domain/auction/settlement-pace.ts'
import type { MarketBook } from '../../domain/book/market-book.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { scheduleAt } from '../../domain/market/price-protection.ts'
import { FLAT, type Position } from '../../domain/positions/position.ts'
import { fundingIndexAt } from '../../domain/prices/funding-state.ts'
import type { Millis, Quote, Seq, UserId } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { Metrics } from '../ports.ts'
import { MAX_ORDERS_PER_TURN } from '../turn-bound.ts'
import {
  type BatchBasis,
  batchBasis,
  catchUp,
  isIdle,
  type MarketMemory,
  type MarketView,
} from './market-memory.ts'
import type { AuctionStore, MarketSnapshot, MarketTransaction } from './ports.ts'

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

const NO_FUNDS = { free: 0n as Quote, reserved: 0n as Quote }

export function createAuction(ports: AuctionPorts, spec: MarketSpec, memory: MarketMemory): Auction {
  async function run(fence: Fence): Promise<number | null> {
    const before = memory.view
    memory.view = null
    const snapshot = await ports.store.snapshot(spec.marketId)
    const started = ports.clock.now()
    memory.pace = updatePace(memory.pace, snapshot.backlog, snapshot.now)
    if (before !== null && isIdle(before, snapshot)) {
      memory.view = before
      return null
    }
    const work = (transaction: MarketTransaction) => runAuction(ports, { spec, memory }, transaction, before)
    const done = await ports.store.transaction(spec.marketId, fence, work)
    memory.view = done.view
    ports.metrics.auction(spec.marketId, (ports.clock.now() - started) / 1000)
    if (done.batchId === null) return null
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

async function runAuction(
  ports: AuctionPorts,
  scope: AuctionScope,
  transaction: MarketTransaction,
  before: MarketView | null,
) {
  const { spec } = scope
  const { snapshot } = transaction
  const { feed, positions } = await catchUp(spec, transaction, before)
  const due = feed.overdue(snapshot.now, MAX_ORDERS_PER_TURN)
  const basis = batchBasis(scope.memory, snapshot, ports.headTime())
  const standingSeq = before?.standingSeq ?? snapshot.lastBatchHead
  const outcome =
    basis === null ? null : auction(spec, feed, positions, basis, { snapshot, standingSeq, due })
  for (const { orders, reason } of outcome?.refused ?? []) {
    const details = { market_id: spec.marketId, order_ids: orders.map((seq) => feed.idOf(seq)), reason }
    ports.logger.error(details, 'orders excluded from the batch: the contract would reject them')
  }
  const view: MarketView = {
    feed,
    seq: snapshot.head,
    positions,
    standingSeq: outcome === null ? standingSeq : snapshot.head,
    cleared: outcome === null ? null : { report: snapshot.report, mode: snapshot.mode },
  }
  const batchId = await write(spec, transaction, view, { due, outcome, basis })
  const matched = outcome?.matched
  if (matched) ports.metrics.batch(spec.marketId, matched.clearing.fills.length, matched.parts.length)
  return { view, batchId }
}

const auction = (
  spec: MarketSpec,
  { book }: MarketBook,
  positions: ReadonlyMap<UserId, Position>,
  { report, asOf }: BatchBasis,
  {
    snapshot,
    standingSeq,
    due,
  }: { readonly snapshot: MarketSnapshot; readonly standingSeq: Seq; readonly due: readonly Cancel[] },
): BatchOutcome =>
  clearAndMatch({
    ...{ spec, book, asOf, standingSeq },
    priceProtection: scheduleAt(snapshot.priceProtection, asOf).inForce,
    positions: (account) => positions.get(account) ?? FLAT,
    fundingIndex: fundingIndexAt(snapshot.funding, asOf),
    oracle: report.price,
    excluded: {
      // Their positions are not known until the actions that touch them are mined.
      accounts: snapshot.touched,
      // They end now, and some are alive at `asOf`, which can be earlier.
      orders: new Set(due.map(({ seq }) => seq)),
    },
  })

interface AuctionResult {
  readonly due: readonly Cancel[]
  readonly outcome: BatchOutcome | null
  readonly basis: BatchBasis | null
}

/** Writes the result, if there is anything to write. Returns the batch's number; null if nothing was matched. */
async function write(
  spec: MarketSpec,
  transaction: MarketTransaction,
  { feed, seq }: MarketView,
  result: AuctionResult,
): Promise<number | null> {
  const { due, outcome, basis } = result
  const ends = [...due, ...(outcome?.clearing.cancels ?? [])]
  const matched = outcome?.matched ?? null
  if (ends.length === 0 && matched === null) return null

  const traders = new Set(matched?.positions.keys())
  const ended = ends.map(({ seq }) => feed.get(seq)?.account as UserId)
  const funds = await transaction.lockFunds(new Set([...traders, ...ended]))
  const decision = decideBatch(spec, feed, due, outcome, (account) => funds.get(account) ?? NO_FUNDS)
  const orders = await transaction.orders([...affectedOrders(decision, feed)].map((seq) => feed.idOf(seq)))
  const slots = await transaction.slots(traders)
  const { lastBatchId, now } = transaction.snapshot
  const batchId = lastBatchId + 1
  const terms = { asOf: basis?.asOf ?? now, oracle: basis?.report ?? null }
  await transaction.save(planBatch({ spec, ...terms, at: now, head: seq, batchId, decision, orders, slots }))
  return matched === null ? null : batchId
}
