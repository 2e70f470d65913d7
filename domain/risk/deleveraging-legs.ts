/**
 * Chooses the counterparties of a deleveraging and how much of the position closes against each: by rank, and no
 * more steps than needed.
 */

import type { MarketSpec } from '../market/market.ts'
import { exposureOf } from '../positions/margin.ts'
import { closedShare, marginOf, type Position } from '../positions/position.ts'
import type { Address, FundingIndex, Price, Quote, Steps } from '../units.ts'
import { BinaryHeap } from './binary-heap.ts'
import {
  closeAgainst,
  compareRanks,
  type DeleveragingLeg,
  type Ranked,
  reduced,
  scoreOf,
} from './deleverage.ts'
import { type Backstop, inherit } from './liquidation.ts'

/**
 * Most legs of one action; further actions continue. A leg costs 51,000 gas with its bytes, the check for
 * repeated counterparties about 250 per pair of legs: 6.4 million gas in all. No leg uses a new storage slot,
 * because a counterparty has a position and a balance, so the limit of new slots does not bind.
 */
export const MAX_LEGS = 100

/**
 * Most reduce-only orders that end with the positions of the counterparties of one action, because one transaction ends them when the
 * action is mined. The first leg is never left out for them; an account has at most 500.
 */
export const MOST_ENDED_ORDERS = 1_000

export interface Counterparty {
  readonly account: Address
  readonly position: Position
  /** Its reduce-only orders that have not ended; none if absent. */
  readonly orders?: number
}

/** What the closing steps are computed from. */
export interface LegTerms {
  readonly spec: MarketSpec
  readonly position: Position
  readonly index: FundingIndex
  readonly oracle: Price
  /** Null if the market has none; 'itself' if the account is the backstop. */
  readonly backstop: Backstop | 'itself' | null
  /** What the market's pool holds once everything that was matched or decided before is executed. */
  readonly pool: Quote
}

export interface RankedLeg {
  readonly counterparty: Address
  readonly steps: Steps
  /** The counterparty's score before the leg. */
  readonly score: bigint
  /** Wei that the pool pays to the counterparty. */
  readonly payout: Quote
}

/**
 * The legs of the next action. Every leg closes exactly its steps if the contract executes it at the same
 * state; together they close `stepsToClose`, or less if the counterparties, the pool, `MAX_LEGS` or
 * `MOST_ENDED_ORDERS` do not suffice: the pool can be short while other positions have negative equity.
 * `ranked` must be in the order of `compareRanks`; it is read only as far as needed.
 */
export function deleveragingLegs(terms: LegTerms, ranked: Iterable<Counterparty>): RankedLeg[] {
  const { spec, index, oracle } = terms
  const legs: RankedLeg[] = []
  let position = terms.position
  let due = stepsToClose(terms) as number
  let left: bigint = terms.pool
  let ended = 0
  for (const { account, position: other, orders = 0 } of ranked) {
    if (due === 0 || legs.length === MAX_LEGS) break
    const score = scoreOf(spec, other, index, oracle)
    const close = (steps: number) => closeAgainst(spec, position, other, steps as Steps, index, oracle)
    const leg = payable(close, due, left)
    if (leg === null || score === null) continue
    ended += orders
    if (legs.length > 0 && ended > MOST_ENDED_ORDERS) break
    legs.push({ counterparty: account, steps: leg.steps, score, payout: leg.payout })
    position = leg.position
    due -= leg.steps
    left -= leg.payout
  }
  return legs
}

/** The leg of at most `steps` steps whose payout is at most `most`. Null if there is none. */
function payable(
  close: (steps: number) => DeleveragingLeg | null,
  steps: number,
  most: bigint,
): DeleveragingLeg | null {
  const whole = close(steps)
  if (whole === null || whole.payout <= most) return whole
  const fewer = Number((BigInt(whole.steps) * most) / whole.payout)
  const part = fewer > 0 ? close(fewer) : null
  return part !== null && part.payout <= most ? part : null
}

/**
 * The fewest steps that have to be closed by deleveraging: all of a position without equity; else as many as
 * leave a rest that the backstop can inherit, all if it can inherit no rest. A close at the bankruptcy price
 * leaves the margin ratio of the rest as it is, so no close makes the position healthy.
 */
export function stepsToClose(terms: LegTerms): Steps {
  const { spec, position, index, oracle, backstop } = terms
  const all = Math.abs(position.size)
  if (backstop === null || backstop === 'itself') return all as Steps
  if (exposureOf(spec, position, index, oracle).equity <= 0n) return all as Steps
  const isRest = (steps: number): boolean =>
    steps < all && inherit(spec, restOf(position, (all - steps) as Steps, index), backstop, index, oracle).ok
  // While the rest only reduces the backstop's position, more of it can be inherited; from there on, less.
  const netted = position.size * backstop.position.size < 0 ? Math.abs(backstop.position.size) : 0
  return (all - largest(isRest, Math.min(netted, all - 1), all)) as Steps
}

/** The largest number from `low` to `end`, exclusive, that has the property, if those with it are adjacent; 0 if `low` lacks it. */
function largest(has: (value: number) => boolean, low: number, end: number): number {
  if (low > 0 && !has(low)) return 0
  let [yes, no] = [low, end]
  while (no - yes > 1) {
    const middle = Math.floor((yes + no) / 2)
    if (has(middle)) yes = middle
    else no = middle
  }
  return yes
}

/** The position after `closed` of its steps closed at the bankruptcy price. */
const restOf = (position: Position, closed: Steps, index: FundingIndex): Position =>
  reduced(position, closed, closedShare(position, marginOf(position, index), closed), index)

interface RankedPosition extends Counterparty, Ranked {}

/**
 * The positions that qualify as counterparties, in the order of `compareRanks`. Scores all of them, but sorts
 * only those that are read.
 */
export function* byRank(
  { spec, index, oracle }: Pick<LegTerms, 'spec' | 'index' | 'oracle'>,
  opposite: Iterable<Counterparty>,
): Generator<Counterparty> {
  const ranked: RankedPosition[] = []
  for (const counterparty of opposite) {
    const score = scoreOf(spec, counterparty.position, index, oracle)
    if (score !== null) ranked.push({ ...counterparty, score })
  }
  const heap = new BinaryHeap<RankedPosition>(compareRanks, ranked)
  for (let next = heap.pop(); next !== undefined; next = heap.pop()) yield next
}
