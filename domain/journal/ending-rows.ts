/** Rows of a market's journal about its end, and what `markets` stores of it. */
import type { Wei } from './wei.ts'

interface MinedRow {
  readonly rollback: boolean
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/** The report of the final price in force on the chain. */
export interface StoredFinalReport {
  readonly price: Wei
  readonly observed_at: number
  /** Block time of the first final report, from which the dispute window counts. */
  readonly reported_at: number
}

/** A final report was submitted: the first one, or one that replaces it. */
export interface FinalPriceReported extends MinedRow {
  readonly kind: 'final_price_reported'
  readonly report: StoredFinalReport
  readonly before: StoredFinalReport | null
}

/** How a market has ended, and what is known of its pool. */
export interface StoredEnd {
  readonly how: 'frozen' | 'finalized'
  readonly price: Wei
  readonly price_at: number
  /** Block time, from which the window for reports of insolvent accounts counts. */
  readonly ended_at: number
  /** Of the bank for this market, at the end. */
  readonly pool: Wei
  /** Sum of the deficits that were reported. */
  readonly deficit: Wei
  /** Claims pay `pool / owed` of their value; null until the first claim. */
  readonly haircut: { readonly pool: Wei; readonly owed: Wei } | null
}

/** The first claim has fixed what all claims pay. */
export interface HaircutFixedRow extends MinedRow {
  readonly kind: 'haircut_fixed'
  readonly pool: Wei
  readonly owed: Wei
}

export type EndingRow = FinalPriceReported | HaircutFixedRow
