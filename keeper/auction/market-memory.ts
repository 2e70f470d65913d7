/** What an auction remembers of its market between turns: the book, fed from the market's log, and the matched positions. */

import { INITIAL_PACE, mayAuction, type SettlementPace } from '../../domain/auction/settlement-pace.ts'
import { MarketBook } from '../../domain/book/market-book.ts'
import type { MarketRow } from '../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Position } from '../../domain/positions/position.ts'
import { isReportUsable, type ReportRules } from '../../domain/prices/report.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import { type Millis, maxOf, type UserId } from '../../domain/units.ts'
import type { MarketSnapshot, MarketTransaction } from './ports.ts'

/** What the jobs of one market share. */
export interface Desk {
  /** Null before the first turn, while one runs, and after an error. */
  view: MarketView | null
  pace: SettlementPace
  /** What the market's contract accepts as an oracle report; null while nobody could ask it. */
  rules: ReportRules | null
}

export const createDesk = (rules: ReportRules | null = null): Desk => ({
  view: null,
  pace: INITIAL_PACE,
  rules,
})

export interface MarketView {
  readonly feed: MarketBook
  /** Every log row up to this one is in the book. */
  readonly seq: number
  readonly positions: Map<UserId, Position>
  /** What the last auction ran on to its end; null where none did. */
  readonly cleared: Pick<MarketSnapshot, 'report' | 'mode'> | null
}

/** Brings the book and the matched positions to the head that the turn has locked. Loads them anew where the log does not tell all. */
export async function catchUp(
  spec: MarketSpec,
  turn: MarketTransaction,
  before: MarketView | null,
): Promise<Pick<MarketView, 'feed' | 'positions'>> {
  const rows = before === null ? null : await turn.rowsAfter(before.seq)
  const isFed =
    before !== null && rows?.every(({ seq, row }) => before.feed.apply(seq, row as MarketRow) === 'applied')
  if (!isFed) {
    const { orders, positions } = await turn.loadBook()
    return { feed: new MarketBook(spec, orders), positions: new Map(positions) }
  }
  const changed = await turn.matchedPositions(before.feed.drainChangedAccounts())
  for (const [account, position] of changed) before.positions.set(account, position)
  return before
}

/** The report to run a batch on now; null where the market may not have one. */
export function usableReport({ rules, pace }: Desk, peek: MarketSnapshot, now: Millis): OracleReport | null {
  const { report, usedReport, mode, backlog, lastAsOf } = peek
  if (mode !== 'open' || report === null || rules === null || !mayAuction(backlog, pace, now)) return null
  return isReportUsable(report, usedReport, rules, maxOf(now, lastAsOf)) ? report : null
}

/** Nothing can have changed since the last auction: no row, no price, nothing that waits, nothing that expires. */
export function isIdle({ feed, seq, cleared }: MarketView, peek: MarketSnapshot, asOf: Millis): boolean {
  const { book } = feed
  const waits = book.marketOrders('LONG').length + book.marketOrders('SHORT').length > 0
  const sameReport = cleared?.report?.observedAt === peek.report?.observedAt
  return (
    seq === peek.head &&
    cleared?.mode === peek.mode &&
    sameReport &&
    !waits &&
    feed.overdue(asOf).length === 0
  )
}
