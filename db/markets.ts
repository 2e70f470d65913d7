/** The `markets` table: specifications (wei as decimal strings), modes, closes and widths of price protection. The engine writes it. */
import type { MarketSpec } from '../domain/market/market.ts'
import type { ProtectionSchedule } from '../domain/market/price-protection.ts'
import { fromStoredSpec } from '../domain/market/stored-spec.ts'
import type { CalendarName } from '../domain/market/trading-calendar.ts'
import type { Closing } from '../domain/risk/ending.ts'
import type { MarketId, Millis, Quote } from '../domain/units.ts'
import type { Db } from './client.ts'
import { toSchedule } from './price-protection.ts'

export async function loadImpactNotional(db: Db, marketId: MarketId): Promise<Quote | null> {
  const row = await db
    .selectFrom('markets')
    .select('impact_notional')
    .where('market_id', '=', marketId)
    .executeTakeFirstOrThrow()
  return row.impact_notional as Quote | null
}

export async function loadProtection(db: Db, marketId: MarketId): Promise<ProtectionSchedule> {
  const market = await db
    .selectFrom('markets')
    .selectAll()
    .where('market_id', '=', marketId)
    .executeTakeFirstOrThrow()
  return toSchedule(market)
}

export async function loadMarkets(db: Db): Promise<MarketSpec[]> {
  const rows = await db.selectFrom('markets').select('spec').orderBy('market_id').execute()
  return rows.map(({ spec }) => fromStoredSpec(spec))
}

/** A listed market, as far as its feeds depend on it. */
export interface FeedMarketRow {
  readonly spec: MarketSpec
  readonly calendar: CalendarName | null
  readonly closing: Closing
  readonly isEnded: boolean
}

export async function loadFeedMarkets(db: Db): Promise<FeedMarketRow[]> {
  const rows = await db
    .selectFrom('markets')
    .select(['spec', 'calendar', 'expires_at', 'settling_at', 'mode'])
    .orderBy('market_id')
    .execute()
  return rows.map((row) => ({
    spec: fromStoredSpec(row.spec),
    calendar: row.calendar,
    closing: toClosing(row),
    isEnded: row.mode === 'settled',
  }))
}

export interface ClosingColumns {
  readonly expires_at: number
  readonly settling_at: number
}

export const toClosing = ({ expires_at, settling_at }: ClosingColumns): Closing => ({
  ...{ expiresAt: expires_at as Millis, settlingAt: settling_at as Millis },
})
