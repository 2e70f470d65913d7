/** The table of listed markets. */
import type { ColumnType, Generated, JSONColumnType } from 'kysely'
import type { StoredEnd, StoredFinalReport } from '../domain/journal/ending-rows.ts'
import type { StoredValue } from '../domain/journal/journal-row.ts'
import type { StoredFeePeriod } from '../domain/market/fee-periods.ts'
import type { MarketKind, MarketMode } from '../domain/market/market.ts'
import type { StoredTerms } from '../domain/market/stored-terms.ts'
import type { CalendarName } from '../domain/market/trading-calendar.ts'
import type { ProtectionColumns } from './price-protection.ts'

/**
 * A listed market: its specification, its mode and close, its price protection, and its latest batch and action.
 * Written by: engine.
 */
export interface MarketsTable extends ProtectionColumns {
  market_id: number
  symbol: string
  kind: MarketKind
  trader: string
  spec: JSONColumnType<Record<string, StoredValue>>
  /** The exchange's own restriction; the contract's mode is in `terms`. */
  mode: Generated<MarketMode>
  /** Parameters and mode on the chain, with announced changes; null: as listed. Written by the indexer. */
  terms: ColumnType<StoredTerms | null, string | null | undefined, string | null>
  /** In which the market charges other rates than the highest. Written by the owner. */
  fee_periods: ColumnType<StoredFeePeriod[], string | undefined, string>
  /** The taker rate at which the market's reservations are computed. */
  reserved_fee: Generated<bigint>
  /** While they are computed again at another rate: the account up to which that is done. */
  reserving_after: number | null
  /** In force on the chain, in milliseconds; 0: not set. Written by the indexer. */
  expires_at: Generated<number>
  settling_at: Generated<number>
  dispute_window: Generated<number>
  /** The report of the final price in force; null until there is one. Written by the indexer. */
  final_report: ColumnType<StoredFinalReport | null, string | null | undefined, string | null>
  /** How the market has ended; null until then. Written by the indexer. */
  ended: ColumnType<StoredEnd | null, string | null | undefined, string | null>
  /** The account that inherits positions here, and the highest notional that it may have; null and 0: none. Written by the indexer. */
  backstop: string | null
  backstop_cap: Generated<bigint>
  last_batch_id: Generated<number>
  /** The head of the market's journal in the auction of that batch: orders up to it stood there. */
  last_batch_head: Generated<number>
  last_action_id: Generated<number>
  last_as_of: Generated<number>
  last_price: number | null
  last_price_at: number | null
  /** The mark in wei that is held until every order that it triggers has been triggered; null if the mark moves. */
  held_mark: bigint | null
  /** The notional at which the premium is measured; null: by the rule. Written by the owner. */
  impact_notional: ColumnType<bigint | null, bigint | null | undefined, bigint | null>
  /** The trading calendar of the underlying; null if it trades around the clock. */
  calendar: CalendarName | null
}

/**
 * The final price of a market as its operators have stated it; the one with the highest number counts. Written by: no process. The owner
 * adds to it with `npm run cb -- ops market final-price`.
 */
export interface FinalPricesTable {
  market_id: number
  number: number
  price: bigint
  stated_by: string
  reason: string
  stated_at: number
}
