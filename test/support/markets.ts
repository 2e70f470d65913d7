/** Markets that satisfy the listing rules, one of each kind, and helpers for prices and amounts. */
import type { MarketSpec } from '../../domain/market/market.ts'
import type { FundingIndex, Millis, Price, Quantity, Quote, Rate, Steps, Ticks } from '../../domain/units.ts'

/** A decimal number as an integer x 1e18, exactly: `e18('0.005')`. */
export function e18(text: string): bigint {
  const [whole = '0', fraction = ''] = text.replace('-', '').split('.')
  const value = BigInt(whole) * 10n ** 18n + BigInt(fraction.padEnd(18, '0'))
  return text.startsWith('-') ? -value : value
}

export const price = (text: string): Price => e18(text) as Price
export const quote = (text: string): Quote => e18(text) as Quote
export const rate = (text: string): Rate => e18(text) as Rate
export const index = (wei: bigint): FundingIndex => wei as FundingIndex
export const ticks = (count: number): Ticks => count as Ticks
export const steps = (count: number): Steps => count as Steps

/** Later than every time in the tests, and within ten years of them: 2033-05-18. */
export const EXPIRES_AT = 2_000_000_000_000 as Millis

/** Tick 0.1, step 0.001, leverage 20, band 5 %, 5 bps. */
export const perpetual: MarketSpec = {
  marketId: 1 as MarketSpec['marketId'],
  symbol: 'BTC-PERP',
  kind: 'perpetual',
  trader: '0x1111111111111111111111111111111111111111' as MarketSpec['trader'],
  chainId: 6343n,
  tick: price('0.1'),
  step: e18('0.001') as Quantity,
  minPrice: ticks(10),
  minQuantity: steps(10),
  maxQuantity: steps(10_000_000),
  maxLeverage: 20,
  imr: rate('0.045'),
  mmr: rate('0.0225'),
  mtbLong: rate('0.05'),
  mtbShort: rate('0.05'),
  makerFee: rate('0'),
  takerFee: rate('0.0005'),
  fundingCap: rate('0.01'),
  fundingSession: false,
  finalLow: price('0'),
  finalHigh: price('0'),
  expiresAt: 0 as Millis,
  disputeWindow: 86_400_000 as Millis,
}

/** Tick 0.5, step 0.01, leverage 5, band 20 %, 20 bps. */
export const future: MarketSpec = {
  ...perpetual,
  marketId: 2 as MarketSpec['marketId'],
  symbol: 'ACME-VALUATION',
  kind: 'future',
  trader: '0x2222222222222222222222222222222222222222' as MarketSpec['trader'],
  tick: price('0.5'),
  step: e18('0.01') as Quantity,
  maxLeverage: 5,
  imr: rate('0.18'),
  mmr: rate('0.09'),
  mtbLong: rate('0.2'),
  mtbShort: rate('0.2'),
  takerFee: rate('0.002'),
  fundingCap: rate('0'),
  finalLow: price('1'),
  finalHigh: price('100000000'),
  expiresAt: EXPIRES_AT,
}

/** Tick 0.001, step 1, leverage 5, coefficient 0.02. */
export const binary: MarketSpec = {
  ...perpetual,
  marketId: 3 as MarketSpec['marketId'],
  symbol: 'ELECTION-YES',
  kind: 'binary_future',
  trader: '0x3333333333333333333333333333333333333333' as MarketSpec['trader'],
  tick: price('0.001'),
  step: e18('1') as Quantity,
  minPrice: ticks(1),
  minQuantity: steps(1),
  maxLeverage: 5,
  imr: rate('0.18'),
  mmr: rate('0.09'),
  mtbLong: rate('0.2'),
  mtbShort: rate('0.2'),
  takerFee: rate('0.02'),
  fundingCap: rate('0'),
  finalHigh: price('1'),
  expiresAt: EXPIRES_AT,
}

export const markets: readonly MarketSpec[] = [perpetual, future, binary]
