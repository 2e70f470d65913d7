/** The `markets` table: specifications (wei as decimal strings), modes, and each market's latest batch and action. */
import { sql } from 'kysely'
import { ACCOUNTS_SHARD, marketShard } from '../domain/journal/journal-row.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { DEFAULT_PRICE_PROTECTION, type ProtectionSchedule } from '../domain/market/price-protection.ts'
import { fromStoredSpec, toStoredSpec } from '../domain/market/stored-spec.ts'
import type { CalendarName } from '../domain/market/trading-calendar.ts'
import type { Closing } from '../domain/risk/ending.ts'
import type { MarketId, Millis, Quote } from '../domain/units.ts'
import type { Db, Tx } from './client.ts'
import { appendRows, createShard, lockShard } from './journal.ts'
import { toColumns, toSchedule } from './price-protection.ts'
import { keysOfLane, type RelayerKey } from './relayers.ts'

/**
 * Lists a deployed market; a market whose funding accrues only in sessions follows the New York calendar. Does nothing if it is listed
 * already.
 */
export async function listMarket(db: Db, spec: MarketSpec): Promise<void> {
  await createShard(db, ACCOUNTS_SHARD)
  const shard = marketShard(spec.marketId)
  await createShard(db, shard)
  await db.transaction().execute(async (tx) => {
    const head = await lockShard(tx, shard)
    const stored = toStoredSpec(spec)
    const priceProtection = DEFAULT_PRICE_PROTECTION[spec.kind]
    const { numInsertedOrUpdatedRows } = await tx
      .insertInto('markets')
      .values({
        market_id: spec.marketId,
        symbol: spec.symbol,
        kind: spec.kind,
        trader: spec.trader,
        spec: JSON.stringify(stored),
        expires_at: spec.expiresAt,
        dispute_window: spec.disputeWindow,
        ...{ reserved_fee: spec.takerFee, reserving_after: null },
        ...toColumns({ inForce: priceProtection, next: null }),
        calendar: spec.fundingSession ? 'NYSE' : null,
        last_price: null,
        last_price_at: null,
      })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirstOrThrow()
    if (numInsertedOrUpdatedRows === 0n) return
    const row = { kind: 'market_listed', spec: stored, price_protection: priceProtection.toString() } as const
    await appendRows(tx, head, [row])
  })
}

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

/**
 * Sets the market's last action id to the contract's, unless an id is reserved for an action that is not mined, or the relayer has an open
 * transaction. Returns the stored id that it replaced; null if nothing changed.
 */
export async function adoptActionId(
  tx: Tx,
  marketId: number,
  lane: RelayerKey & { readonly name: string },
  actionId: number,
): Promise<number | null> {
  const { rows } = await sql<{ replaced: number }>`
    with stored as (
      select market_id, last_action_id from markets where market_id = ${marketId} for update
    )
    update markets m set last_action_id = ${actionId} from stored
    where m.market_id = stored.market_id and stored.last_action_id <> ${actionId}
      and not exists (
        select from actions a
        where a.market_id = ${marketId} and a.action_id is not null and a.status in ('QUEUED', 'SIGNED', 'SUBMITTED')
      )
      and not exists (
        select from relayer_transactions t where t.relayer = any(${keysOfLane(lane)}) and t.status in ('SIGNED', 'BROADCAST')
      )
    returning stored.last_action_id as replaced
  `.execute(tx)
  return rows[0]?.replaced ?? null
}

export interface ClosingColumns {
  readonly expires_at: number
  readonly settling_at: number
}

export const toClosing = ({ expires_at, settling_at }: ClosingColumns): Closing => ({
  ...{ expiresAt: expires_at as Millis, settlingAt: settling_at as Millis },
})
