/** All markets: terms over REST, prices from the live feed. */
import { computed, signal } from '@preact/signals'
import type { TopicMessage } from '../../client/live/messages.ts'
import type { MarketStats } from '../../client/market-history.ts'
import type { Market } from '../../client/responses.ts'
import { screen } from '../base/router.ts'
import { settings } from '../base/settings.ts'
import { feed, marketData } from './exchange.ts'
import { perFrame } from './frames.ts'

export interface Prices {
  readonly market_id: number
  readonly oracle_price_e18_raw: string | null
  readonly mark_price_e18_raw: string | null
  readonly last_price_e18_raw: string | null
}

export const markets = signal<readonly Market[]>([])
/** Prices by market id. */
export const prices = signal<ReadonlyMap<number, Prices>>(new Map())
export const statsByMarket = signal<ReadonlyMap<number, MarketStats>>(new Map())
export const marketsError = signal<string | null>(null)

const REFRESH_MS = 10_000
const LAST_KEY = 'clearbatch.market'

export async function refreshMarkets(): Promise<void> {
  try {
    const [list, stats] = await Promise.all([marketData.markets(), marketData.stats()])
    markets.value = list
    statsByMarket.value = new Map(stats.map((each) => [each.market_id, each]))
    marketsError.value = null
  } catch (error) {
    marketsError.value = (error as Error).message
  }
}

export const marketById = (id: number): Market | undefined =>
  markets.value.find(({ market_id }) => market_id === id)

/** Market of the trade screen: the market in the path, otherwise the last shown market. */
export const activeMarket = computed<Market | null>(() => {
  const current = screen.value
  const wanted = current.name === 'trade' ? current.symbol : null
  const list = markets.value
  if (wanted !== null) return list.find(({ symbol }) => symbol.toLowerCase() === wanted.toLowerCase()) ?? null
  const last = localStorage.getItem(LAST_KEY)
  return list.find(({ symbol }) => symbol === last) ?? list[0] ?? null
})

export const rememberMarket = ({ symbol }: Market): void => localStorage.setItem(LAST_KEY, symbol)

export const isFavourite = (symbol: string): boolean => settings.value.favourites.includes(symbol)

export function startMarkets(): void {
  void refreshMarkets()
  setInterval(() => void refreshMarkets(), REFRESH_MS)
  let newest = new Map<number, Prices>()
  const publish = perFrame(() => {
    prices.value = new Map(newest)
  })
  feed.subscribe('markets', (message) => {
    const { type, data } = message as TopicMessage<{ readonly markets: readonly Prices[] }>
    if (type === 'snapshot') newest = new Map()
    for (const each of data.markets) newest.set(each.market_id, each)
    publish()
  })
}
