/**
 * The price configuration of the local stack's keeper: one simulated source per market, what operators state as the final price of a future,
 * and one signer in the keeper's process.
 */
import type { Address } from '../domain/units.ts'
import { toDecimal } from '../domain/units.ts'
import { feedIdOf, finalFeedIdOf, sessionFeedIdOf } from './deploy.ts'
import { SEED_MARKETS, type SeedMarket } from './seed-markets.ts'

/** As the file names it. */
export const LOCAL_SIGNER = 'local'

/** A feed of the file; the keeper checks its fields (`keeper/price-file.ts`). */
export interface FeedEntry {
  readonly market_id: number
  readonly feed: 'index' | 'session' | 'final'
  readonly interval_ms?: number
  readonly feed_id: string
  readonly sources?: readonly Readonly<Record<string, unknown>>[]
}

export interface SignerEntry {
  readonly name: string
  /** With the address, of a signer in another process. */
  readonly url?: string
  readonly address?: string
}

export interface PriceConfig {
  readonly oracle: Address
  readonly threshold: number
  readonly signers: readonly SignerEntry[]
  readonly feeds: readonly FeedEntry[]
}

export const priceConfigOf = (
  oracle: Address,
  signers: readonly SignerEntry[] = [{ name: LOCAL_SIGNER }],
  threshold = 1,
): PriceConfig => ({
  oracle,
  threshold,
  signers,
  feeds: SEED_MARKETS.flatMap((market) => [indexOf(market), ...sessionOf(market), ...finalOf(market)]),
})

const indexOf = ({ plan: { marketId }, firstPrice, walk }: SeedMarket): FeedEntry => ({
  ...{ market_id: marketId, feed: 'index', feed_id: feedIdOf(marketId) },
  sources: [
    {
      ...{ name: 'walk', kind: 'walk', first: toDecimal(firstPrice), home: toDecimal(walk.home) },
      ...{ grain: toDecimal(walk.grain), volatility: walk.volatility, probability: walk.probability },
    },
  ],
})

const sessionOf = ({ plan: { marketId, fundingSession } }: SeedMarket): FeedEntry[] =>
  fundingSession ? [{ market_id: marketId, feed: 'session', feed_id: sessionFeedIdOf(marketId) }] : []

/** The price is repeated once a minute; a newly stated price is published at once. */
const finalOf = ({ plan: { marketId, kind } }: SeedMarket): FeedEntry[] =>
  kind === 'perpetual'
    ? []
    : [
        {
          ...{ market_id: marketId, feed: 'final', feed_id: finalFeedIdOf(marketId), interval_ms: 60_000 },
          sources: [{ name: 'operator', kind: 'operator' }],
        },
      ]
