/**
 * Close of a market at its expiry or at the scheduled mode settling, its final report, and the times of
 * finalization and freeze.
 * Twin of the contract's EndingLib.
 */
import type { MarketMode, MarketSpec } from '../market/market.ts'
import { ACTION_AHEAD } from '../settlement/durations.ts'
import { type Millis, minOf, type Price } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'

/** Time after the close for the first final report. Afterwards any account can freeze the market. */
export const FINAL_REPORT_TIME = 604_800_000 as Millis

/** The final report in force. */
export interface FinalReport {
  readonly price: Price
  readonly observedAt: Millis
  /** Block time of the first final report; the dispute window starts here. */
  readonly reportedAt: Millis
}

/** Ending terms in force. */
export interface Ending {
  /** 0 for a perpetual. */
  readonly expiresAt: Millis
  /** Time of the scheduled mode settling; 0 if none is scheduled. */
  readonly settlingAt: Millis
  readonly disputeWindow: Millis
  /** Null until a report is submitted. */
  readonly report: FinalReport | null
}

/** Times that decide when a market closes. */
export type Closing = Pick<Ending, 'expiresAt' | 'settlingAt'>

/** Ending terms at the listing. */
export const listedEnding = ({ expiresAt, disputeWindow }: MarketSpec): Ending => ({
  ...{ expiresAt, settlingAt: 0 as Millis, disputeWindow, report: null },
})

/** Close time: the expiry or the time of the mode settling, whichever is earlier; null if neither is set. */
export function closesAt({ expiresAt, settlingAt }: Closing): Millis | null {
  if (expiresAt === 0) return settlingAt === 0 ? null : settlingAt
  return settlingAt === 0 ? expiresAt : minOf(expiresAt, settlingAt)
}

export const isClosed = (ending: Closing, time: Millis): boolean => {
  const close = closesAt(ending)
  return close !== null && time >= close
}

/** Mode in force: a closed market is in mode settling, regardless of the stored mode. */
export const modeAt = (mode: MarketMode, ending: Closing, asOf: Millis): MarketMode =>
  mode !== 'settled' && isClosed(ending, asOf) ? 'settling' : mode

/** Whether trading has ended, so that the market's orders end. */
export const isOver = (mode: MarketMode): boolean => mode === 'settling' || mode === 'settled'

/**
 * Last time for a final report; null if no close is set. Before a report, FINAL_REPORT_TIME after the close; then the
 * end of the dispute window. Freezing or finalizing is possible afterwards.
 */
export function reportableUntil(ending: Ending): Millis | null {
  if (ending.report !== null) return (ending.report.reportedAt + ending.disputeWindow) as Millis
  const close = closesAt(ending)
  return close === null ? null : ((close + FINAL_REPORT_TIME) as Millis)
}

export type FinalReportRefusal =
  /** The market is not closed. */
  | 'MARKET_NOT_CLOSED'
  /** The time of a first report, or the dispute window, is over. */
  | 'LATE'
  /** The observation precedes the close. */
  | 'EARLY'
  /** The observation is too far ahead of block time. */
  | 'AHEAD'
  /** The report in force takes precedence. */
  | 'SUPERSEDED'

/**
 * Whether a new report precedes: the newest of a final feed, or the nearest to a perpetual's close. At equal times
 * another price precedes, because its round may supersede one of the same second.
 */
function supersedes(
  kind: MarketSpec['kind'],
  last: FinalReport,
  { price, observedAt }: Pick<FinalReport, 'price' | 'observedAt'>,
): boolean {
  if (kind !== 'perpetual') return observedAt > last.observedAt
  return observedAt < last.observedAt || (observedAt === last.observedAt && price !== last.price)
}

/**
 * The ending with the new report, or the reason why the contract rejects its time. The contract also checks
 * price and proof.
 */
export function submitFinalReport(
  { kind }: Pick<MarketSpec, 'kind'>,
  ending: Ending,
  { price, observedAt }: Pick<FinalReport, 'price' | 'observedAt'>,
  blockTime: Millis,
): Verdict<Ending, FinalReportRefusal> {
  const [close, until, last] = [closesAt(ending), reportableUntil(ending), ending.report]
  if (close === null || until === null || blockTime < close) return refuse('MARKET_NOT_CLOSED')
  if (blockTime > until) return refuse('LATE')
  if (observedAt < close) return refuse('EARLY')
  if (observedAt > blockTime + ACTION_AHEAD) return refuse('AHEAD')
  if (last !== null) {
    if (!supersedes(kind, last, { price, observedAt })) return refuse('SUPERSEDED')
  }
  const reportedAt = last?.reportedAt ?? blockTime
  return accept({ ...ending, report: { price, observedAt, reportedAt } })
}

/** Whether any account can end the market at its final price. */
export const isFinalizable = (ending: Ending, blockTime: Millis): boolean =>
  ending.report !== null && blockTime > (reportableUntil(ending) as Millis)

/** Whether any account can freeze the market because no final report came in time. */
export const isUnreported = (ending: Ending, blockTime: Millis): boolean => {
  const until = reportableUntil(ending)
  return ending.report === null && until !== null && blockTime > until
}
