/** One turn of a market's auction: read the log, decide, write. The book lives between turns and is thrown away after any error. */
import {
  clearAndMatch,
  type Decision,
  decide,
  type Outcome,
  planBatch,
  touchedBy,
} from '../../domain/batch.ts'
import type { Book } from '../../domain/book.ts'
import { BookFeed } from '../../domain/book-feed.ts'
import { overdue } from '../../domain/candidates.ts'
import type { Cancel } from '../../domain/clearing.ts'
import type { MarketRow } from '../../domain/log.ts'
import type { MarketSpec } from '../../domain/market.ts'
import { mayAuction, observe, type Pace, UNKNOWN_PACE } from '../../domain/pipeline.ts'
import { FLAT, type Position } from '../../domain/position.ts'
import { isUsable, type ReportRules } from '../../domain/report.ts'
import type { OracleReport } from '../../domain/settlement.ts'
import { type FundingIndex, type Millis, maxOf, type UserId } from '../../domain/units.ts'
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

/** What the market looked like after the last turn. */
interface View {
  readonly feed: BookFeed
  readonly seq: number
  readonly positions: Map<UserId, Position>
  /** The last auction ran to its end on these; null where none did. */
  readonly cleared: Pick<Peek, 'report' | 'mode'> | null
}

export interface Auction {
  /** The batch it made, if any. */
  turn(fence: Fence): Promise<number | null>
  /** The book as of the last turn; null before the first and after an error. */
  book(): Book | null
  forget(): void
}

/** No rate has been set in this market yet: the index stands where it began. */
const FUNDING_INDEX = 0n as FundingIndex

export function createAuction(ports: AuctionPorts, spec: MarketSpec, rules: ReportRules): Auction {
  let view: View | null = null
  let pace: Pace = UNKNOWN_PACE

  async function turn(fence: Fence): Promise<number | null> {
    const before = view
    view = null
    const peek = await ports.store.peek(spec.marketId)
    const started = ports.clock.now()
    pace = observe(pace, peek.backlog, started)
    if (before !== null && isIdle(before, peek, asOfOf(peek, started))) {
      view = before
      return null
    }
    const done = await ports.store.turn(spec.marketId, fence, (open) =>
      runTurn(ports, { spec, rules, pace }, open, before),
    )
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

const asOfOf = (peek: Peek, now: Millis): Millis => maxOf(now, peek.lastAsOf)

/** Nothing can have changed since the last auction: no row, no price, nothing that waits, nothing that expires. */
function isIdle({ feed: { book }, seq, cleared }: View, peek: Peek, asOf: Millis): boolean {
  const waits = book.markets('LONG').length + book.markets('SHORT').length > 0
  const sameReport = cleared?.report?.observedAt === peek.report?.observedAt
  return (
    seq === peek.head &&
    cleared?.mode === peek.mode &&
    sameReport &&
    !waits &&
    book.expired(asOf).length === 0
  )
}

interface Terms {
  readonly spec: MarketSpec
  readonly rules: ReportRules
  readonly pace: Pace
}

async function runTurn(
  ports: AuctionPorts,
  terms: Terms,
  turn: Turn,
  before: View | null,
): Promise<{ readonly view: View; readonly batchId: number | null }> {
  const { spec } = terms
  const { peek } = turn
  const { feed, positions } = await catchUp(spec, turn, before)
  const now = ports.clock.now()
  const asOf = asOfOf(peek, now)
  const due = overdue(feed.book, asOf)
  const report = usableReport(terms, peek, asOf, now)
  const outcome = report === null ? null : auction(spec, feed.book, positions, report, asOf, peek)
  for (const { orders, why } of outcome?.refused ?? []) {
    const details = { market_id: spec.marketId, orders: orders.map((seq) => feed.idOf(seq)), why }
    ports.log.error(details, 'the auction matched what the chain would refuse: left out')
  }
  const batchId = await write(spec, turn, { feed, due, outcome, report, asOf })
  const { parts, clearing } = outcome?.matched ?? { parts: [], clearing: null }
  if (clearing !== null) ports.metrics.batch(spec.marketId, clearing.fills.length, parts.length)
  const cleared = outcome === null ? null : { report: peek.report, mode: peek.mode }
  return { view: { feed, seq: peek.head, positions, cleared }, batchId }
}

/** Brings the book and the matched positions to the locked head. */
async function catchUp(
  spec: MarketSpec,
  turn: Turn,
  before: View | null,
): Promise<Pick<View, 'feed' | 'positions'>> {
  const rows = before === null ? null : await turn.rowsAfter(before.seq)
  const isFed =
    before !== null && rows?.every(({ seq, row }) => before.feed.apply(seq, row as MarketRow) === 'applied')
  if (!isFed) {
    const { orders, positions } = await turn.loadBook()
    return { feed: new BookFeed(spec, orders), positions: new Map(positions) }
  }
  const changed = await turn.matchedPositions(before.feed.takeTouched())
  for (const [account, position] of changed) before.positions.set(account, position)
  return before
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
    spec,
    book,
    positions: (account) => positions.get(account) ?? FLAT,
    fundingIndex: FUNDING_INDEX,
    oracle: report.price,
    reference: lastPrice,
    asOf,
  })

interface Found {
  readonly feed: BookFeed
  readonly due: readonly Cancel[]
  readonly outcome: Outcome | null
  readonly report: OracleReport | null
  readonly asOf: Millis
}

/** Writes what was found, if anything. Returns the batch's number. */
async function write(spec: MarketSpec, turn: Turn, found: Found): Promise<number | null> {
  const { feed, due, outcome, report, asOf } = found
  const cancels = outcome?.clearing.cancels ?? []
  const matched = outcome?.matched ?? null
  if (due.length + cancels.length === 0 && matched === null) return null

  const filled = new Set(matched?.positions.keys())
  const ended = [...due, ...cancels].map(({ seq }) => feed.book.get(seq)?.account as UserId)
  const funds = await turn.lockFunds(new Set([...filled, ...ended]))
  const fundsOf = (account: UserId) => funds.get(account) ?? { free: 0n, reserved: 0n }
  const decision: Decision = decide(spec, feed.book, due, outcome, fundsOf as Parameters<typeof decide>[4])
  const batchId = turn.peek.lastBatchId + 1
  const plan = planBatch({
    spec,
    asOf,
    batchId,
    oracle: report,
    decision,
    orders: await turn.orders([...touchedBy(decision, feed.book)].map((seq) => feed.idOf(seq))),
    slots: await turn.slots(filled),
  })
  await turn.save(plan)
  return matched === null ? null : batchId
}
