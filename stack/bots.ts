/** Demo traders on seeded accounts, through public REST only: two quote both sides of every market, two trade against them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '../client/client.ts'
import { fromE18 } from '../client/decimals.ts'
import type { Market, Position } from '../client/responses.ts'
import type { Side } from '../domain/orders/order.ts'
import { StackError } from './options.ts'
import type { StackAccount } from './stack-file.ts'

const QUOTE_EVERY_MS = 4_000
const TRADE_EVERY_MS = 2_500
const LEVELS = 3
/** Distance of the best quote from the oracle price and between levels, in fractions of it. */
const SPREAD = 0.0004
/** Notional of one quote, in USDM. */
const QUOTE_SIZE = 20_000
const TRADE_SIZE = 4_000
/** A taker whose position has a larger notional than this, in USDM, reduces it. */
const LARGE_POSITION = 200_000
const LEVERAGE = 3

interface Bot {
  readonly client: Client
  /** Hashes of the resting quotes, by market. */
  readonly quotes: Map<number, readonly string[]>
}

const opposite = (side: Side): Side => (side === 'LONG' ? 'SHORT' : 'LONG')
const anySide = (): Side => (Math.random() < 0.5 ? 'LONG' : 'SHORT')

/** On the market's grid, never below its minimum. */
function quantityFor(market: Market, notional: number): string {
  const price = market.oracle_price ?? 1
  const steps = Math.max(
    Math.round(notional / price / market.step_size),
    market.min_order_size / market.step_size,
  )
  return fromE18(BigInt(Math.round(steps)) * BigInt(market.step_size_e18_raw))
}

/** On the market's grid, inside a binary market's open interval. */
function priceFor(market: Market, price: number): string {
  const tick = BigInt(market.tick_size_e18_raw)
  const ticks = BigInt(Math.max(1, Math.round(price / market.tick_size)))
  const highest = market.type === 'binary_future' ? 10n ** 18n / tick - 1n : ticks
  return fromE18((ticks < highest ? ticks : highest) * tick)
}

/** Places the new quotes before it cancels the old quotes, so that the book is never empty. */
async function quote({ client, quotes }: Bot, market: Market): Promise<void> {
  const oracle = market.oracle_price
  if (oracle === null) return
  const spread = market.type === 'binary_future' ? 0.02 : SPREAD
  const sides: readonly Side[] = ['LONG', 'SHORT']
  const newQuotes = sides.flatMap((side) =>
    Array.from({ length: LEVELS }, (_, level) => {
      const away = spread * (level + 0.5 + Math.random() / 2) * (side === 'LONG' ? -1 : 1)
      return { side, price: priceFor(market, oracle * (1 + away)) }
    }),
  )
  const quantity = quantityFor(market, QUOTE_SIZE)
  const leverage = Math.min(LEVERAGE, market.max_leverage)
  const placed: string[] = []
  for (const newQuote of newQuotes) {
    const { order } = await client.orders.place({
      marketId: market.market_id,
      quantity,
      leverage,
      ...newQuote,
    })
    placed.push(order.order_hash)
  }
  const old = quotes.get(market.market_id) ?? []
  quotes.set(market.market_id, placed)
  for (const hash of old) await client.orders.cancel(hash)
}

/** Places a small market order: against a large position, otherwise on a random side. */
async function trade({ client }: Bot, market: Market): Promise<void> {
  const [position] = await client.account.positions({ marketId: market.market_id })
  const side = sideFor(position)
  const reduceOnly = position?.side === opposite(side) && (position.notional ?? 0) > LARGE_POSITION
  const quantity = quantityFor(market, TRADE_SIZE * (0.25 + Math.random()))
  const leverage = Math.min(LEVERAGE, market.max_leverage)
  await client.orders.place({ marketId: market.market_id, side, quantity, leverage, reduceOnly })
}

const sideFor = (position: Position | undefined): Side =>
  position?.side && (position.notional ?? 0) > LARGE_POSITION ? opposite(position.side) : anySide()

/** Cancels the orders of an earlier run. */
async function cancelLeftovers({ client }: Bot): Promise<void> {
  for (const order of await client.orders.list({ status: 'OPEN', limit: 1000 }))
    await client.orders.cancel(order.order_hash)
}

/** Repeats `step` until `stop` is aborted. A failed step is skipped; its message is logged once until it changes. */
async function repeat(
  name: string,
  everyMs: number,
  stop: AbortSignal,
  step: () => Promise<void>,
): Promise<void> {
  let lastFailure = ''
  while (!stop.aborted) {
    try {
      await step()
      lastFailure = ''
    } catch (error) {
      const message = (error as Error).message
      if (message !== lastFailure) console.log(`${new Date().toISOString()} ${name}: ${message}`)
      lastFailure = message
    }
    await sleep(everyMs * (0.75 + Math.random() / 2), undefined, { signal: stop }).catch(() => {})
  }
}

async function main(): Promise<void> {
  const { BASE_URL, BOT_ACCOUNTS } = process.env
  if (!BASE_URL) throw new StackError('BASE_URL is not set: it must be the base URL of the api')
  if (!BOT_ACCOUNTS)
    throw new StackError('BOT_ACCOUNTS is not set: it must be a JSON list of accounts as in stack.json')
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop.abort())

  const bots = (JSON.parse(BOT_ACCOUNTS) as StackAccount[]).map(({ private_key, api_key }): Bot => {
    const client = new Client({ baseUrl: BASE_URL, privateKey: private_key, apiKey: api_key })
    return { client, quotes: new Map() }
  })
  await Promise.all(bots.map(cancelLeftovers))
  const markets = async (bot: Bot): Promise<readonly Market[]> =>
    (await bot.client.marketData.markets()).filter(({ trading_enabled }) => trading_enabled)
  const half = bots.length / 2
  const quoting = bots.slice(0, half).map((bot, index) =>
    repeat(`maker ${index}`, QUOTE_EVERY_MS, stop.signal, async () => {
      for (const market of await markets(bot)) await quote(bot, market)
    }),
  )
  const trading = bots.slice(half).map((bot, index) =>
    repeat(`taker ${index}`, TRADE_EVERY_MS, stop.signal, async () => {
      const choice = await markets(bot)
      const market = choice[Math.floor(Math.random() * choice.length)]
      if (market !== undefined) await trade(bot, market)
    }),
  )
  await Promise.all([...quoting, ...trading])
}

await main()
