/** A market's changing terms in the table `markets`: parameters, mode and close as the chain has them, with announced changes, and fees. */
import { fromStoredFees, type StoredFeePeriod } from '../domain/market/fee-periods.ts'
import type { MarketTerms } from '../domain/market/in-force.ts'
import type { MarketMode, MarketSpec } from '../domain/market/market.ts'
import { fromStoredSpec } from '../domain/market/stored-spec.ts'
import { fromStoredTerms, type StoredTerms } from '../domain/market/stored-terms.ts'
import type { Rate } from '../domain/units.ts'
import type { Db } from './client.ts'
import { type ClosingColumns, toClosing } from './markets.ts'

export interface TermsColumns extends ClosingColumns {
  readonly mode: MarketMode
  readonly terms: StoredTerms | null
  readonly fee_periods: readonly StoredFeePeriod[]
  readonly reserved_fee: bigint
}

export const TERMS_COLUMNS = [
  ...(['mode', 'expires_at', 'settling_at', 'terms', 'fee_periods', 'reserved_fee'] as const),
] as const

/** SQL of the columns of the table `markets`, under the name `m`. */
export const TERMS_SQL = TERMS_COLUMNS.map((column) => `m.${column}`).join(', ')

export const toMarketTerms = (row: TermsColumns, listed: MarketSpec): MarketTerms => ({
  mode: row.mode,
  chain: fromStoredTerms(row.terms, listed),
  closing: toClosing(row),
  fees: fromStoredFees(row.fee_periods),
  reservedFee: row.reserved_fee as Rate,
})

/** A market with the parameters that it was listed with, and what has changed since or is announced. */
export interface ListedMarket {
  readonly listed: MarketSpec
  readonly terms: MarketTerms
}

export async function loadListedMarkets(db: Db): Promise<ListedMarket[]> {
  const rows = await db
    .selectFrom('markets')
    .select(['spec', ...TERMS_COLUMNS])
    .orderBy('market_id')
    .execute()
  return rows.map((row) => {
    const listed = fromStoredSpec(row.spec)
    return { listed, terms: toMarketTerms(row, listed) }
  })
}
