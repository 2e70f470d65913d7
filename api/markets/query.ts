/** Modes and last prices of markets, from the write side and the read model. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { fundingColumn, type StoredFunding } from '../../db/funding.ts'
import { ENDING_COLUMNS } from '../../db/market-endings.ts'
import { averagesColumn, type StoredAverages } from '../../db/price-averages.ts'
import { toSchedule } from '../../db/price-protection.ts'
import { TERMS_COLUMNS, toMarketTerms } from '../../db/terms.ts'
import { constant } from '../../db/values.ts'
import type { FeeRates } from '../../domain/market/fees.ts'
import { termsAt } from '../../domain/market/in-force.ts'
import type { MarketKind, MarketSpec } from '../../domain/market/market.ts'
import { scheduleAt } from '../../domain/market/price-protection.ts'
import type { Millis, Rate } from '../../domain/units.ts'

/** Tables of the read model that the queries of markets read. */
export const MARKET_TABLES = ['read.markets'] as const

const selectMarkets = (db: Db | Tx) =>
  db
    .selectFrom('markets as m')
    .leftJoin('read.markets as r', 'r.market_id', 'm.market_id')
    .leftJoin('oracle_reports as o', (join) =>
      join.onRef('o.market_id', '=', 'm.market_id').on('o.feed', '=', constant('index')),
    )
    .select([
      'm.market_id',
      'm.calendar',
      'm.impact_notional',
      'r.oracle_price',
      'r.oracle_at',
      'r.mark_price',
      'r.last_price',
      'r.last_batch_id',
      'r.next_price_protection',
      'r.next_price_protection_at',
    ])
    .select([
      'o.observed_at as feed_observed_at',
      'o.readings as feed_readings',
      'o.status as feed_status',
      'o.reason as feed_reason',
      'o.since as feed_since',
    ])
    .select([
      sql.raw<StoredFunding>(fundingColumn('m.market_id')).as('funding'),
      sql.raw<StoredAverages>(averagesColumn('m.market_id')).as('averages'),
    ])
    // A market that is not projected yet has had no announcement.
    .select(TERMS_COLUMNS.map((column) => `m.${column}` as const))
    .select(ENDING_COLUMNS.map((column) => `m.${column}` as const))
    .select((eb) => eb.fn.coalesce('r.price_protection', 'm.price_protection').as('price_protection'))

export interface MarketFilter {
  readonly kind?: MarketKind | undefined
  readonly symbol?: string | undefined
}

/** By ascending number. Few enough to be read at once: each was listed by the exchange. */
export const marketStates = (db: Db | Tx, { kind, symbol }: MarketFilter) => {
  let query = selectMarkets(db)
  if (kind !== undefined) query = query.where('m.kind', '=', kind)
  if (symbol !== undefined) query = query.where('m.symbol', '=', symbol)
  return query.orderBy('m.market_id').execute()
}

export const marketState = (db: Db | Tx, marketId: number) =>
  selectMarkets(db).where('m.market_id', '=', marketId).executeTakeFirst()

/** Terms of the market besides its contract's, from the write side, as the auction reads them. */
export async function offChainTermsAt(
  db: Db | Tx,
  spec: MarketSpec,
  at: Millis,
): Promise<{ readonly priceProtection: Rate; readonly fees: FeeRates }> {
  const row = await db
    .selectFrom('markets')
    .select(['price_protection', 'next_price_protection', 'next_price_protection_at', ...TERMS_COLUMNS])
    .where('market_id', '=', spec.marketId)
    .executeTakeFirst()
  if (row === undefined) throw new Error(`market ${spec.marketId} is not listed`)
  const { makerFee, takerFee } = termsAt(spec, toMarketTerms(row, spec), at).charging
  return { priceProtection: scheduleAt(toSchedule(row), at).inForce, fees: { makerFee, takerFee } }
}
