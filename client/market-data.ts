/** Public reads: markets, their risk, orderbooks, auctions, funding rates, fills without names, contract addresses. They need no API key. */
import type { Side } from '../domain/orders/order.ts'
import type { HttpSession } from './http-session.ts'
import type {
  CandleInterval,
  CandlePage,
  MarketStats,
  OpenInterestPoint,
  PriceType,
  Ticker,
} from './market-history.ts'
import { bookmarkQuery, type Page, type RangeOptions, type ReadOptions, rangeQuery } from './queries.ts'
import type {
  AnnouncementPage,
  Auction,
  BatchProof,
  BuilderPage,
  FundingRate,
  Liquidation,
  Market,
  MarketRisk,
  Orderbook,
  PublicFill,
  ServerTime,
  ServiceStatus,
  SharedContracts,
} from './responses.ts'

export interface MarketFilter {
  readonly type?: Market['type']
  readonly mode?: string
  readonly symbol?: string
  readonly limit?: number
}

export class MarketData {
  readonly #http: HttpSession
  #contracts: SharedContracts | null = null

  constructor(http: HttpSession) {
    this.#http = http
  }

  async markets(options: ReadOptions & MarketFilter = {}): Promise<readonly Market[]> {
    const { type, mode, symbol, limit } = options
    return this.#http.get('/v0/markets', { type, mode, symbol, limit, ...bookmarkQuery(options) })
  }

  async market(marketId: number, options: ReadOptions = {}): Promise<Market> {
    return this.#http.get(`/v0/markets/${marketId}`, bookmarkQuery(options))
  }

  async orderbook(marketId: number, options: ReadOptions & { depth?: number } = {}): Promise<Orderbook> {
    const query = { depth: options.depth, ...bookmarkQuery(options) }
    return this.#http.get(`/v0/orderbook/by-market/${marketId}`, query)
  }

  /** Fills of all accounts. Both sides of a trade are listed: filter by `side` to count volume once. */
  async fillPage(
    marketId: number,
    options: RangeOptions & { readonly side?: Side } = {},
  ): Promise<Page & { fills: readonly PublicFill[] }> {
    return this.#http.get(`/v0/fills/by-market/${marketId}`, { ...rangeQuery(options), side: options.side })
  }

  /** Batches of a market, with the inputs that decided their prices. */
  async auctionPage(
    marketId: number,
    options: RangeOptions = {},
  ): Promise<Page & { auctions: readonly Auction[] }> {
    return this.#http.get('/v0/auctions', { market_id: marketId, ...rangeQuery(options) })
  }

  /** All inputs needed to recompute a batch result, without accounts. */
  async batchProof(marketId: number, batchId: number, options: ReadOptions = {}): Promise<BatchProof> {
    return this.#http.get(`/v0/auctions/${marketId}/${batchId}/proof`, bookmarkQuery(options))
  }

  /**
   * Funding rates of a market. `from` and `to` limit the times from which rates apply, as ISO 8601 in UTC.
   */
  async fundingRatePage(
    marketId: number,
    options: RangeOptions = {},
  ): Promise<Page & { funding_rates: readonly FundingRate[] }> {
    return this.#http.get(`/v0/markets/${marketId}/funding-rates`, rangeQuery(options))
  }

  /** Candles of the clearing prices (default), mark or oracle prices, newest first. Default interval: 1m. */
  async candlePage(
    marketId: number,
    options: RangeOptions & { readonly interval?: CandleInterval; readonly priceType?: PriceType } = {},
  ): Promise<CandlePage> {
    const query = { ...rangeQuery(options), interval: options.interval, price_type: options.priceType }
    return this.#http.get(`/v0/markets/${marketId}/candlesticks`, query)
  }

  /** The open interest at the end of each interval, newest first. Default interval: 1h. */
  async openInterestPage(
    marketId: number,
    options: RangeOptions & { readonly interval?: CandleInterval } = {},
  ): Promise<Page & { readonly open_interest: readonly OpenInterestPoint[] }> {
    const query = { ...rangeQuery(options), interval: options.interval }
    return this.#http.get(`/v0/markets/${marketId}/open-interest`, query)
  }

  /** Each market's last 24 hours, open interest and funding. */
  async stats(options: ReadOptions = {}): Promise<readonly MarketStats[]> {
    return this.#http.get('/v0/markets/stats', bookmarkQuery(options))
  }

  /** Each market's best quotes and last 24 hours. */
  async tickers(options: ReadOptions = {}): Promise<readonly Ticker[]> {
    return this.#http.get('/v0/tickers', bookmarkQuery(options))
  }

  async risk(marketId: number, options: ReadOptions = {}): Promise<MarketRisk> {
    return this.#http.get(`/v0/risk/${marketId}`, bookmarkQuery(options))
  }

  /** Liquidations of one market or of all markets. `from` and `to` limit their times, as ISO 8601 in UTC. */
  async liquidationPage(
    options: RangeOptions & { readonly marketId?: number } = {},
  ): Promise<Page & { liquidations: readonly Liquidation[] }> {
    return this.#http.get('/v0/liquidations', { market_id: options.marketId, ...rangeQuery(options) })
  }

  /** Clock of the exchange. */
  async time(): Promise<ServerTime> {
    return this.#http.get('/v0/time')
  }

  /** Current status of the exchange: its chain, and each market's prices and placements. */
  async status(): Promise<ServiceStatus> {
    return this.#http.get('/v0/status')
  }

  /** Announcements of the operator, newest first. */
  async announcements(
    options: { readonly limit?: number; readonly cursor?: string } = {},
  ): Promise<AnnouncementPage> {
    return this.#http.get('/v0/announcements', { limit: options.limit, cursor: options.cursor })
  }

  /**
   * Builders of one UTC day (default: today), largest volume first; with `builder`, the days of that builder, newest first.
   */
  async builders(
    options: {
      readonly day?: string
      readonly builder?: string
      readonly limit?: number
      readonly cursor?: string
    } = {},
  ): Promise<BuilderPage> {
    const { day, builder, limit, cursor } = options
    return this.#http.get('/v0/builders', { day, builder, limit, cursor })
  }

  /** Contract addresses; fetched once, because they never change. */
  async contracts(): Promise<SharedContracts> {
    this.#contracts ??= await this.#http.get<SharedContracts>('/v0/contracts/shared')
    return this.#contracts
  }
}
