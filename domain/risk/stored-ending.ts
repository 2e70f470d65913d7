/** The end of a market as JSON and columns: amounts are decimal strings. */
import type { StoredEnd, StoredFinalReport } from '../journal/ending-rows.ts'
import type { Millis, Price } from '../units.ts'
import type { Ending, FinalReport } from './ending.ts'

export interface EndingColumns {
  readonly expires_at: number
  readonly settling_at: number
  readonly dispute_window: number
  readonly final_report: StoredFinalReport | null
  readonly ended: StoredEnd | null
}

const toFinalReport = (stored: StoredFinalReport | null): FinalReport | null =>
  stored && {
    price: BigInt(stored.price) as Price,
    observedAt: stored.observed_at as Millis,
    reportedAt: stored.reported_at as Millis,
  }

export const toEnding = (row: EndingColumns): Ending => ({
  expiresAt: row.expires_at as Millis,
  settlingAt: row.settling_at as Millis,
  disputeWindow: row.dispute_window as Millis,
  report: toFinalReport(row.final_report),
})
