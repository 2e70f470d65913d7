/** The laws of batches, orders and executed actions of one market, see `laws.ts`. */

import type { BatchOutcome } from '../domain/auction/batch.ts'
import type { Cleared, Protection } from '../domain/auction/clearing.ts'
import type { Book, RestingOrder } from '../domain/book/book.ts'
import { priceBand } from '../domain/market/band.ts'
import { type MarketSpec, priceOf } from '../domain/market/market.ts'
import { DEFAULT_PRICE_PROTECTION } from '../domain/market/price-protection.ts'
import type { Position } from '../domain/positions/position.ts'
import type { MarketPositions } from '../domain/risk/market-positions.ts'
import { ONE, type Seq, type Ticks, type UserId } from '../domain/units.ts'
import {
  type ActionMoment,
  BACKSTOP,
  type Bank,
  type ChainAction,
  type ChainMarket,
  type PartFill,
} from './chain.ts'
import { isSpared } from './ladder-laws.ts'
import { equityAt, isBelowThreshold, isUnder, type Prices, stakeAt } from './reference.ts'
import type { Tally } from './tally.ts'
import type { Turn } from './turn.ts'

interface LawMarket {
  readonly spec: MarketSpec
  readonly book: Book
  readonly positions: MarketPositions
  readonly chain: ChainMarket
  readonly bank: Bank
  readonly tally: Tally
}

// ------------------------------------------------------------------ batches

/** Before the batch is applied: the book and the positions are those that it was cleared on. `standing`: the head of the auction before. */
export function checkBatch(market: LawMarket, outcome: BatchOutcome, turn: Turn, standing: number): void {
  const { tally } = market
  for (const { reason } of outcome.refused) {
    // A forced order of several parts can make its position healthy before the last of them.
    const isKnown = reason === 'POOL_SHORT' || reason === 'NOT_LIQUIDATABLE'
    tally.check('left-out', isKnown, () => `the auction matched what the contract rejects: ${reason}`)
    if (reason === 'POOL_SHORT') checkPoolWait(market, turn)
  }
  if (outcome.matched === null) return
  for (const { seq } of outcome.matched.clearing.fills)
    checkProtection(market, outcome.matched.clearing, seq, standing)
}

/** If no equity is negative at the clearing price, the pool is at least the sum of those that close. */
function checkPoolWait({ spec, positions, tally }: LawMarket, { index, oracle }: Turn): void {
  const { lo, hi } = priceBand(spec, oracle)
  const edges = [lo, hi].map((tick) => ({ index, oracle: priceOf(spec, tick) }))
  const isShort = [...positions.values()].some((each) =>
    edges.some((prices) => each.size !== 0 && equityAt(spec, each, prices) < 0n),
  )
  tally.check('pool-waits', isShort, () => 'a close waits although every position can pay')
}

/**
 * The protection is R·(1+w) for a buy, with R = min(level, max(best, O)·(1+w)), at most O for a forced order, and another account has stood at
 * `best` or better. A reservation can make it narrower.
 */
function checkProtection(market: LawMarket, clearing: Cleared, seq: Seq, standing: number): void {
  const { spec, book, tally } = market
  const order = book.get(seq) as RestingOrder
  if (order.type !== 'MARKET') return
  const isBuy = order.side === 'LONG'
  const found = clearing.protections.find((each) => each.seq === seq)
  const { best = null, price = clearing.price } = found ?? {}
  const due = protectedTick(spec, order, clearing, found)
  const beyond = isBuy ? price - due : due - price
  const isDue = beyond <= 1 && (order.openable > 0 || beyond >= -1)
  const isKept = isBuy ? clearing.price <= price : clearing.price >= price
  const isStanding = best === null || hasStood(book, order, best, standing)
  tally.check(
    'protected',
    found !== undefined && isDue && isKept && isStanding,
    () => `order ${seq} fills at ${clearing.price}, protected at ${price}, due at ${due}`,
  )
}

/** In ticks, to within one. */
function protectedTick(
  spec: MarketSpec,
  order: RestingOrder,
  { inputs: { oracle }, lo, hi }: Cleared,
  found: Protection | undefined,
): number {
  const isBuy = order.side === 'LONG'
  const factor = order.forced ? 3n * BigInt(1 + order.widenings) : order.triggered ? 3n : 1n
  const width = DEFAULT_PRICE_PROTECTION[spec.kind] * factor
  const { best = null, level = null } = found ?? {}
  const near = (a: bigint, b: bigint): bigint => (isBuy === a < b ? a : b)
  const far = (a: bigint, b: bigint): bigint => (isBuy === a > b ? a : b)
  const reference =
    best === null || level === null
      ? oracle
      : near(priceOf(spec, level), widened(spec, isBuy, far(priceOf(spec, best), oracle), width))
  const started = order.forced ? near(reference, oracle) : reference
  const tick = Number(widened(spec, isBuy, started, width) / spec.tick)
  return Math.max(lo, Math.min(hi, tick))
}

/** `price` moved by a share of it against the trader; in a binary market by the width, at most half of the way to 0 and 1. */
function widened({ kind }: MarketSpec, isBuy: boolean, price: bigint, width: bigint): bigint {
  const half = [width, price / 2n, (ONE - price) / 2n].reduce((least, each) => (each < least ? each : least))
  const distance = kind === 'binary_future' ? half : (price * width) / ONE
  return isBuy ? price + distance : price - distance
}

const hasStood = (book: Book, taker: RestingOrder, best: Ticks, standing: number): boolean => {
  const side = taker.side === 'LONG' ? 'SHORT' : 'LONG'
  for (const { orders } of book.levels(side, best))
    if (orders.some(({ seq, account }) => seq <= standing && account !== taker.account)) return true
  return false
}

// ------------------------------------------------------------------ orders

/**
 * All orders against the matched positions. An order can reserve for more steps than open: position steps freed by an
 * ended order are assigned at the position's next change.
 */
export function checkOrders({ book, positions, tally }: LawMarket): void {
  for (const account of book.accounts()) {
    const orders = book.ordersOf(account)
    let { size } = positions.of(account) as { size: number }
    for (const order of [...orders].sort((a, b) => a.seq - b.seq)) {
      const sign = order.side === 'LONG' ? 1 : -1
      if (order.reduceOnly) {
        const isReducing = positions.of(account).size * sign < 0
        tally.check(
          'reduce-only',
          isReducing,
          () => `order ${order.seq} of account ${account} reduces nothing`,
        )
        continue
      }
      const closing = size * sign < 0 ? Math.min(Math.abs(size), order.remaining) : 0
      size += sign * closing
      const due = order.remaining - closing
      tally.check(
        're-reserved',
        order.openable >= due,
        () =>
          `order ${order.seq} of account ${account} reserves for ${order.openable} steps instead of ${due}`,
      )
    }
  }
}

/** Once everything sent is executed. */
export function checkMined({ positions, chain, tally }: LawMarket): void {
  for (const [account, position] of positions) {
    const mined = chain.positions.of(account)
    tally.check('mined', isSame(position, mined), () => `account ${account} has ${mined.size} on chain`)
  }
}

const isSame = (a: Position, b: Position): boolean =>
  a.size === b.size && a.entryNotional === b.entryNotional && a.foldedMargin === b.foldedMargin

// ------------------------------------------------------------------ actions

/** Checks before an action that it liquidates only positions that are due. */
export function checkLiquidated(market: LawMarket, action: ChainAction): void {
  const { spec, chain, bank, tally } = market
  if (action.kind === 'fund') return
  const prices: Prices = chain.pricesAt(action)
  const accounts =
    action.kind === 'part'
      ? new Set(action.fills.filter(({ forced }) => forced).map(({ account }) => account))
      : [action.account]
  for (const account of accounts) {
    const position = chain.positions.of(account)
    const isDue =
      action.kind === 'part'
        ? isBelowThreshold(spec, position, prices)
        : isUnder(spec, position, prices, spec.mmr)
    tally.check('threshold', isDue, () => `account ${account} is healthy when a ${action.kind} liquidates it`)
    const isEarly = isSpared(bank.pauseEndsAt, action.asOf, equityAt(spec, position, prices))
    tally.check('grace', !isEarly, () => `account ${account} has equity in the grace`)
  }
}

/** Accounts that opened, after their part was executed. */
export function checkMargins(market: LawMarket, action: ChainAction, opened: readonly UserId[]): void {
  const { spec, chain, tally } = market
  const prices = chain.pricesAt(action as ActionMoment)
  for (const account of opened) {
    const isUnderMargined = isUnder(spec, chain.positions.of(account), prices, spec.imr)
    tally.check('margined', !isUnderMargined, () => `account ${account} is below IMR after it has opened`)
  }
}

/** `before`: free balances. */
export function checkCosts(
  { bank, tally }: LawMarket,
  fills: readonly PartFill[],
  before: ReadonlyMap<UserId, bigint>,
): void {
  for (const [account, free] of before) {
    const own = fills.filter((fill) => fill.account === account)
    const held = own.reduce((sum, { order }) => sum + order.held, 0n)
    const cost = free - bank.freeOf(account)
    tally.check('covered', cost <= held, () => `a part costs account ${account} ${cost} of ${held}`)
  }
}

/** `before`: the backstop's position before the inheritance. */
export function checkBackstop(
  { spec, chain, tally }: LawMarket,
  action: ActionMoment,
  before: Position,
): void {
  const prices = chain.pricesAt(action)
  const after = chain.positions.of(BACKSTOP)
  if (Math.abs(after.size) <= Math.abs(before.size)) return
  const isBacked = !isUnder(spec, after, prices, spec.imr) && stakeAt(spec, after, prices) <= chain.cap * ONE
  tally.check('backed', isBacked, () => `the backstop has ${after.size} steps, of its cap ${chain.cap}`)
}
