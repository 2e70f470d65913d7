/** Market journal rows about a market's end, and the columns of `markets` that store it. */
import type { Wei } from './wei.ts'

interface MinedRow {
  readonly rollback: boolean
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/** Report of the final price in force on chain. */
export interface StoredFinalReport {
  readonly price: Wei
  readonly observed_at: number
  /** Block time of the first final report; the dispute window starts here. */
  readonly reported_at: number
}

/** A final report was submitted: the first report, or a replacement. */
export interface FinalPriceReported extends MinedRow {
  readonly kind: 'final_price_reported'
  readonly report: StoredFinalReport
  readonly before: StoredFinalReport | null
}

/** How a market ended, and the known state of its pool. */
export interface StoredEnd {
  readonly how: 'frozen' | 'finalized'
  readonly price: Wei
  readonly price_at: number
  /** Block time of the end; the window for insolvency reports starts here. */
  readonly ended_at: number
  /** Pool of this market at the bank, at the end. */
  readonly pool: Wei
  /** Sum of the reported deficits. */
  readonly deficit: Wei
  /** Claims pay `pool / owed` of their value; null until the first claim. */
  readonly haircut: { readonly pool: Wei; readonly owed: Wei } | null
}

/** The first claim fixed the haircut of all claims. */
export interface HaircutFixedRow extends MinedRow {
  readonly kind: 'haircut_fixed'
  readonly pool: Wei
  readonly owed: Wei
}

export type EndingRow = FinalPriceReported | HaircutFixedRow
