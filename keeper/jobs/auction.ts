/** One turn of a market's auction: read the log, decide, write. What it remembers is thrown away after any error. */
import { clearAndMatch, type Outcome } from '../../domain/batch.ts'
import { decide, planBatch, touchedBy } from '../../domain/batch-plan.ts'
import type { Book } from '../../domain/book.ts'
import { overdue } from '../../domain/candidates.ts'
import type { Cancel } from '../../domain/clearing.ts'
import type { MarketSpec } from '../../domain/market.ts'
import { mayAuction, observe, type Pace, UNKNOWN_PACE } from '../../domain/pipeline.ts'
import { FLAT, type Position } from '../../domain/position.ts'
import { isUsable, type ReportRules } from '../../domain/report.ts'
import type { OracleReport } from '../../domain/settlement.ts'
import { type FundingIndex, type Millis, maxOf, type Quote, type UserId } from '../../domain/units.ts'
import { catchUp, isIdle, type MarketView } from '../market-view.ts'
import type { AuctionStore, Clock, Fence, Log, Metrics, Peek, Reached, Turn } from '../ports.ts'

export interface AuctionPorts {
  readonly store: AuctionStore
  readonly clock: Clock
  readonly reached: Reached
  readonly metrics: Metrics
  readonly log: Log
  /** Tells the market's settlement that there is work. Losing this loses nothing. */
  readonly wake: (batchId: number) => void
}

export interface Auction {
  /** The batch it made, if any. */
  turn(fence: Fence): Promise<number | null>
  /** The book as of the last turn; null before the first and after an error. */
  book(): Book | null
  forget(): void
}

/** No rate has been set in any market yet: the index stands where it began. */
const FUNDING_INDEX = 0n as FundingIndex
const NO_FUNDS = { free: 0n as Quote, reserved: 0n as Quote }

export function createAuction(ports: AuctionPorts, spec: MarketSpec, rules: ReportRules): Auction {
  let view: MarketView | null = null
  let pace: Pace = UNKNOWN_PACE

  async function turn(fence: Fence): Promise<number | null> {
    const before = view
    view = null
    const peek = await ports.store.peek(spec.marketId)
    const started = ports.clock.now()
    pace = observe(pace, peek.backlog, started)
    if (before !== null && isIdle(before, peek, maxOf(started, peek.lastAsOf))) {
      view = before
      return null
    }
    const work = (open: Turn) => runTurn(ports, { spec, rules, pace }, open, before)
    const done = await ports.store.turn(spec.marketId, fence, work)
    view = done.view
    ports.metrics.turn(spec.marketId, (ports.clock.now() - started) / 1000)
    if (done.batchId === null) return null
    ports.reached('after-batch-commit')
    ports.wake(done.batchId)
    return done.batchId
  }

  return {
    turn,
    book: () => view?.feed.book ?? null,
    forget: () => {
      view = null
    },
  }
}

interface Terms {
  readonly spec: MarketSpec
  readonly rules: ReportRules
  readonly pace: Pace
}

async function runTurn(ports: AuctionPorts, terms: Terms, turn: Turn, before: MarketView | null) {
  const { spec } = terms
  const { peek } = turn
  const { feed, positions } = await catchUp(spec, turn, before)
  const now = ports.clock.now()
  const asOf = maxOf(now, peek.lastAsOf)
  const due = overdue(feed.book, asOf)
  const report = usableReport(terms, peek, asOf, now)
  const outcome = report === null ? null : auction(spec, feed.book, positions, report, asOf, peek)
  for (const { orders, why } of outcome?.refused ?? []) {
    const details = { market_id: spec.marketId, orders: orders.map((seq) => feed.idOf(seq)), why }
    ports.log.error(details, 'the auction matched what the chain would refuse: left out')
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

/** The report to clear on; null where the market may not auction now. */
function usableReport({ rules, pace }: Terms, peek: Peek, asOf: Millis, now: Millis): OracleReport | null {
  const { report, usedReport, mode, backlog } = peek
  if (mode !== 'open' || report === null || !mayAuction(backlog, pace, now)) return null
  return isUsable(report, usedReport, rules, asOf) ? report : null
}

const auction = (
  spec: MarketSpec,
  book: Book,
  positions: ReadonlyMap<UserId, Position>,
  report: OracleReport,
  asOf: Millis,
  { lastPrice }: Peek,
): Outcome =>
  clearAndMatch({
    ...{ spec, book, asOf },
    positions: (account) => positions.get(account) ?? FLAT,
    fundingIndex: FUNDING_INDEX,
    oracle: report.price,
    reference: lastPrice,
  })

interface Found {
  readonly due: readonly Cancel[]
  readonly outcome: Outcome | null
  readonly report: OracleReport | null
  readonly asOf: Millis
}

/** Writes what was found, if anything. Returns the batch's number. */
async function write(
  spec: MarketSpec,
  turn: Turn,
  { feed }: MarketView,
  found: Found,
): Promise<number | null> {
  const { due, outcome, report, asOf } = found
  const ends = [...due, ...(outcome?.clearing.cancels ?? [])]
  const matched = outcome?.matched ?? null
  if (ends.length === 0 && matched === null) return null

  const traders = new Set(matched?.positions.keys())
  const ended = ends.map(({ seq }) => feed.book.get(seq)?.account as UserId)
  const funds = await turn.lockFunds(new Set([...traders, ...ended]))
  const decision = decide(spec, feed.book, due, outcome, (account) => funds.get(account) ?? NO_FUNDS)
  const orders = await turn.orders([...touchedBy(decision, feed.book)].map((seq) => feed.idOf(seq)))
  const slots = await turn.slots(traders)
  const batchId = turn.peek.lastBatchId + 1
  await turn.save(planBatch({ spec, asOf, batchId, oracle: report, decision, orders, slots }))
  return matched === null ? null : batchId
}
