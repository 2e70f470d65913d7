/** Candles: of clearing prices from batches, of mark and oracle prices from publications. Pure folds; the indexer's tables hold their results. */
import { type Millis, maxOf, minOf } from '../units.ts'
import { INTERVALS, type Interval, intervalStart } from './interval.ts'

/** What happened from `start` to the end of its interval. Prices are of one unit: ticks or wei. */
export interface Candle<Value extends number | bigint = bigint> {
  readonly start: number
  readonly open: Value
  readonly high: Value
  readonly low: Value
  readonly close: Value
  /** Matched steps that were not voided; 0 in candles of published prices, like the other three. */
  readonly steps: number
  /** The sum of price times steps, in ticks times steps. */
  readonly turnover: bigint
  /** Batches with matched steps that were not voided. */
  readonly auctions: number
  /** Their fills of both sides. */
  readonly fills: number
}

/** A candle of an answer; one without any price repeats the close before it. */
export interface ShownCandle<Value extends number | bigint = bigint> extends Candle<Value> {
  readonly isGap: boolean
}

/** The candle of two consecutive stretches of time. */
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

/** Folds shorter candles, oldest first, into those of the interval. Intervals without any have none. */
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
 * Every interval from `from` to `to`, oldest first. One without a candle repeats the close before it, with a volume of 0; before the first
 * close there is none. `previousClose` is the close before `from`, null if there is none.
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

/** What a batch adds to its candle; null if none of it settles. */
export interface ClearedVolume {
  readonly at: number
  readonly price: number
  readonly steps: number
  readonly fills: number
}

/** The candle of one batch, at the start of its minute. */
export const candleOfBatch = ({ at, price, steps, fills }: ClearedVolume): Candle<number> => ({
  ...{ start: intervalStart('1m', at), open: price, high: price, low: price, close: price },
  ...{ steps, turnover: BigInt(price) * BigInt(steps), auctions: 1, fills },
})
