/**
 * Candles of clearing prices (from batches) and of mark and oracle prices (from publications).
 * Pure folds; the indexer's tables store the results.
 */
import { type Millis, maxOf, minOf } from '../units.ts'
import { INTERVALS, type Interval, intervalStart } from './interval.ts'

/** Prices between `start` and the end of the interval. All prices have one unit: ticks or wei. */
export interface Candle<Value extends number | bigint = bigint> {
  readonly start: number
  readonly open: Value
  readonly high: Value
  readonly low: Value
  readonly close: Value
  /**
   * Matched steps without voided fills. This field and the next three are 0 in candles of published prices.
   */
  readonly steps: number
  /** Sum of price × steps, in ticks × steps. */
  readonly turnover: bigint
  /** Number of batches with matched steps, without voided batches. */
  readonly auctions: number
  /** Number of fills of these batches, both sides. */
  readonly fills: number
}

/** A candle in a response. A candle without a price repeats the previous close. */
export interface ShownCandle<Value extends number | bigint = bigint> extends Candle<Value> {
  readonly isGap: boolean
}

/** Joins the candles of two consecutive time spans. */
export const joined = <Value extends number | bigint>(a: Candle<Value>, b: Candle<Value>): Candle<Value> => ({
  start: a.start,
  open: a.open,
  high: maxOf(a.high, b.high),
  low: minOf(a.low, b.low),
  close: b.close,
  steps: a.steps + b.steps,
  turnover: a.turnover + b.turnover,
  auctions: a.auctions + b.auctions,
  fills: a.fills + b.fills,
})

/** Folds shorter candles, oldest first, into candles of the interval. Empty intervals yield no candle. */
export function toInterval<Value extends number | bigint>(
  candles: Iterable<Candle<Value>>,
  interval: Interval,
): Candle<Value>[] {
  const folded: Candle<Value>[] = []
  for (const candle of candles) {
    const start = intervalStart(interval, candle.start)
    const last = folded.at(-1)
    if (last?.start === start) folded[folded.length - 1] = joined(last, candle)
    else folded.push({ ...candle, start })
  }
  return folded
}

/**
 * Every interval of the range, oldest first. An interval without trades repeats the previous close with volume 0;
 * before the first close there is none. `previousClose`: close before `from`, or null.
 */
export function withGaps<Value extends number | bigint>(
  candles: readonly Candle<Value>[],
  { interval, from, to }: { readonly interval: Interval; readonly from: Millis; readonly to: Millis },
  previousClose: Value | null,
): ShownCandle<Value>[] {
  const shown: ShownCandle<Value>[] = []
  let close = previousClose
  let next = 0
  for (let start: number = from; start < to; start += INTERVALS[interval]) {
    const candle = candles[next]
    if (candle?.start === start) {
      shown.push({ ...candle, isGap: false })
      close = candle.close
      next++
    } else if (close !== null) {
      shown.push({ ...emptyAt(start, close), isGap: true })
    }
  }
  return shown
}

const emptyAt = <Value extends number | bigint>(start: number, price: Value): Candle<Value> => ({
  ...{ start, open: price, high: price, low: price, close: price },
  ...{ steps: 0, turnover: 0n, auctions: 0, fills: 0 },
})

/** Contribution of a batch to its candle; null if no part of the batch settles. */
export interface ClearedVolume {
  readonly at: number
  readonly price: number
  readonly steps: number
  readonly fills: number
}

/** Candle of one batch, at the start of its minute. */
export const candleOfBatch = ({ at, price, steps, fills }: ClearedVolume): Candle<number> => ({
  ...{ start: intervalStart('1m', at), open: price, high: price, low: price, close: price },
  ...{ steps, turnover: BigInt(price) * BigInt(steps), auctions: 1, fills },
})
