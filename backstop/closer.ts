/**
 * Closes positions that the backstop has inherited, one order per market at a time over REST. It stores nothing: a turn
 * starts from positions and orders, so a restart only skips a turn.
 */
import type { Client } from '../client/client.ts'
import { fromE18 } from '../client/decimals.ts'
import type { Level, Market, PlacedOrder, Position } from '../client/responses.ts'
import {
  type ClosingLevel,
  type ClosingOrder,
  type ClosingRules,
  closingOrder,
} from '../domain/risk/backstop-closing.ts'
import type { Price, Steps, Ticks } from '../domain/units.ts'
import type { Clock } from '../service/clock.ts'
import type { Logger } from '../service/logger.ts'

export interface CloserPorts {
  readonly client: Client
  readonly rules: ClosingRules
  /** Between two turns. */
  readonly intervalMs: number
  readonly clock: Clock
  readonly logger: Logger
  /** An order was placed in the market. */
  readonly onOrder: (market: Market) => void
}

/** Levels that are read: in a quoted book they span far more than the bound. */
const DEPTH = 50
/** An order that is not replaced, because the process has ended, expires after this many intervals. */
const LIFE_INTERVALS = 3
const LIVE_ORDERS = 1_000

/** One turn: an order in each market with a position. A market that fails keeps no other from its turn, and rejects the turn at its end. */
export async function closePositions(ports: CloserPorts): Promise<void> {
  const { client } = ports
  const positions = await client.account.positions()
  const markets = new Map((await client.marketData.markets()).map((market) => [market.market_id, market]))
  const live = await client.orders.list({ status: 'OPEN', limit: LIVE_ORDERS })
  const failures: unknown[] = []
  for (const position of positions) {
    const market = markets.get(position.market_id)
    if (market === undefined) continue
    const own = live.filter(({ market_id, forced }) => market_id === market.market_id && !forced)
    await closeIn(ports, market, position, own).catch((error: unknown) => failures.push(error))
  }
  if (failures.length > 0) throw failures[0]
}

/** The orders of the last turn are cancelled first: they would keep the position's reducing capacity. */
async function closeIn(
  ports: CloserPorts,
  market: Market,
  position: Position,
  live: readonly PlacedOrder[],
): Promise<void> {
  const { client, logger, intervalMs, clock } = ports
  for (const { order_hash } of live) await client.orders.cancel(order_hash, 'backstop closing')
  const order = await decide(ports, market, position)
  if (order === null) return
  const { side, limit, steps } = order
  const price = fromE18(BigInt(limit) * BigInt(market.tick_size_e18_raw))
  const quantity = fromE18(BigInt(steps) * BigInt(market.step_size_e18_raw))
  const expiration = Math.ceil((clock.now() + LIFE_INTERVALS * intervalMs) / 1_000)
  const terms = { marketId: market.market_id, side, price, quantity, expiration, reduceOnly: true }
  const placed = await client.orders.place(terms)
  const details = { market_id: market.market_id, order_hash: placed.order.order_hash, side, price, quantity }
  logger.info(details, 'closing order placed')
  ports.onOrder(market)
}

/** Null also while the market does not trade, or has no live price. */
async function decide(
  { client, rules }: CloserPorts,
  market: Market,
  position: Position,
): Promise<ClosingOrder | null> {
  const { oracle_price_e18_raw: oracle, step_size_e18_raw: step } = market
  const size = Number((BigInt(position.size_e18_raw) + BigInt(position.pending_size_e18_raw)) / BigInt(step))
  if (size === 0 || !market.trading_enabled || market.oracle?.status !== 'live' || oracle === null)
    return null
  const book = await client.marketData.orderbook(market.market_id, { depth: DEPTH })
  const met = size > 0 ? book.long_levels : book.short_levels
  const grid = gridOf(market)
  const levels = met.map((level) => levelOf(level, market))
  return closingOrder({ market: grid, size: size as Steps, oracle: BigInt(oracle) as Price, levels }, rules)
}

const gridOf = (market: Market) => ({
  isBinary: market.type === 'binary_future',
  tick: BigInt(market.tick_size_e18_raw) as Price,
  minQuantity: stepsOf(market.min_order_size_e18_raw, market),
  maxQuantity: stepsOf(market.max_order_size_e18_raw, market),
})

const stepsOf = (quantity: string, { step_size_e18_raw }: Market): Steps =>
  Number(BigInt(quantity) / BigInt(step_size_e18_raw)) as Steps

const levelOf = ({ price_e18_raw, quantity_e18_raw }: Level, market: Market): ClosingLevel => ({
  limit: Number(BigInt(price_e18_raw) / BigInt(market.tick_size_e18_raw)) as Ticks,
  steps: stepsOf(quantity_e18_raw, market),
})
