/**
 * Finds positions below the liquidation threshold, and the best deleveraging counterparties, without computing every
 * position.
 */

import type { MarketSpec } from '../market/market.ts'
import { exposureOf, isLiquidatable, LIQUIDATION_BUFFER } from '../positions/margin.ts'
import type { Position } from '../positions/position.ts'
import { ONE, type UserId } from '../units.ts'
import { nthLargest, type RiskPrices, scoreBounds } from './score-bounds.ts'
import { type KeyedPosition, SideKeys } from './side-keys.ts'

/**
 * Bound of the relative error between keys and thresholds: four roundings, times a safety factor of two. Positions
 * within it are computed exactly.
 */
const KEY_ERROR = 8 * Number.EPSILON

/** Positions ordered by distance to liquidation. Mutable; it stores keys only, no positions. */
export class PositionScanner {
  readonly #longs = new SideKeys()
  /** Keys of shorts are negated, so that the largest key is nearest to the threshold on either side. */
  readonly #shorts = new SideKeys()

  static of(positions: Iterable<readonly [UserId, Position]>): PositionScanner {
    const scanner = new PositionScanner()
    for (const [account, position] of positions) {
      if (position.size !== 0) scanner.#sideOf(position).append(keyed(account, position))
    }
    scanner.#longs.arrange()
    scanner.#shorts.arrange()
    return scanner
  }

  /** Number of non-flat positions. */
  get size(): number {
    return this.#longs.size + this.#shorts.size
  }

  set(account: UserId, position: Position): void {
    if (position.size <= 0) this.#longs.delete(account)
    if (position.size >= 0) this.#shorts.delete(account)
    if (position.size !== 0) this.#sideOf(position).set(keyed(account, position))
  }

  /**
   * Accounts with an `isLiquidatable` position, farthest below the threshold per step first.
   * Lazy: only consumed accounts are computed, candidates exactly. No position may be set during the iteration.
   */
  *liquidatable(terms: RiskPrices, positionOf: (account: UserId) => Position): Generator<UserId> {
    const { spec, index, oracle } = terms
    for (const account of this.#candidates(terms, thresholdRate(spec))) {
      if (isLiquidatable(spec, positionOf(account), index, oracle)) yield account
    }
  }

  /** Liquidatable accounts without equity, which the grace after a bank pause does not protect. Also lazy. */
  *withoutEquity(terms: RiskPrices, positionOf: (account: UserId) => Position): Generator<UserId> {
    const { spec, index, oracle } = terms
    for (const account of this.#candidates(terms, 0n)) {
      const position = positionOf(account)
      const { equity } = exposureOf(spec, position, index, oracle)
      if (equity <= 0n && isLiquidatable(spec, position, index, oracle)) yield account
    }
  }

  #sideOf({ size }: Position): SideKeys {
    return size > 0 ? this.#longs : this.#shorts
  }

  *#candidates(terms: RiskPrices, rate: bigint): Generator<UserId> {
    const thresholds = thresholdsOf(terms, rate)
    const sides = [this.#longs.from(lowered(thresholds.long)), this.#shorts.from(lowered(thresholds.short))]
    const [longs, shorts] = sides as [Generator<KeyedPosition>, Generator<KeyedPosition>]
    let [long, short] = [longs.next(), shorts.next()]
    while (!long.done || !short.done) {
      const isLong = distance(long, thresholds.long) >= distance(short, thresholds.short)
      yield ((isLong ? long : short).value as KeyedPosition).account
      if (isLong) long = longs.next()
      else short = shorts.next()
    }
  }

  /**
   * At least the `count` best-ranked accounts that can be deleveraged against `position`, unordered; all if fewer
   * qualify. Rounding and equal scores may add a few.
   */
  counterparties(terms: RiskPrices, position: Position, count: number): UserId[] {
    const side = position.size > 0 ? this.#shorts : this.#longs
    const { low, high } = scoreBounds(terms, position, side)
    const least = nthLargest(low, count)
    const accounts: UserId[] = []
    for (let place = 0; place < side.size; place++) {
      const score = high[place] as number
      if (score >= 0 && score >= least) accounts.push(side.accountAt(place))
    }
    return accounts
  }
}

/**
 * Key in wei per step, negated for a short. It changes only with the position; price, index and rates move the
 * thresholds of a whole side. Keys are doubles.
 */
function keyed(account: UserId, { size, entryNotional, foldedMargin }: Position): KeyedPosition {
  // A long is below the threshold rate t at price O and funding F if O(1 - t) - F < (entry - folded margin) / size, a
  // short if (entry + folded margin) / size < O(1 + t) - F; all per step.
  const owed = size > 0 ? entryNotional - foldedMargin : entryNotional + foldedMargin
  return { account, key: Number(owed) / size, entry: Number(entryNotional) / Math.abs(size) }
}

const lowered = (threshold: number): number => threshold - Math.abs(threshold) * KEY_ERROR

const distance = ({ done, value }: IteratorResult<KeyedPosition>, threshold: number): number =>
  done ? Number.NEGATIVE_INFINITY : value.key - threshold

const thresholdRate = ({ mmr }: MarketSpec): bigint => mmr + LIQUIDATION_BUFFER

/**
 * Keys above which the ratio of a long, or of a short by its negated key, is below `rate`. In wei per step.
 */
function thresholdsOf({ spec, index, oracle }: RiskPrices, rate: bigint): { long: number; short: number } {
  const value = spec.step * oracle
  const atStake = spec.kind === 'binary_future' ? spec.step * (ONE - oracle) : value
  const funding = index * ONE * ONE
  return {
    long: Number(value * (ONE - rate) - funding) / 1e36,
    short: Number(funding - value * ONE - atStake * rate) / 1e36,
  }
}
