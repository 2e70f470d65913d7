/**
 * Chooses the counterparties of a deleveraging, and how many steps close against each: by rank, and no more than needed.
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
 * Maximum legs of one action: 6.4 million gas. A leg costs 51,000 gas with calldata and no new slot; the check for
 * repeated counterparties costs 250 gas per pair of legs.
 */
export const MAX_LEGS = 100

/**
 * Maximum reduce-only orders that end with the counterparties' positions, because one transaction ends them
 * when the action is mined.
 * The first leg is always included; an account has at most 500 orders.
 */
export const MOST_ENDED_ORDERS = 1_000

export interface Counterparty {
  readonly account: Address
  readonly position: Position
  /** Number of its reduce-only orders that have not ended; absent: 0. */
  readonly orders?: number
}

/** Inputs of the number of steps to close. */
export interface LegTerms {
  readonly spec: MarketSpec
  readonly position: Position
  readonly index: FundingIndex
  readonly oracle: Price
  /** Null if the market has none; 'itself' if the account is the backstop. */
  readonly backstop: Backstop | 'itself' | null
  /** Market pool after everything matched or decided before is executed. */
  readonly pool: Quote
}

export interface RankedLeg {
  readonly counterparty: Address
  readonly steps: Steps
  /** Score of the counterparty before the leg. */
  readonly score: bigint
  /** Wei that the pool pays to the counterparty. */
  readonly payout: Quote
}

/**
 * Legs of the next action; each closes exactly its steps on an unchanged chain. Together they may close less than
 * `stepsToClose`. `ranked`: in `compareRanks` order, read lazily.
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
    // The pool can be short, for example while other positions have negative equity.
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

/** A leg of at most `steps` steps with a payout of at most `most`; null if there is none. */
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
 * Minimum steps to deleverage until the backstop can inherit the rest: all without equity, or if it can inherit no
 * rest. Closing at the bankruptcy price alone never makes the rest healthy.
 */
export function stepsToClose(terms: LegTerms): Steps {
  const { spec, position, index, oracle, backstop } = terms
  const all = Math.abs(position.size)
  if (backstop === null || backstop === 'itself') return all as Steps
  if (exposureOf(spec, position, index, oracle).equity <= 0n) return all as Steps
  const isRest = (steps: number): boolean =>
    steps < all && inherit(spec, restOf(position, (all - steps) as Steps, index), backstop, index, oracle).ok
  // Inheritable size grows while the rest only reduces the backstop's position, and shrinks beyond that point.
  const netted = position.size * backstop.position.size < 0 ? Math.abs(backstop.position.size) : 0
  return (all - largest(isRest, Math.min(netted, all - 1), all)) as Steps
}

/**
 * Largest number in [`low`, `end`) with the property; 0 if `low` lacks it. Numbers with the property must be adjacent.
 */
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

/** Remaining position after `closed` steps closed at the bankruptcy price. */
const restOf = (position: Position, closed: Steps, index: FundingIndex): Position =>
  reduced(position, closed, closedShare(position, marginOf(position, index), closed), index)

interface RankedPosition extends Counterparty, Ranked {}

/**
 * Qualifying counterparties in `compareRanks` order. All are scored, but only the consumed part is sorted.
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
