/** The four markets that a local stack starts with, one of each kind. */
import type { MarketKind, MarketSpec } from '../domain/market.ts'
import type { MarketId, Price, Quantity, Rate, Steps, Ticks } from '../domain/units.ts'
import type { Walk } from './prices.ts'

/** A market before its contract has an address. */
export type MarketPlan = Omit<MarketSpec, 'trader' | 'chainId'>

export interface SeedMarket {
  readonly plan: MarketPlan
  readonly firstPrice: Price
  readonly walk: Walk
}

const E18 = 10n ** 18n
const E15 = 10n ** 15n

interface Terms {
  readonly id: number
  readonly symbol: string
  readonly kind: MarketKind
  /** Thousandths of one. */
  readonly tick: bigint
  readonly step: bigint
  readonly maxQuantity: number
  readonly maxLeverage: number
  /** Percent. */
  readonly band: bigint
  /** Basis points of notional, or of the binary coefficient. */
  readonly takerFee: bigint
  /** Thousandths. */
  readonly firstPrice: bigint
  readonly volatility: number
}

const TERMS: readonly Terms[] = [
  {
    id: 1,
    symbol: 'BTC-PERP',
    kind: 'perpetual',
    tick: 100n,
    step: 1n,
    maxQuantity: 1_000_000,
    maxLeverage: 20,
    band: 5n,
    takerFee: 5n,
    firstPrice: 63_000_000n,
    volatility: 0.00012,
  },
  {
    id: 2,
    symbol: 'AAPL-PERP',
    kind: 'perpetual',
    tick: 10n,
    step: 10n,
    maxQuantity: 10_000_000,
    maxLeverage: 10,
    band: 5n,
    takerFee: 5n,
    firstPrice: 260_000n,
    volatility: 0.00006,
  },
  {
    id: 3,
    symbol: 'ACME-VALUATION',
    kind: 'future',
    tick: 500n,
    step: 10n,
    maxQuantity: 1_000_000,
    maxLeverage: 5,
    band: 20n,
    takerFee: 20n,
    firstPrice: 850_000n,
    volatility: 0.0002,
  },
  {
    id: 4,
    symbol: 'RATE-CUT-YES',
    kind: 'binary_future',
    tick: 1n,
    step: 1_000n,
    maxQuantity: 1_000_000,
    maxLeverage: 5,
    band: 20n,
    takerFee: 200n,
    firstPrice: 550n,
    volatility: 0.003,
  },
]

/** IMR = 0.9 / maximum leverage and MMR half of that, as everywhere unless a market says otherwise. */
export const SEED_MARKETS: readonly SeedMarket[] = TERMS.map((terms) => {
  const imr = (9n * E18) / 10n / BigInt(terms.maxLeverage)
  const band = ((terms.band * E18) / 100n) as Rate
  const firstPrice = terms.firstPrice * E15
  return {
    plan: {
      marketId: terms.id as MarketId,
      symbol: terms.symbol,
      kind: terms.kind,
      tick: (terms.tick * E15) as Price,
      step: (terms.step * E15) as Quantity,
      minPrice: 1 as Ticks,
      minQuantity: 1 as Steps,
      maxQuantity: terms.maxQuantity as Steps,
      maxLeverage: terms.maxLeverage,
      imr: imr as Rate,
      mmr: (imr / 2n) as Rate,
      mtbLong: band,
      mtbShort: band,
      makerFee: 0n as Rate,
      takerFee: ((terms.takerFee * E18) / 10_000n) as Rate,
    },
    firstPrice: firstPrice as Price,
    walk: {
      grain: (terms.tick * E15) / 10n,
      home: firstPrice,
      volatility: terms.volatility,
      probability: terms.kind === 'binary_future',
    },
  }
})
