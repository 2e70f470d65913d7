/** The four markets of the local stack: crypto perpetual, stock perpetual, numeric future, binary future. */
import type { MarketKind, MarketSpec } from '../domain/market/market.ts'
import type { MarketId, Millis, Price, Quantity, Quote, Rate, Steps, Ticks } from '../domain/units.ts'
import type { Walk } from '../keeper/adapters/sources/walk.ts'

/** A market whose contract is not deployed yet. */
export type MarketPlan = Omit<MarketSpec, 'trader' | 'chainId'>

export interface SeedMarket {
  readonly plan: MarketPlan
  readonly firstPrice: Price
  readonly walk: Walk
  /** Cap of the backstop's position in this market, by notional. */
  readonly backstopCap: Quote
}

const E18 = 10n ** 18n
const E15 = 10n ** 15n

/** Far enough that no local exchange reaches it, and within the ten years that the contract accepts. */
const EXPIRES_AT = Date.UTC(2035, 0, 1)
const DISPUTE_WINDOW = 86_400_000 as Millis

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
  /** Thousands of USDM. */
  readonly backstopCap: bigint
  /** Hundredths of a percent of the oracle price per hour; perpetuals only. */
  readonly fundingCap?: bigint
  readonly fundingSession?: boolean
  /** Bounds of the final price in thousandths; only for markets that expire. */
  readonly final?: readonly [bigint, bigint]
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
    backstopCap: 5_000n,
    fundingCap: 400n,
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
    backstopCap: 5_000n,
    fundingCap: 400n,
    fundingSession: true,
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
    backstopCap: 1_000n,
    final: [1_000n, 10_000_000n],
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
    backstopCap: 1_000n,
    final: [0n, 1_000n],
  },
]

/** IMR = 0.9 / maximum leverage, and MMR = IMR / 2. */
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
      fundingCap: (((terms.fundingCap ?? 0n) * E18) / 10_000n) as Rate,
      fundingSession: terms.fundingSession ?? false,
      finalLow: ((terms.final?.[0] ?? 0n) * E15) as Price,
      finalHigh: ((terms.final?.[1] ?? 0n) * E15) as Price,
      expiresAt: (terms.final === undefined ? 0 : EXPIRES_AT) as Millis,
      disputeWindow: DISPUTE_WINDOW,
    },
    firstPrice: firstPrice as Price,
    backstopCap: (terms.backstopCap * 1_000n * E18) as Quote,
    walk: {
      grain: (terms.tick * E15) / 10n,
      home: firstPrice,
      volatility: terms.volatility,
      probability: terms.kind === 'binary_future',
    },
  }
})
