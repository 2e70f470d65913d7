/**
 * Cache of market specifications for order checks. Changes are announced longer ahead than the cache's age, so they
 * apply on time. The engine admits by its own copy.
 */

import type { Db } from '../../db/client.ts'
import { type ListedMarket, loadListedMarkets } from '../../db/terms.ts'
import { termsAt } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Clock } from '../../service/clock.ts'
import { ApiError } from '../errors.ts'

/** By market. */
export type Specs = ReadonlyMap<number, MarketSpec>

/** The specification of a row's market, which is among them. */
export const specOf = (specs: Specs, { market_id }: { readonly market_id: number }): MarketSpec =>
  specs.get(market_id) as MarketSpec

export interface MarketDirectory {
  /** Fails with MARKET_NOT_FOUND. */
  byId(marketId: number): Promise<MarketSpec>
  byIds(marketIds: Iterable<number>): Promise<Specs>
  /** Specifications of the rows' markets. */
  ofRows(rows: readonly { readonly market_id: number }[]): Promise<Specs>
  bySymbol(symbol: string): Promise<MarketSpec>
  all(): Promise<readonly MarketSpec[]>
}

const REFRESH_MS = 5_000
/** Older specifications are not served: without requests the cache is not refreshed. */
const MAX_AGE_MS = 30_000
/** Minimum interval between reloads that are caused by an unknown market. */
const MISS_MS = 500

export function createMarketDirectory(db: Db, clock: Clock): MarketDirectory {
  let byId = new Map<number, ListedMarket>()
  let bySymbol = new Map<string, ListedMarket>()
  let loadedAt = 0
  let loading: Promise<void> | null = null

  const inForce = ({ listed, terms }: ListedMarket): MarketSpec =>
    termsAt(listed, terms, clock.now()).reserving
  const load = async (): Promise<void> => {
    const markets = await loadListedMarkets(db)
    byId = new Map(markets.map((market) => [market.listed.marketId, market]))
    bySymbol = new Map(markets.map((market) => [market.listed.symbol, market]))
    loadedAt = clock.now()
  }
  const reload = (): Promise<void> => {
    loading ??= load().finally(() => {
      loading = null
    })
    return loading
  }

  const find = async (
    read: () => ListedMarket | undefined,
    field: string,
    received: unknown,
  ): Promise<MarketSpec> => {
    const age = clock.now() - loadedAt
    const known = read()
    if (age > (known === undefined ? MISS_MS : MAX_AGE_MS)) await reload()
    // An expired specification is served while the reload runs.
    else if (age > REFRESH_MS) reload().catch(() => {})
    const found = read()
    if (found === undefined)
      throw new ApiError('MARKET_NOT_FOUND', { field, expected: 'a market of GET /v0/markets', received })
    return inForce(found)
  }

  const specFor = (marketId: number) => find(() => byId.get(marketId), 'market_id', marketId)
  const byIds = async (marketIds: Iterable<number>): Promise<Specs> => {
    const specs = await Promise.all([...new Set(marketIds)].map(specFor))
    return new Map(specs.map((spec) => [spec.marketId, spec]))
  }

  return {
    byId: specFor,
    byIds,
    ofRows: (rows) => byIds(rows.map(({ market_id }) => market_id)),
    bySymbol: (symbol) => find(() => bySymbol.get(symbol), 'symbol', symbol),
    async all() {
      if (clock.now() - loadedAt > MISS_MS) await reload()
      return [...byId.values()].map(inForce)
    },
  }
}
