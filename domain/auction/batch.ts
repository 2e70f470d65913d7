/**
 * Clears a book and applies the fills to matched positions. Orders that the contract would reject are left
 * out.
 */

import type { RestingOrder } from '../book/book.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Side } from '../orders/order.ts'
import { positionClosing } from '../orders/position-closing.ts'
import { exposureOf, isLiquidatable } from '../positions/margin.ts'
import { openingBasis, type Position, type PositionFill } from '../positions/position.ts'
import { isPastGrace } from '../risk/bank-pause.ts'
import { type AccountRefusal, settleAccount } from '../settlement/settle-account.ts'
import type { FundingIndex, Quote, Seconds, Seq, UserId } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'
import { type AuctionInput, clear } from './auction.ts'
import { NO_EXCLUSIONS } from './candidates.ts'
import type { Cancel, Cleared, Clearing, Fill } from './clearing.ts'
import { type Part, splitIntoParts } from './parts.ts'
import { PoolBalance } from './pool-limit.ts'

export interface MatchedBatch {
  readonly clearing: Cleared
  readonly parts: readonly Part[]
  /** Positions after the batch, for every account with a fill. */
  readonly positions: ReadonlyMap<UserId, Position>
  /** Position closings and flips of the batch, by account. */
  readonly closings: ReadonlyMap<UserId, BatchClosing>
}

/**
 * The fill that closes or turns a position, and the side of the reduce-only orders that leave the book with
 * it.
 */
export interface BatchClosing {
  readonly part: number
  readonly seq: Seq
  readonly side: Side
}

export interface MatchTerms {
  readonly spec: MarketSpec
  readonly fundingIndex: FundingIndex
  readonly positions: (account: UserId) => Position
  readonly orderOf: (seq: Seq) => RestingOrder
  readonly pool: Quote
}

/** Matched orders that the contract would reject. */
export interface MatchRefusal {
  readonly orders: readonly Seq[]
  /**
   * `NOT_LIQUIDATABLE`: an earlier part of the batch made the position of a forced order healthy.
   * `POOL_SHORT`: the pool could not pay the orders, see `pool-limit`; they wait until it can.
   */
  readonly reason: AccountRefusal['code'] | 'NOT_LIQUIDATABLE' | 'POOL_SHORT'
}

/**
 * Applies a clearing to the matched positions with the contract's rules, part by part.
 * It returns every order that the contract would reject; the caller clears again without them.
 */
export function matchBatch(
  terms: MatchTerms,
  clearing: Cleared,
): Verdict<MatchedBatch, ReadonlyMap<UserId, MatchRefusal>> {
  const parts = splitIntoParts(clearing)
  const positions = new Map<UserId, Position>()
  const closings = new Map<UserId, BatchClosing>()
  const refusals = new Map<UserId, MatchRefusal>()
  const pool = new PoolBalance(terms.pool)
  for (const [at, part] of parts.entries()) {
    for (const run of byAccount(part.fills)) {
      const account = (run[0] as Fill).account
      if (refusals.has(account)) continue
      const before = positions.get(account) ?? terms.positions(account)
      const fills = run.map((fill) => positionFill(terms, clearing, fill))
      const { oracle } = clearing.inputs
      const [forced] = run.filter(({ seq }) => terms.orderOf(seq).forced)
      if (forced !== undefined && !isLiquidatable(terms.spec, before, terms.fundingIndex, oracle)) {
        refusals.set(account, { orders: [forced.seq], reason: 'NOT_LIQUIDATABLE' })
        continue
      }
      const { makerFee, takerFee } = terms.spec
      const settled = settleAccount(terms.spec, before, fills, {
        oracle,
        makerFee,
        takerFee,
        fundingIndex: terms.fundingIndex,
      })
      if (!settled.ok) {
        refusals.set(account, matchRefusal(run, settled.refusal))
        continue
      }
      const { position, freeDelta, fee } = settled.value
      positions.set(account, position)
      const closes = run.filter(({ reducing }) => reducing > 0).map(({ seq }) => terms.orderOf(seq))
      pool.pay(account, freeDelta + fee, closes)
      const closing = positionClosing(before.size, run)
      if (closing) closings.set(account, { part: at + 1, seq: closing.fill.seq, side: closing.side })
    }
    pool.endPart()
  }
  if (refusals.size === 0)
    for (const [account, orders] of pool.unpaid()) refusals.set(account, { orders, reason: 'POOL_SHORT' })
  return refusals.size > 0 ? refuse(refusals) : accept({ clearing, parts, positions, closings })
}

export interface BatchOutcome {
  readonly clearing: Clearing
  readonly matched: MatchedBatch | null
  /**
   * Orders left out because the contract would reject them.
   * A reason other than `POOL_SHORT` shows that auction and contract disagree.
   */
  readonly refused: readonly MatchRefusal[]
  /**
   * Accounts of the still rejected orders after `MATCH_ROUNDS` rounds; otherwise null.
   * If set, the clearing must not be written, and the next attempt must leave these accounts out.
   */
  readonly unresolved: ReadonlySet<UserId> | null
  /**
   * `ioc` orders that end because they took part in the auction.
   * They are not part of the clearing, which depends on no flag.
   */
  readonly remainders?: readonly Cancel[]
}

/** Maximum rounds of one attempt that leave out refused orders. Each round costs as much as an auction. */
export const MATCH_ROUNDS = 5

export interface BatchInput extends AuctionInput {
  /** Market pool after everything matched before is settled. */
  readonly pool: Quote
  /** End of the bank's last pause; 0 if there was none. */
  readonly pauseEndsAt?: Seconds
}

/**
 * Forced orders of positions that the contract would not liquidate at this price and time.
 * The orders stay in the book until their liquidation decides on them.
 */
function sparedOrders({ spec, book, positions, fundingIndex, oracle, asOf, pauseEndsAt }: BatchInput): Seq[] {
  const forced = [...book.marketOrders('LONG'), ...book.marketOrders('SHORT')].filter((order) => order.forced)
  const isDue = ({ account }: RestingOrder): boolean => {
    const position = positions(account)
    return (
      isLiquidatable(spec, position, fundingIndex, oracle) &&
      isPastGrace(
        pauseEndsAt ?? (0 as Seconds),
        asOf,
        exposureOf(spec, position, fundingIndex, oracle).equity,
      )
    )
  }
  return forced.filter((order) => !isDue(order)).map(({ seq }) => seq)
}

/**
 * Clears the book, and repeats without the orders that the contract would reject, until every fill can
 * settle.
 */
export function clearAndMatch(input: BatchInput): BatchOutcome {
  const refused: MatchRefusal[] = []
  const accounts = new Set<UserId>()
  const orders = new Set<Seq>([...(input.excluded?.orders ?? []), ...sparedOrders(input)])
  const terms: MatchTerms = { ...input, orderOf: (seq) => input.book.get(seq) as RestingOrder }
  for (let round = 1; ; round++) {
    const clearing = clear({
      ...input,
      excluded: { ...NO_EXCLUSIONS, ...input.excluded, orders },
    })
    if (clearing.outcome === 'no_cross') return { clearing, matched: null, refused, unresolved: null }
    const verdict = matchBatch(terms, clearing)
    if (verdict.ok) return { clearing, matched: verdict.value, refused, unresolved: null }
    for (const [account, refusal] of verdict.refusal) {
      accounts.add(account)
      refused.push(refusal)
      for (const seq of refusal.orders) orders.add(seq)
    }
    if (round === MATCH_ROUNDS) return { clearing, matched: null, refused, unresolved: accounts }
  }
}

/**
 * Clears the book in mode cancel-only, in which one side of every step must be a forced order. Null without forced orders.
 * The side with more steps is tried first, then the other side.
 */
export function clearForced(input: BatchInput): BatchOutcome | null {
  const stepsOn = (side: Side): number =>
    input.book.marketOrders(side).reduce((sum, { forced, remaining }) => sum + (forced ? remaining : 0), 0)
  const sides = (['LONG', 'SHORT'] as const).filter((side) => stepsOn(side) > 0)
  let last: BatchOutcome | null = null
  for (const forcedOn of sides.sort((a, b) => stepsOn(b) - stepsOn(a))) {
    last = clearAndMatch({ ...input, excluded: { ...NO_EXCLUSIONS, ...input.excluded, forcedOn } })
    if (last.clearing.outcome !== 'no_cross') return last
  }
  return last
}

function matchRefusal(run: readonly Fill[], refusal: AccountRefusal): MatchRefusal {
  const culprits = 'fill' in refusal ? [run[refusal.fill] as Fill] : run.filter(({ opening }) => opening > 0)
  const orders = culprits.length > 0 ? culprits : run
  return { orders: orders.map(({ seq }) => seq), reason: refusal.code }
}

/** Groups neighbouring fills of one account, in the given order. */
export function byAccount<T extends { readonly account: UserId }>(fills: readonly T[]): T[][] {
  const runs: T[][] = []
  for (const fill of fills) {
    const run = runs.at(-1)
    if (run?.[0]?.account === fill.account) run.push(fill)
    else runs.push([fill])
  }
  return runs
}

function positionFill(terms: MatchTerms, { price, inputs }: Cleared, fill: Fill): PositionFill {
  const { side, limit, leverage } = terms.orderOf(fill.seq)
  const basis = openingBasis(terms.spec, { side, limit }, price, inputs.oracle)
  return { side, price, steps: fill.fill, takerSteps: fill.taker, leverage, basis }
}
