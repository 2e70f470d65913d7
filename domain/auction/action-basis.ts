/** Decides whether a market may run a batch or liquidate now, and on which report and terms. */
import type { Book } from '../book/book.ts'
import type { LiveBook } from '../book/live-book.ts'
import { keyOfTerms, reportRulesOf, type TermsInForce, termsAt } from '../market/in-force.ts'
import type { MarketSpec } from '../market/market.ts'
import { isReportUsable, type ReportRules } from '../prices/report.ts'
import { isOver } from '../risk/ending.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import type { Millis, Seq } from '../units.ts'
import { nextAsOf } from './as-of.ts'
import type { Cancel } from './clearing.ts'
import type { Deferrals } from './deferral.ts'
import type { MarketSnapshot } from './market-snapshot.ts'
import { mayAuction, type SettlementPace } from './settlement-pace.ts'

/**
 * Whether all reservations use the highest taker rate in force. If not, the auction recomputes them first.
 */
export const areReserved = (
  { terms, reservingAfter }: Pick<MarketSnapshot, 'terms' | 'reservingAfter'>,
  { spec }: TermsInForce,
): boolean => reservingAfter === null && terms.reservedFee === spec.takerFee

/** Basis of a batch: the time at which the contract evaluates it, and the oracle report. */
export interface BatchBasis {
  readonly asOf: Millis
  readonly report: OracleReport
  /** Terms in force at `asOf`. */
  readonly terms: TermsInForce
  readonly matching: Matching
}

/**
 * Orders that a batch may match. `forced`: each step has a forced order on at least one side, as the
 * contract requires in mode cancel-only.
 * `none`: single actions only.
 */
export type Matching = 'all' | 'forced' | 'none'

/** Orders that may match; null if the mode allows no liquidation. */
function matchingAt({ terms }: MarketSnapshot, { mode }: TermsInForce): Matching | null {
  if (mode === 'open') return 'all'
  if (mode !== 'cancel_only') return null
  // After a mismatch, or reverts without a culprit, the exchange restricts an open market itself. A forced order would
  // settle through the path that has just failed.
  return terms.mode === 'open' ? 'forced' : 'none'
}

/** Inputs besides the snapshot that decide whether an action would be accepted. */
export interface ActionLimits {
  readonly pace: SettlementPace
  /** The contract's report rules; null until they are fetched. */
  readonly rules: ReportRules | null
}

/**
 * Basis of a batch of all orders; null if no such batch can run now. `headTime`: time of the chain head; null
 * while no node responds.
 */
export function batchBasis(...market: Parameters<typeof actionBasis>): BatchBasis | null {
  const basis = actionBasis(...market)
  return basis?.matching === 'all' ? basis : null
}

/** Basis of an action; null if the market must neither run a batch nor liquidate now. */
export function actionBasis(
  spec: MarketSpec,
  { rules, pace }: ActionLimits,
  snapshot: MarketSnapshot,
  headTime: Millis | null,
): BatchBasis | null {
  const { now, report, usedReport, backlog } = snapshot
  if (report === null || !mayAuction(backlog, pace, now)) return null
  const asOf = nextAsOf({ ...snapshot, headTime })
  if (asOf === null) return null
  const terms = termsAt(spec, snapshot.terms, asOf)
  const matching = matchingAt(snapshot, terms)
  if (matching === null || !areReserved(snapshot, terms)) return null
  const inForce = reportRulesOf(terms, rules)
  return inForce !== null && isReportUsable(report, usedReport, inForce, asOf)
    ? { asOf, report, terms, matching }
    : null
}

/**
 * Orders that end without a command, at most `most`: orders beyond their time, or all orders of a closed market.
 */
export const dueOrders = (
  live: LiveBook,
  { mode, spec }: TermsInForce,
  now: Millis,
  most: number,
): readonly Cancel[] => (isOver(mode) ? live.closed(most) : live.overdue(now, most, spec.maxLeverage))

/** Report and terms (`keyOfTerms`) of a completed auction. */
export type ClearedBasis = Pick<MarketSnapshot, 'report'> & { readonly terms: string }

/** Facts about a market's past auctions. */
export interface AuctionView {
  readonly feed: LiveBook
  /** The book contains every journal row up to this sequence. */
  readonly seq: Seq
  /** Journal head at the market's last known auction: orders up to it were in the book. */
  readonly standingSeq: Seq
  /** Basis of the last completed auction; null if there is none. */
  readonly cleared: ClearedBasis | null
}

/**
 * True if an auction would change nothing: no order is due to end, and no row or change of terms followed the last
 * auction. A new report alone changes nothing if the orders do not cross.
 */
export function isIdle(
  spec: MarketSpec,
  { feed, seq, standingSeq, cleared }: AuctionView,
  { waiting }: Pick<Deferrals, 'waiting'>,
  snapshot: MarketSnapshot,
): boolean {
  const { book } = feed
  const terms = termsAt(spec, snapshot.terms, snapshot.now)
  const endsNone = dueOrders(feed, terms, snapshot.now, 1).length === 0
  if (isOver(terms.mode)) return seq === snapshot.head && endsNone
  const sameReport = cleared?.report?.observedAt === snapshot.report?.observedAt
  return (
    seq === snapshot.head &&
    standingSeq === seq &&
    cleared?.terms === keyOfTerms(terms) &&
    areReserved(snapshot, terms) &&
    waiting.size === 0 &&
    endsNone &&
    !hasMarketOrders(book) &&
    !book.hasIoc &&
    (sameReport || !isCrossed(book))
  )
}

const hasMarketOrders = (book: Book): boolean =>
  book.marketOrders('LONG').length + book.marketOrders('SHORT').length > 0

function isCrossed(book: Book): boolean {
  const [bid, ask] = [book.best('LONG'), book.best('SHORT')]
  return bid !== undefined && ask !== undefined && bid.price >= ask.price
}
