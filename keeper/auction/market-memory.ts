/** What the jobs of a market keep in memory between two auctions: the book, fed from the journal, and the matched positions. */

import { nextAsOf } from '../../domain/auction/as-of.ts'
import type { Cancel } from '../../domain/auction/clearing.ts'
import { type Deferrals, NO_DEFERRALS } from '../../domain/auction/deferral.ts'
import { INITIAL_PACE, mayAuction, type SettlementPace } from '../../domain/auction/settlement-pace.ts'
import type { Book } from '../../domain/book/book.ts'
import { MarketBook } from '../../domain/book/market-book.ts'
import type { MarketRow } from '../../domain/journal/journal-row.ts'
import {
  keyOfTerms,
  reportRulesOf,
  reservingSpec,
  type TermsInForce,
  termsAt,
} from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { isReportUsable, type ReportRules } from '../../domain/prices/report.ts'
import { isOver } from '../../domain/risk/ending.ts'
import { MarketPositions } from '../../domain/risk/market-positions.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import type { Millis, Seq } from '../../domain/units.ts'
import type { MarketSnapshot, MarketTransaction } from './ports.ts'

/** Shared by the mark and the auction of one market. */
export interface MarketMemory {
  /** Null before the first auction, during a transaction, and after an error. */
  view: MarketView | null
  pace: SettlementPace
  /** Accounts that the auction leaves out for a time. Lost with the process: then all take part again. */
  deferrals: Deferrals
  /** The contract's rules for oracle reports; null until they are fetched. */
  rules: ReportRules | null
}

export const createMarketMemory = (rules: ReportRules | null = null): MarketMemory => ({
  view: null,
  pace: INITIAL_PACE,
  deferrals: NO_DEFERRALS,
  rules,
})

export interface MarketView {
  readonly feed: MarketBook
  /** The book contains every journal row up to this one. */
  readonly seq: Seq
  readonly positions: MarketPositions
  /** The head of the journal in the market's last auction that is known: orders up to it stood there. */
  readonly standingSeq: Seq
  /** Report and terms (`keyOfTerms`) of the last completed auction; null if there is none. */
  readonly cleared: (Pick<MarketSnapshot, 'report'> & { readonly terms: string }) | null
}

/**
 * Updates the book and the matched positions to the locked journal head. Orders that a row returned to the book are read from the table,
 * by account. Everything is reloaded if there is no memory, or too many rows.
 */
export async function catchUp(
  spec: MarketSpec,
  transaction: MarketTransaction,
  before: MarketView | null,
): Promise<MarketView> {
  const { head, lastBatchHead, terms } = transaction.snapshot
  const rows = before === null ? null : await transaction.rowsAfter(before.seq)
  // Batches run only while all reservations are computed at the rate that is stored, so it is also the rate of every batch in `rows`.
  const reserving = reservingSpec(spec, terms.reservedFee)
  if (before === null || rows === null) {
    const { orders, positions, liquidating } = await transaction.loadBook()
    return {
      ...{ feed: new MarketBook(reserving, orders, liquidating), positions: new MarketPositions(positions) },
      ...{ seq: head, standingSeq: before?.standingSeq ?? lastBatchHead, cleared: before?.cleared ?? null },
    }
  }
  const { feed, positions } = before
  feed.reserveBy(reserving)
  for (const { seq, row } of rows) feed.apply(seq, row as MarketRow)
  feed.insertAll(await transaction.liveOrders(feed.drainStaleAccounts()))
  const changed = await transaction.matchedPositions(feed.drainChangedAccounts())
  for (const [account, position] of changed) positions.set(account, position)
  return { ...before, seq: head }
}

/** Whether all reservations are computed at the highest taker rate in force: the auction computes them again first. */
export const areReserved = (
  { terms, reservingAfter }: Pick<MarketSnapshot, 'terms' | 'reservingAfter'>,
  { spec }: TermsInForce,
): boolean => reservingAfter === null && terms.reservedFee === spec.takerFee

/** What a batch runs on: the time at which the contract evaluates it, and the oracle report. */
export interface BatchBasis {
  readonly asOf: Millis
  readonly report: OracleReport
  /** In force as of `asOf`. */
  readonly terms: TermsInForce
  readonly matching: Matching
}

/**
 * Which orders a batch may match. `forced`: each step has a forced order on at least one side, as the contract demands in mode cancel-only.
 * `none`: single actions only.
 */
export type Matching = 'all' | 'forced' | 'none'

/**
 * Null if the mode allows no liquidation. After a mismatch or reverts without a culprit the exchange restricts the market itself: then no
 * batch runs, because a forced order would settle by what has just failed.
 */
function matchingAt({ terms }: MarketSnapshot, { mode }: TermsInForce): Matching | null {
  if (mode === 'open') return 'all'
  if (mode !== 'cancel_only') return null
  return terms.mode === 'open' ? 'forced' : 'none'
}

/** Null unless a batch of all orders can run now. `headTime`: of the chain; null while no node responds. */
export function batchBasis(...market: Parameters<typeof actionBasis>): BatchBasis | null {
  const basis = actionBasis(...market)
  return basis?.matching === 'all' ? basis : null
}

/** Null if the market must neither run a batch nor liquidate now. */
export function actionBasis(
  spec: MarketSpec,
  { rules, pace }: MarketMemory,
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

/** The orders that end by themselves, at most `most`: because of time, or all once the market has closed. */
export const dueOrders = (
  feed: MarketBook,
  { mode, spec }: TermsInForce,
  now: Millis,
  most: number,
): readonly Cancel[] => (isOver(mode) ? feed.closed(most) : feed.overdue(now, most, spec.maxLeverage))

/**
 * True if an auction would change nothing: nothing ends by itself, and since the last completed auction there is no new row and no change of
 * the terms. If the orders do not cross, a new report changes nothing either.
 */
export function isIdle(
  spec: MarketSpec,
  { feed, seq, standingSeq, cleared }: MarketView,
  { waiting }: Deferrals,
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
    (sameReport || !isCrossed(book))
  )
}

const hasMarketOrders = (book: Book): boolean =>
  book.marketOrders('LONG').length + book.marketOrders('SHORT').length > 0

function isCrossed(book: Book): boolean {
  const [bid, ask] = [book.best('LONG'), book.best('SHORT')]
  return bid !== undefined && ask !== undefined && bid.price >= ask.price
}

/** The view after `rows` rows that the market's own transaction has appended and that change neither an order nor a position. */
export function afterNeutralRows(view: MarketView, rows: number): MarketView {
  const seq = (view.seq + rows) as Seq
  return { ...view, seq, standingSeq: view.standingSeq === view.seq ? seq : view.standingSeq }
}
