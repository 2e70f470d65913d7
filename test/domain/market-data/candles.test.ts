import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { type Candle, candleOfBatch, toInterval, withGaps } from '../../../domain/market-data/candle.ts'
import {
  INTERVALS,
  type Interval,
  intervalStart,
  nextIntervalStart,
  SPANS,
  spanOf,
} from '../../../domain/market-data/interval.ts'
import { windowUntilNow } from '../../../domain/market-data/window.ts'
import type { Millis } from '../../../domain/units.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const NAMES = Object.keys(INTERVALS) as Interval[]
const anyInterval = fc.constantFrom(...NAMES)
const anyTime = fc.integer({ min: 0, max: 4_000_000_000_000 })
const anyBatches = fc
  .array(
    fc.record({
      at: fc.integer({ min: 0, max: 20 * DAY }),
      price: fc.integer({ min: 1, max: 99 }),
      steps: fc.integer({ min: 1, max: 9 }),
      fills: fc.integer({ min: 2, max: 9 }),
    }),
    { maxLength: 30 },
  )
  .map((batches) => batches.sort((a, b) => a.at - b.at))

describe('candles', () => {
  it('when weeks are counted, they start on Monday at midnight, also before the first Monday of the epoch', () => {
    for (const [at, start] of [
      ['2026-11-22T23:59:59.999Z', '2026-11-16T00:00:00.000Z'],
      ['2026-11-23T00:00:00.000Z', '2026-11-23T00:00:00.000Z'],
      ['1970-01-01T00:00:00.000Z', '1969-12-29T00:00:00.000Z'],
    ] as const)
      expect(new Date(intervalStart('1w', Date.parse(at))).toISOString()).to.equal(start)
  })

  it('when any time is given, its interval contains it, and the next start is the end of its interval or the time itself', () => {
    fc.assert(
      fc.property(anyInterval, anyTime, (interval, at) => {
        const start = intervalStart(interval, at)
        expect(at).to.be.within(start, start + INTERVALS[interval] - 1)
        expect(intervalStart(interval, start)).to.equal(start)
        expect(nextIntervalStart(interval, at)).to.equal(start === at ? at : start + INTERVALS[interval])
      }),
    )
  })

  it('when 1,000 candles of an interval are read, they need at most 7,000 stored rows, and 4,000 below a week', () => {
    for (const interval of NAMES)
      expect(INTERVALS[interval] / spanOf(interval), interval).to.be.at.most(interval === '1w' ? 7 : 4)
    for (const [at, span] of SPANS.entries()) expect(span % (SPANS[at - 1] ?? 1)).to.equal(0)
  })

  it('when candles are folded in two steps over any stored length that divides the interval, the result is that of one', () => {
    fc.assert(
      fc.property(anyInterval, anyBatches, (interval, batches) => {
        const minutes = toInterval(batches.map(candleOfBatch), '1m')
        const direct = toInterval(minutes, interval)
        for (const step of NAMES.filter((name) => INTERVALS[interval] % INTERVALS[name] === 0))
          expect(toInterval(toInterval(minutes, step), interval), step).to.deep.equal(direct)
        const sum = (candles: readonly Candle<number>[]) =>
          candles.reduce((all, { turnover }) => all + turnover, 0n)
        expect(sum(direct)).to.equal(
          batches.reduce((all, { price, steps }) => all + BigInt(price * steps), 0n),
        )
      }),
    )
  })

  it('when gaps are filled, every interval of the range has one candle, and a gap repeats the close before it', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...NAMES.slice(5)),
        anyBatches,
        fc.option(fc.nat(99)),
        (interval, batches, previous) => {
          const candles = toInterval(batches.map(candleOfBatch), interval)
          const [from, to] = [intervalStart(interval, 0), nextIntervalStart(interval, 20 * DAY + 1)]
          const shown = withGaps(candles, { interval, from, to: to as Millis }, previous)
          expect(shown.filter(({ isGap }) => !isGap).map(({ isGap, ...candle }) => candle)).to.deep.equal(
            candles,
          )
          const first = previous === null ? candles[0]?.start : from
          for (const [at, { start, open, high, low, close, steps, isGap }] of shown.entries()) {
            expect(start).to.equal((first as number) + at * INTERVALS[interval])
            const before = at === 0 ? previous : shown[at - 1]?.close
            if (isGap)
              expect([open, high, low, close, steps]).to.deep.equal([before, before, before, before, 0])
          }
          const count = first === undefined ? 0 : (to - first) / INTERVALS[interval]
          expect(shown).to.have.length(count)
        },
      ),
    )
  })

  it('when a time span up to now is read from stored rows, each of its minutes is in exactly one row', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 10, max: 4_000_000 }).map((minute) => minute * MINUTE),
        fc.nat(3 * 24 * 60),
        (from, passed) => {
          const ranges = windowUntilNow(from)
          for (const minute of [from, from + passed * MINUTE, from - MINUTE]) {
            const rows = ranges.filter(({ span, from, to }) => {
              const start = minute - (minute % span)
              return start >= from && start < to
            })
            expect(rows).to.have.length(minute < from ? 0 : 1)
          }
        },
      ),
    )
  })
})
