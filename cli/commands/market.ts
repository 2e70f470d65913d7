/** Commands on public market data. */
import type { CandleInterval, PriceType } from '../../client/market-history.ts'
import type { Level } from '../../client/responses.ts'
import type { Context } from '../context.ts'
import { given } from './account.ts'

type Named = { readonly positionals: readonly string[] }

export async function list(context: Context) {
  const { marketData } = context.anonymous()
  const [markets, tickers] = await Promise.all([marketData.markets(), marketData.tickers()])
  const byId = new Map(tickers.map((ticker) => [ticker.market_id, ticker]))
  return markets.map((market) => {
    const ticker = byId.get(market.market_id)
    return {
      id: market.market_id,
      symbol: market.symbol,
      type: market.type,
      mode: market.mode,
      last: market.last_price,
      mark: market.mark_price,
      bid: ticker?.bid_price ?? null,
      ask: ticker?.ask_price ?? null,
      tick: market.tick_size,
      step: market.step_size,
      fills_24h: ticker?.fills_24h ?? null,
    }
  })
}

export const show = async (context: Context, { positionals: [symbol = ''] }: Named) =>
  context.market(context.anonymous(), symbol)

export async function book(context: Context, args: Named & { readonly depth: number }) {
  const client = context.anonymous()
  const { market_id } = await context.market(client, args.positionals[0] ?? '')
  const { long_levels, short_levels } = await client.marketData.orderbook(market_id, { depth: args.depth })
  const row = ({ price, quantity, order_count }: Level, side: string) => ({
    side,
    price,
    quantity,
    orders: order_count,
  })
  return [
    ...short_levels.toReversed().map((level) => row(level, 'ask')),
    ...long_levels.map((level) => row(level, 'bid')),
  ]
}

interface Range {
  readonly from: string | undefined
  readonly to: string | undefined
  readonly limit: number | undefined
}

export async function batches(context: Context, { positionals: [symbol = ''], ...range }: Named & Range) {
  const client = context.anonymous()
  const { market_id } = await context.market(client, symbol)
  const { auctions } = await client.marketData.auctionPage(market_id, rangeOf(range))
  return auctions.map((each) => ({
    batch_id: each.batch_id,
    as_of: each.as_of,
    status: each.status,
    price: each.price,
    volume: each.volume,
    demand: each.demand,
    supply: each.supply,
    oracle_price: each.oracle_price,
    rule: each.rule,
  }))
}

const rangeOf = ({ from, to, limit }: Range) => given({ from, to, limit })

interface CandleOptions extends Range {
  readonly interval: CandleInterval
  readonly price: PriceType
}

export async function candles(
  context: Context,
  { positionals: [symbol = ''], interval, price, ...range }: Named & CandleOptions,
) {
  const client = context.anonymous()
  const { market_id } = await context.market(client, symbol)
  const page = await client.marketData.candlePage(market_id, {
    ...rangeOf(range),
    interval,
    priceType: price,
  })
  return page.candles
}

export const announcements = async (context: Context) =>
  (await context.anonymous().marketData.announcements()).announcements

export const builders = async (
  context: Context,
  {
    day,
    builder,
    limit,
  }: { readonly day: string | undefined; readonly builder: string | undefined; readonly limit: number },
) =>
  (
    await context.anonymous().marketData.builders({
      limit,
      ...(day !== undefined && { day }),
      ...(builder !== undefined && { builder }),
    })
  ).builders
