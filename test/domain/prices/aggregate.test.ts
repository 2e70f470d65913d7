import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  type AggregationRules,
  aggregate,
  type DropReason,
  observationTime,
  type Reading,
  type SourceAnswer,
} from '../../../domain/prices/aggregate.ts'
import { feedsOf, isFloored, rangeOf, statusOf } from '../../../domain/prices/feed.ts'
import { type Millis, ONE } from '../../../domain/units.ts'
import { binary, e18, future, perpetual } from '../../support/markets.ts'

const NOW = 1_800_000_000_000 as Millis
const RULES: AggregationRules = {
  range: rangeOf(perpetual, 'index'),
  isFloored: isFloored(perpetual, 'index'),
  minimum: 2,
  maxSpread: 20_000n,
  maxAhead: 2_000 as Millis,
  since: 0 as Millis,
  boundsOf: () => ({ maxAge: 5_000 as Millis, maxDeviation: 10_000n }),
  previousOf: () => null,
}

const answer = (source: string, price: string, age = 0): SourceAnswer => ({
  source,
  reading: { price: e18(price), observedAt: (NOW - age) as Millis },
  fault: null,
})
const silent = (source: string, fault: string): SourceAnswer => ({ source, reading: null, fault })
const droppedOf = (answers: readonly SourceAnswer[], rules = RULES) =>
  aggregate(answers, rules, NOW).readings.map(({ dropped }) => dropped)

describe('aggregate', () => {
  it('when three sources agree, it returns the middle price and drops none', () => {
    const result = aggregate([answer('a', '101'), answer('b', '100'), answer('c', '100.5')], RULES, NOW)
    expect(result).to.include({ value: e18('100.5'), reason: null })
    expect(result.readings.map(({ dropped }) => dropped)).to.deep.equal([null, null, null])
  })

  it('when two sources agree, it returns their mean, rounded down to a wei', () => {
    const { value } = aggregate([answer('a', '100'), answer('b', '100.000000000000000001')], RULES, NOW)
    expect(value).to.equal(e18('100'))
  })

  const cases: readonly (readonly [string, SourceAnswer, DropReason])[] = [
    ['negative', answer('liar', '-1'), 'NOT_POSITIVE'],
    ['zero', answer('liar', '0'), 'NOT_POSITIVE'],
    ['older than its source may be', answer('liar', '100', 5_001), 'STALE'],
    ['of a clock that is too far ahead', answer('liar', '100', -2_001), 'FUTURE'],
    ['farther from the median than its source may be', answer('liar', '101.01'), 'OUTLIER'],
    ['above every price of the market', answer('liar', '1000000000000000000000'), 'OUT_OF_RANGE'],
    ['missing because of an error page', silent('liar', 'NOT_JSON'), 'NO_READING'],
  ]
  for (const [what, liar, reason] of cases) {
    it(`when the reading of one source is ${what}, it is dropped as ${reason} and the price is the median of the other readings`, () => {
      const result = aggregate([answer('a', '100'), liar, answer('b', '100')], RULES, NOW)
      expect(result.value).to.equal(e18('100'))
      expect(result.readings.map(({ dropped }) => dropped)).to.deep.equal([null, reason, null])
    })
  }

  it('when readings are exactly as old, as early and as far away as allowed, they count', () => {
    const readings = [answer('a', '100', 5_000), answer('b', '100', -2_000), answer('c', '101')]
    expect(droppedOf(readings)).to.deep.equal([null, null, null])
  })

  it('when a source goes back in time or contradicts itself, its reading is dropped until a newer one', () => {
    const previous: Reading = { price: e18('100'), observedAt: (NOW - 100) as Millis }
    const rules = { ...RULES, previousOf: (source: string) => (source === 'a' ? previous : null) }
    const others = [answer('b', '100'), answer('c', '100')]
    expect(droppedOf([answer('a', '100', 101), ...others], rules)[0]).to.equal('OUT_OF_ORDER')
    expect(droppedOf([answer('a', '100.1', 100), ...others], rules)[0]).to.equal('CONTRADICTORY')
    expect(droppedOf([answer('a', '100', 100), ...others], rules)[0]).to.equal(null)
    expect(droppedOf([answer('a', '100.1', 99), ...others], rules)[0]).to.equal(null)
  })

  it('when a trading session has just begun, readings from before it are dropped', () => {
    const rules = { ...RULES, since: (NOW - 1_000) as Millis }
    const readings = [answer('a', '100', 1_001), answer('b', '101', 1_000), answer('c', '101', 0)]
    expect(droppedOf(readings, rules)).to.deep.equal(['TOO_EARLY', null, null])
  })

  it('when fewer readings than the minimum are usable, there is no price, and the latest report may serve', () => {
    const result = aggregate([answer('a', '100'), answer('b', '100', 60_000)], RULES, NOW)
    expect(result).to.include({ value: null, reason: 'TOO_FEW_SOURCES' })
    expect(statusOf('TOO_FEW_SOURCES')).to.equal('waiting')
    expect(aggregate([], { ...RULES, minimum: 0 }, NOW).reason).to.equal('TOO_FEW_SOURCES')
  })

  it('when two of two sources contradict each other, there is no price and the feed halts', () => {
    const result = aggregate([answer('a', '100'), answer('b', '110')], RULES, NOW)
    expect(result).to.include({ value: null, reason: 'SOURCES_DISAGREE' })
    expect(statusOf('SOURCES_DISAGREE')).to.equal('halted')
  })

  it('when the agreeing readings are no majority of the usable readings, there is no price', () => {
    const rules = { ...RULES, minimum: 1 }
    const readings = [answer('a', '90'), answer('b', '100'), answer('c', '110')]
    expect(aggregate(readings, rules, NOW).reason).to.equal('SOURCES_DISAGREE')
  })

  it('when the readings near the median are farther apart than the market allows, there is no price', () => {
    const readings = [answer('a', '99.1'), answer('b', '100'), answer('c', '100.9')]
    expect(aggregate(readings, RULES, NOW).reason).to.equal(null)
    expect(aggregate(readings, { ...RULES, maxSpread: 17_999n }, NOW).reason).to.equal('SOURCES_DISAGREE')
  })

  it('when a probability is 1, it counts, and above 1 it does not', () => {
    const rules = { ...RULES, minimum: 1, range: rangeOf(binary, 'index') }
    expect(droppedOf([answer('a', '1')], rules)).to.deep.equal([null])
    expect(droppedOf([answer('a', '1.000000000000000001')], rules)).to.deep.equal(['OUT_OF_RANGE'])
  })

  it('when a probability is 0 or below one tick, it counts as one tick, so that the market does not halt', () => {
    const rules = { ...RULES, range: rangeOf(binary, 'index'), isFloored: isFloored(binary, 'index') }
    const { value, readings } = aggregate([answer('a', '0'), answer('b', '0.000000000000000001')], rules, NOW)
    expect(value).to.equal(binary.tick)
    expect(readings.map(({ dropped }) => dropped)).to.deep.equal([null, null])
    expect(droppedOf([answer('a', '-0.000000000000000001')], rules)).to.deep.equal(['NOT_POSITIVE'])
    expect(isFloored(binary, 'final')).to.equal(false)
  })

  it('when a round of an aggregator is below one tick, it is dropped: the oracle compares its answer', () => {
    const rules = { ...RULES, range: rangeOf(binary, 'index'), isFloored: true }
    const round = {
      ...answer('a', '0.000001'),
      reading: { price: 1n, observedAt: NOW, round: '0x01' as const },
    }
    expect(droppedOf([round], rules)).to.deep.equal(['OUT_OF_RANGE'])
  })

  it('when no session runs, the session feed has the value 0', () => {
    const rules = { ...RULES, minimum: 1, range: rangeOf(perpetual, 'session') }
    expect(aggregate([answer('calendar', '0')], rules, NOW)).to.include({ value: 0n, reason: null })
  })
})

describe('the feeds of a market', () => {
  it('when a market has a session or expires, it has the feed of each', () => {
    expect(feedsOf(perpetual)).to.deep.equal(['index'])
    expect(feedsOf({ ...perpetual, fundingSession: true })).to.deep.equal(['index', 'session'])
    expect(feedsOf(future)).to.deep.equal(['index', 'final'])
  })

  it('when a final price is judged, its range is that of the listing', () => {
    expect(rangeOf(binary, 'final')).to.deep.equal({ low: 0n, high: ONE })
    expect(rangeOf(future, 'final')).to.deep.equal({ low: future.finalLow, high: future.finalHigh })
  })
})

/** Prices within 1 % of 100. */
const honestPrice = fc.bigInt({ min: e18('99.5'), max: e18('100.5') })
/** Anything, with a preference for what is near. */
const anyPrice = fc.oneof(
  fc.bigInt({ min: -e18('1'), max: e18('1000000') }),
  fc.bigInt({ min: e18('98'), max: e18('102') }),
)
const age = fc.integer({ min: -2_000, max: 5_000 })
const anyAge = fc.integer({ min: -10_000, max: 20_000 })
const answers = (price: fc.Arbitrary<bigint>, ages: fc.Arbitrary<number>, size: fc.ArrayConstraints) =>
  fc.array(
    fc.tuple(price, ages).map(([value, old]) => ({ price: value, observedAt: (NOW - old) as Millis })),
    size,
  )
const named = (readings: readonly Reading[], prefix: string): SourceAnswer[] =>
  readings.map((reading, at) => ({ source: `${prefix}${at}`, reading, fault: null }))

describe('the laws of aggregate', () => {
  it('when fewer than half of the usable readings are wrong, a price lies within the range of the right readings', () => {
    const run = fc
      .integer({ min: 1, max: 6 })
      .chain((honest) =>
        fc.tuple(
          answers(honestPrice, age, { minLength: honest, maxLength: honest }),
          answers(anyPrice, anyAge, { maxLength: honest - 1 }),
        ),
      )
    fc.assert(
      fc.property(run, ([right, wrong]) => {
        const { value } = aggregate([...named(right, 'right'), ...named(wrong, 'wrong')], RULES, NOW)
        if (value === null) return
        const prices = right.map(({ price }) => price)
        expect(prices.some((price) => price <= value) && prices.some((price) => price >= value)).to.equal(
          true,
        )
      }),
      { numRuns: 2_000 },
    )
  })

  it('when the order of the sources changes, neither the price nor the dropped readings change', () => {
    const shuffled = answers(anyPrice, anyAge, { maxLength: 7 }).chain((readings) => {
      const one = named(readings, 's')
      return fc.tuple(fc.constant(one), fc.shuffledSubarray(one, { minLength: one.length }))
    })
    fc.assert(
      fc.property(shuffled, ([one, other]) => {
        const [a, b] = [aggregate(one, RULES, NOW), aggregate(other, RULES, NOW)]
        expect([a.value, a.reason]).to.deep.equal([b.value, b.reason])
        const inOrder = (result: typeof a) =>
          new Map(result.readings.map(({ source, dropped }) => [source, dropped]))
        for (const [source, dropped] of inOrder(a)) expect(inOrder(b).get(source)).to.equal(dropped)
      }),
      { numRuns: 1_000 },
    )
  })

  it('when one source follows its own readings, the times of its counted readings never decrease', () => {
    fc.assert(
      fc.property(answers(honestPrice, anyAge, { minLength: 1, maxLength: 30 }), (readings) => {
        let previous: Reading | null = null
        for (const reading of readings) {
          const rules: AggregationRules = { ...RULES, minimum: 1, previousOf: () => previous }
          const { value } = aggregate([{ source: 's', reading, fault: null }], rules, NOW)
          if (value === null) continue
          if (previous !== null) expect(reading.observedAt).to.be.at.least((previous as Reading).observedAt)
          previous = reading
        }
      }),
    )
  })
})

describe('aggregate, with bounds per source that are wider than the spread', () => {
  const wide: AggregationRules = {
    ...RULES,
    boundsOf: () => ({ maxAge: 5_000 as Millis, maxDeviation: 20_000n }),
  }
  const judge = (...prices: readonly string[]) => {
    const result = aggregate(
      prices.map((price, at) => answer(String(at), price)),
      wide,
      NOW,
    )
    return { ...result, dropped: result.readings.map(({ dropped }) => dropped) }
  }

  it('when one source alone makes the spread too wide, it is dropped, and the other sources yield a value', () => {
    const { value, dropped } = judge('100', '100.1', '102.05')
    expect(value).to.equal(e18('100.1'))
    expect(dropped).to.deep.equal([null, null, 'OUTLIER'])
  })

  it('when half of the sources make it too wide, they disagree', () => {
    expect(judge('99', '99', '101.1', '101.1')).to.include({ value: null, reason: 'SOURCES_DISAGREE' })
    expect(judge('99', '101.1')).to.include({ value: null, reason: 'SOURCES_DISAGREE' })
  })
})

describe('observationTime', () => {
  it('when a source states a time that no clock has, there is none; a fraction of a millisecond is cut off', () => {
    for (const millis of [-1, 2 ** 48, 1e300, Number.POSITIVE_INFINITY, Number.NaN])
      expect(observationTime(millis)).to.equal(null)
    expect(observationTime(NOW + 0.9)).to.equal(NOW)
    expect(new Date(observationTime(2 ** 48 - 1) ?? Number.NaN).toISOString()).to.match(/^\+010889/)
  })
})
