/** A market's specification as JSON: amounts are decimal strings. */
import type { MarketListed, StoredValue } from '../journal/journal-row.ts'
import type { Address, MarketId, Millis, Price, Quantity, Rate, Steps, Ticks } from '../units.ts'
import type { MarketKind, MarketSpec } from './market.ts'

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
  fundingCap: spec.fundingCap.toString(),
  finalLow: spec.finalLow.toString(),
  finalHigh: spec.finalHigh.toString(),
})

const amountOf = (stored: StoredValue | undefined): bigint => BigInt(stored ?? 0)

export const fromStoredSpec = (stored: Record<string, StoredValue>): MarketSpec => ({
  marketId: Number(stored.marketId) as MarketId,
  symbol: String(stored.symbol),
  kind: stored.kind as MarketKind,
  trader: stored.trader as Address,
  chainId: amountOf(stored.chainId),
  tick: amountOf(stored.tick) as Price,
  step: amountOf(stored.step) as Quantity,
  minPrice: Number(stored.minPrice) as Ticks,
  minQuantity: Number(stored.minQuantity) as Steps,
  maxQuantity: Number(stored.maxQuantity) as Steps,
  maxLeverage: Number(stored.maxLeverage),
  imr: amountOf(stored.imr) as Rate,
  mmr: amountOf(stored.mmr) as Rate,
  mtbLong: amountOf(stored.mtbLong) as Rate,
  mtbShort: amountOf(stored.mtbShort) as Rate,
  makerFee: amountOf(stored.makerFee) as Rate,
  takerFee: amountOf(stored.takerFee) as Rate,
  fundingCap: amountOf(stored.fundingCap) as Rate,
  fundingSession: stored.fundingSession === true,
  finalLow: amountOf(stored.finalLow) as Price,
  finalHigh: amountOf(stored.finalHigh) as Price,
  expiresAt: Number(stored.expiresAt ?? 0) as Millis,
  disputeWindow: Number(stored.disputeWindow ?? 0) as Millis,
})
