/** Mined funding updates in the read model. */
import { type Selectable, sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { ReadFundingRatesTable } from '../../db/read-schema.ts'

/** Tables that `fundingRates` reads. */
export const FUNDING_RATE_TABLES = ['read.funding_rates'] as const

export type FundingRateRow = Selectable<ReadFundingRatesTable>

export interface FundingRateFilter {
  readonly limit: number
  /** Earliest and latest start of a rate's validity, in milliseconds. */
  readonly from: number | null
  readonly to: number | null
  /** The last rate of the previous page. */
  readonly after: { readonly asOf: number; readonly actionId: number } | null
}

/** Newest first; one row more than `limit` if there is a next page. */
export async function fundingRates(
  db: Db | Tx,
  marketId: number,
  { limit, from, to, after }: FundingRateFilter,
): Promise<FundingRateRow[]> {
  const { rows } = await sql<FundingRateRow>`
    select * from read.funding_rates
    where market_id = ${marketId} and is_mined and as_of >= ${from ?? 0}
      ${to === null ? sql`` : sql`and as_of < ${to}`}
      ${after === null ? sql`` : sql`and (as_of, action_id) < (${after.asOf}::bigint, ${after.actionId}::bigint)`}
    order by as_of desc, action_id desc limit ${limit + 1}
  `.execute(db)
  return rows
}
