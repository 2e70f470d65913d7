/** Converts a mined funding update to its JSON form. */
import type { MarketSpec } from '../../domain/market/market.ts'
import { fractionOf } from '../../domain/prices/funding.ts'
import type { HourlyFunding, Price } from '../../domain/units.ts'
import { amount, isoTime } from '../wire/amounts.ts'
import type { FundingRateRow } from './query.ts'
import type { FundingRate } from './schema.ts'

export const fundingRateView = (spec: MarketSpec, row: FundingRateRow): FundingRate => ({
  market_id: row.market_id,
  symbol: spec.symbol,
  action_id: row.action_id,
  effective_at: isoTime(row.as_of),
  valid_until: isoTime(row.valid_until),
  ...amount('funding_rate', fractionOf(spec, row.rate as HourlyFunding, row.oracle_price as Price)),
  ...amount('rate_per_step', row.rate),
  ...amount('funding_index', row.funding_index),
  ...amount('oracle_price', row.oracle_price),
  oracle_price_at: isoTime(row.oracle_at),
  tx_hash: row.tx_hash,
})
