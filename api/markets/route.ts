/** Markets and order books: open to everyone. */
import Type from 'typebox'
import type { MarketSpec } from '../../domain/market/market.ts'
import { ApiError } from '../errors.ts'
import { type App, answers } from '../http/types.ts'
import { BookmarkQuery } from '../orders/schema.ts'
import type { ReadAfter, Reading } from '../read-after/read-after.ts'
import type { MarketDirectory } from './market-directory.ts'
import { bookLevels, marketState, marketStates } from './query.ts'
import {
  Book,
  BookBySymbol,
  BookBySymbolQuery,
  BookQuery,
  Market,
  MarketIdParams,
  MarketsQuery,
} from './schema.ts'
import { levelView, marketView } from './view.ts'

export interface MarketPorts {
  readonly markets: MarketDirectory
  readonly readAfter: ReadAfter
}

const tags = ['markets']
const DEPTH = 1000

export function marketRoutes(app: App, ports: MarketPorts): void {
  listing(app, ports)
  books(app, ports)
}

function listing(app: App, { markets, readAfter }: MarketPorts): void {
  app.get(
    '/v0/markets',
    {
      schema: {
        tags,
        summary: 'All markets',
        operationId: 'listMarkets',
        querystring: MarketsQuery,
        response: answers(Type.Array(Market)),
      },
    },
    async (request) => {
      const { type: kind, limit = 100 } = request.query
      const states = await readAfter.read(request, (db) => marketStates(db, { kind, limit }))
      return Promise.all(states.map(async (state) => marketView(await markets.byId(state.market_id), state)))
    },
  )
  app.get(
    '/v0/markets/:market_id',
    {
      schema: {
        tags,
        summary: 'One market',
        operationId: 'getMarket',
        params: MarketIdParams,
        querystring: BookmarkQuery,
        response: answers(Market),
      },
    },
    async (request) => {
      const id = request.params.market_id
      const spec = await markets.byId(id)
      const state = await readAfter.read(request, (db) => marketState(db, id))
      if (state === undefined) throw new ApiError('MARKET_NOT_FOUND', { field: 'market_id', received: id })
      return marketView(spec, state)
    },
  )
}

function books(app: App, { markets, readAfter }: MarketPorts): void {
  const read = async (
    spec: MarketSpec,
    reading: Reading & { readonly query: { readonly depth?: number } },
  ) => {
    const depth = reading.query.depth ?? DEPTH
    const rows = await readAfter.read(reading, (db) => bookLevels(db, spec.marketId, depth))
    return {
      market_id: spec.marketId,
      symbol: spec.symbol,
      shard_seq: String(rows.seq),
      long: rows.long.map((row) => levelView(spec, row)),
      short: rows.short.map((row) => levelView(spec, row)),
    }
  }
  app.get(
    '/v0/orderbook/by-market/:market_id',
    {
      schema: {
        tags,
        summary: 'Order book of a market',
        operationId: 'getOrderbook',
        params: MarketIdParams,
        querystring: BookQuery,
        response: answers(Book),
      },
    },
    async (request) => {
      const spec = await markets.byId(request.params.market_id)
      const { long: long_levels, short: short_levels, ...book } = await read(spec, request)
      return { ...book, long_levels, short_levels }
    },
  )
  app.get(
    '/v0/orderbook',
    {
      schema: {
        tags,
        summary: 'Order book by symbol',
        operationId: 'getOrderbookBySymbol',
        querystring: BookBySymbolQuery,
        response: answers(BookBySymbol),
      },
    },
    async (request) => {
      const spec = await markets.bySymbol(request.query.symbol)
      const { long: bids, short: asks, ...book } = await read(spec, request)
      return { ...book, bids, asks }
    },
  )
}
