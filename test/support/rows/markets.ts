/** Markets that a test lists in the place of an engine that does not run. */
import type { Db } from '../../../db/client.ts'
import type { ProtectionColumns } from '../../../db/price-protection.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { DEFAULT_PRICE_PROTECTION, type ProtectionSchedule } from '../../../domain/market/price-protection.ts'
import { toStoredSpec } from '../../../domain/market/stored-spec.ts'
import { appendRows, createShard, lockShard } from './journal.ts'

const toColumns = ({ inForce, next }: ProtectionSchedule): ProtectionColumns => ({
  price_protection: inForce,
  next_price_protection: next?.width ?? null,
  next_price_protection_at: next?.at ?? null,
})

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
