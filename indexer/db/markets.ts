/** Market specifications in the database: wei as decimal strings. */
import { ACCOUNTS_SHARD, type MarketListed, marketShard } from '../../domain/log.ts'
import type { MarketKind, MarketSpec } from '../../domain/market.ts'
import type { Address, MarketId, Price, Quantity, Rate, Steps, Ticks } from '../../domain/units.ts'
import type { Db } from './client.ts'
import { appendRows, createShard, lockShard } from './shard-log.ts'

export type StoredSpec = MarketListed['spec']

export const toStoredSpec = (spec: MarketSpec): StoredSpec => ({
  ...spec,
  chainId: spec.chainId.toString(),
  tick: spec.tick.toString(),
  step: spec.step.toString(),
  imr: spec.imr.toString(),
  mmr: spec.mmr.toString(),
  mtbLong: spec.mtbLong.toString(),
  mtbShort: spec.mtbShort.toString(),
  makerFee: spec.makerFee.toString(),
  takerFee: spec.takerFee.toString(),
})

export const fromStoredSpec = (stored: Record<string, string | number>): MarketSpec => ({
  marketId: Number(stored.marketId) as MarketId,
  symbol: String(stored.symbol),
  kind: stored.kind as MarketKind,
  trader: stored.trader as Address,
  chainId: BigInt(stored.chainId ?? 0),
  tick: BigInt(stored.tick ?? 0) as Price,
  step: BigInt(stored.step ?? 0) as Quantity,
  minPrice: Number(stored.minPrice) as Ticks,
  minQuantity: Number(stored.minQuantity) as Steps,
  maxQuantity: Number(stored.maxQuantity) as Steps,
  maxLeverage: Number(stored.maxLeverage),
  imr: BigInt(stored.imr ?? 0) as Rate,
  mmr: BigInt(stored.mmr ?? 0) as Rate,
  mtbLong: BigInt(stored.mtbLong ?? 0) as Rate,
  mtbShort: BigInt(stored.mtbShort ?? 0) as Rate,
  makerFee: BigInt(stored.makerFee ?? 0) as Rate,
  takerFee: BigInt(stored.takerFee ?? 0) as Rate,
})

/** Makes a deployed market known to the exchange. Does nothing where it is known already. */
export async function listMarket(db: Db, spec: MarketSpec): Promise<void> {
  await createShard(db, ACCOUNTS_SHARD)
  const shard = marketShard(spec.marketId)
  await createShard(db, shard)
  await db.transaction().execute(async (tx) => {
    const head = await lockShard(tx, shard)
    const stored = toStoredSpec(spec)
    const { numInsertedOrUpdatedRows } = await tx
      .insertInto('markets')
      .values({
        market_id: spec.marketId,
        symbol: spec.symbol,
        kind: spec.kind,
        trader: spec.trader,
        spec: JSON.stringify(stored),
        last_price: null,
        last_price_at: null,
      })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirstOrThrow()
    if (numInsertedOrUpdatedRows === 1n) await appendRows(tx, head, [{ kind: 'market_listed', spec: stored }])
  })
}

export async function loadMarkets(db: Db): Promise<MarketSpec[]> {
  const rows = await db.selectFrom('markets').select('spec').orderBy('market_id').execute()
  return rows.map(({ spec }) => fromStoredSpec(spec))
}
