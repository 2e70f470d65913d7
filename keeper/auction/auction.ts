/** One turn of a market's auction: read the log, decide, write. What it remembers is thrown away after any error. */

import type { Fence } from '../../db/fence.ts'
import { type BatchOutcome, clearAndMatch } from '../../domain/auction/batch.ts'
import { affectedOrders, decideBatch, planBatch } from '../../domain/auction/batch-plan.ts'
import type { Cancel } from '../../domain/auction/clearing.ts'
import { updatePace } from '../../domain/auction/settlement-pace.ts'
import type { MarketBook } from '../../domain/book/market-book.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { FLAT, type Position } from '../../domain/positions/position.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import { type FundingIndex, type Millis, maxOf, type Quote, type UserId } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { Metrics } from '../ports.ts'
import { catchUp, type Desk, isIdle, type MarketView, usableReport } from './market-memory.ts'
import type { AuctionStore, MarketSnapshot, MarketTransaction } from './ports.ts'

export interface AuctionPorts {
  readonly store: AuctionStore
  readonly clock: Clock
  readonly killPoint: KillPointHook<'after-batch-commit'>
  readonly metrics: Metrics
  readonly logger: Logger
  /** Tells the market's settlement that there is work. Losing this loses nothing. */
  readonly wake: (batchId: number) => void
}

export interface Auction {
  /** The batch it made, if any. */
  turn(fence: Fence): Promise<number | null>
}

/** No rate has been set in any market yet: the index stands where it began. */
const FUNDING_INDEX = 0n as FundingIndex
const NO_FUNDS = { free: 0n as Quote, reserved: 0n as Quote }

export function createAuction(ports: AuctionPorts, spec: MarketSpec, desk: Desk): Auction {
  async function turn(fence: Fence): Promise<number | null> {
    const before = desk.view
    desk.view = null
    const peek = await ports.store.peek(spec.marketId)
    const started = ports.clock.now()
    desk.pace = updatePace(desk.pace, peek.backlog, started)
    if (before !== null && isIdle(before, peek, maxOf(started, peek.lastAsOf))) {
      desk.view = before
      return null
    }
    const work = (open: MarketTransaction) => runTurn(ports, { spec, desk }, open, before)
    const done = await ports.store.turn(spec.marketId, fence, work)
    desk.view = done.view
    ports.metrics.auction(spec.marketId, (ports.clock.now() - started) / 1000)
    if (done.batchId === null) return null
    ports.killPoint('after-batch-commit')
    ports.wake(done.batchId)
    return done.batchId
  }

  return { turn }
}

interface Terms {
  readonly spec: MarketSpec
  readonly desk: Desk
}

async function runTurn(
  ports: AuctionPorts,
  terms: Terms,
  turn: MarketTransaction,
  before: MarketView | null,
) {
  const { spec } = terms
  const { peek } = turn
  const { feed, positions } = await catchUp(spec, turn, before)
  const now = ports.clock.now()
  const asOf = maxOf(now, peek.lastAsOf)
  const due = feed.overdue(asOf)
  const report = usableReport(terms.desk, peek, now)
  const outcome = report === null ? null : auction(spec, feed, positions, report, asOf, peek)
  for (const { orders, reason } of outcome?.refused ?? []) {
    const details = { market_id: spec.marketId, orders: orders.map((seq) => feed.idOf(seq)), reason }
    ports.logger.error(details, 'the auction matched what the chain would refuse: left out')
  }
  const view: MarketView = {
    feed,
    seq: peek.head,
    positions,
    cleared: outcome === null ? null : { report: peek.report, mode: peek.mode },
  }
  const batchId = await write(spec, turn, view, { due, outcome, report, asOf })
  const matched = outcome?.matched
  if (matched) ports.metrics.batch(spec.marketId, matched.clearing.fills.length, matched.parts.length)
  return { view, batchId }
}

const auction = (
  spec: MarketSpec,
  { book }: MarketBook,
  positions: ReadonlyMap<UserId, Position>,
  report: OracleReport,
  asOf: Millis,
  { lastPrice }: MarketSnapshot,
): BatchOutcome =>
  clearAndMatch({
    ...{ spec, book, asOf },
    positions: (account) => positions.get(account) ?? FLAT,
    fundingIndex: FUNDING_INDEX,
    oracle: report.price,
    reference: lastPrice,
  })

interface Found {
  readonly due: readonly Cancel[]
  readonly outcome: BatchOutcome | null
  readonly report: OracleReport | null
  readonly asOf: Millis
}

/** Writes what was found, if anything. Returns the batch's number. */
async function write(
  spec: MarketSpec,
  turn: MarketTransaction,
  { feed }: MarketView,
  found: Found,
): Promise<number | null> {
  const { due, outcome, report, asOf } = found
  const ends = [...due, ...(outcome?.clearing.cancels ?? [])]
  const matched = outcome?.matched ?? null
  if (ends.length === 0 && matched === null) return null

  const traders = new Set(matched?.positions.keys())
  const ended = ends.map(({ seq }) => feed.get(seq)?.account as UserId)
  const funds = await turn.lockFunds(new Set([...traders, ...ended]))
  const decision = decideBatch(spec, feed, due, outcome, (account) => funds.get(account) ?? NO_FUNDS)
  const orders = await turn.orders([...affectedOrders(decision, feed)].map((seq) => feed.idOf(seq)))
  const slots = await turn.slots(traders)
  const batchId = turn.peek.lastBatchId + 1
  await turn.save(planBatch({ spec, asOf, batchId, oracle: report, decision, orders, slots }))
  return matched === null ? null : batchId
}
