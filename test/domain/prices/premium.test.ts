import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import { notionalAt, priceOf } from '../../../domain/market/market.ts'
import { FLAT } from '../../../domain/positions/position.ts'
import {
  addPremium,
  averagePremium,
  impactNotional,
  impactNotionalBounds,
  impactPrice,
  LEAST_SAMPLED,
  NO_PREMIUM,
  PREMIUM_INTERVAL,
  type PremiumAverage,
  premiumOf,
  samplePremium,
} from '../../../domain/prices/premium.ts'
import { type Millis, ONE, type Quote, type Rate, type UserId } from '../../../domain/units.ts'
import { e18, perpetual, price, rate, steps, ticks } from '../../support/markets.ts'
import { NO_FUNDING, positionAt, resting } from '../support/resting.ts'

const millis = (value: number): Millis => value as Millis
const ORACLE = price('100')
const quoteAt = (limit: number, count: number) => ({ limit: ticks(limit), steps: steps(count) })

describe('the impact price', () => {
  it('when a market is listed, its impact notional is the notional that 500 USDM open at IMR, at least the smallest order', () => {
    expect(impactNotional(perpetual, ORACLE, null)).to.equal((500n * ONE * ONE) / e18('0.045'))
    const coarse = { ...perpetual, minQuantity: steps(1_000_000) }
    expect(impactNotional(coarse, ORACLE, null)).to.equal(e18('100000'))
  })

  it('when the operator has set an impact notional, it replaces the rule, and is at least the smallest order too', () => {
    expect(impactNotional(perpetual, ORACLE, e18('20000') as Quote)).to.equal(e18('20000'))
    expect(impactNotional(perpetual, ORACLE, e18('0.5') as Quote)).to.equal(e18('1'))
    const { least, most } = impactNotionalBounds(perpetual)
    expect(most / least).to.equal(1000n)
  })

  it('when one level suffices, it is the price of that level; the level behind it does not count', () => {
    const levels = [quoteAt(1010, 1000), quoteAt(900, 1000)]
    const all = notionalAt(perpetual, ticks(1010), steps(1000))
    expect(impactPrice(perpetual, 'LONG', levels, all)).to.equal(price('101'))
    expect(impactPrice(perpetual, 'LONG', levels, 1n as Quote)).to.equal(price('101'))
  })

  it('when several levels fill, it is their average by quantity, the last one in part', () => {
    // 101 USDM at 101 and 90 USDM at 90: 2 units for 191 USDM.
    const levels = [quoteAt(1010, 1000), quoteAt(900, 5000)]
    expect(impactPrice(perpetual, 'LONG', levels, e18('191') as Quote)).to.equal(price('95.5'))
  })

  it('when the notional is above all quotes, there is none', () => {
    expect(impactPrice(perpetual, 'LONG', [quoteAt(1010, 1000)], e18('101.1') as Quote)).to.equal(null)
    expect(impactPrice(perpetual, 'SHORT', [], 1n as Quote)).to.equal(null)
  })

  it('when any quotes are walked, the notional at the price buys the quantity of the quotes, rounded to the wei', () => {
    const anyLevels = fc.array(
      fc.tuple(fc.integer({ min: 1, max: 5000 }), fc.integer({ min: 1, max: 9999 })),
      {
        minLength: 1,
        maxLength: 8,
      },
    )
    fc.assert(
      fc.property(anyLevels, fc.double({ min: 0.001, max: 1, noNaN: true }), (drawn, share) => {
        const levels = drawn.map(([limit, count]) => quoteAt(limit, count))
        const total = levels.reduce((sum, one) => sum + notionalAt(perpetual, one.limit, one.steps), 0n)
        const notional = ((total * BigInt(Math.ceil(share * 1e6))) / 1_000_000n || 1n) as Quote
        // Quantity as an exact fraction over the product of all prices.
        const product = levels.reduce((sum, { limit }) => sum * BigInt(limit), 1n)
        let left: bigint = notional
        let quantity = 0n
        for (const { limit, steps: count } of levels) {
          const worth = notionalAt(perpetual, limit, count)
          const used = worth < left ? worth : left
          quantity += (used * product * perpetual.tick) / (BigInt(limit) * perpetual.tick)
          left -= used
        }
        // quantity / product: sum of used / limit. The average in ticks is notional / that, times the tick in wei.
        const numerator = notional * product * perpetual.tick
        const down = numerator / quantity
        const up = numerator % quantity === 0n ? down : down + 1n
        expect(impactPrice(perpetual, 'LONG', levels, notional)).to.equal(down)
        expect(impactPrice(perpetual, 'SHORT', levels, notional)).to.equal(up)
      }),
    )
  })
})

describe('the premium', () => {
  const of = (bid: string | null, ask: string | null) =>
    premiumOf(ORACLE, { bid: bid === null ? null : price(bid), ask: ask === null ? null : price(ask) })

  it('when the book lies around the oracle price, it is 0; above and below it is the nearer impact price', () => {
    expect(of('99', '101')).to.equal(0n)
    expect(of('100', '100')).to.equal(0n)
    expect(of('101', '102')).to.equal(rate('0.01'))
    expect(of('98', '99.5')).to.equal(-rate('0.005'))
  })

  it('when a side is thin, it counts as 0', () => {
    expect(of('101', null)).to.equal(rate('0.01'))
    expect(of(null, '101')).to.equal(0n)
    expect(of(null, null)).to.equal(0n)
  })

  it('when the impact prices cross, there is no sample', () => {
    expect(of('102', '101')).to.equal(null)
  })

  it('when a book is sampled, only steps that can execute count', () => {
    const deep = steps(200_000)
    const holder = 2 as UserId
    const ask = (limit: number, fields: Partial<RestingOrder> = {}) =>
      resting({ side: 'SHORT', limit: ticks(limit), remaining: deep, ...fields })
    const reduceOnly = ask(980, { account: holder, reduceOnly: true })
    const sampled = (
      orders: readonly RestingOrder[],
      size = 0,
      notional: Quote | null = null,
      excluded: readonly UserId[] = [],
    ) =>
      samplePremium(
        {
          ...{
            spec: perpetual,
            oracle: ORACLE,
            book: Book.of(orders),
            fundingIndex: NO_FUNDING,
            excluded: new Set(excluded),
            now: millis(5),
          },
          positions: (account) =>
            account === holder && size !== 0
              ? positionAt(perpetual, { size, entry: 1000, margin: 10_000n * ONE })
              : FLAT,
        },
        notional,
      )
    expect(sampled([reduceOnly, ask(1010)])).to.equal(0n)
    expect(sampled([reduceOnly, ask(1010)], 200_000)).to.equal(-rate('0.02'))
    const bid = resting({ side: 'LONG', limit: ticks(1020), remaining: deep })
    expect(sampled([bid, ask(1030)])).to.equal(rate('0.02'))
    expect(sampled([bid, ask(1030)], 0, e18('1000000') as Quote), 'a notional beyond the book').to.equal(0n)
    expect(sampled([bid, ask(1030)], 0, null, [bid.account]), 'an account in no auction').to.equal(0n)
    expect(priceOf(perpetual, ticks(1000))).to.equal(ORACLE)
  })
})

describe('the average premium', () => {
  const START = millis(1_800_000_000_000)
  const at = (time: number): Millis => millis(START + time)
  const sampledFor = (time: number, premium: Rate, from = NO_PREMIUM, start = 0): PremiumAverage => {
    let average = from
    for (let passed = start; passed <= start + time; passed += 1000)
      average = addPremium(average, premium, at(passed))
    return average
  }
  const ten = rate('0.001')

  it('when the premium is constant, it is that premium once a quarter of an hour is sampled', () => {
    const average = sampledFor(LEAST_SAMPLED, ten)
    expect(averagePremium(average, at(LEAST_SAMPLED))).to.equal(ten)
    // The first sample stands for 5 s.
    const early = sampledFor(85_000, ten)
    expect(averagePremium(early, at(85_000))).to.equal((ten * 90_000n) / BigInt(LEAST_SAMPLED))
    expect(averagePremium(NO_PREMIUM, START)).to.equal(0n)
  })

  it('when there is a gap or an attempt without a sample, that time does not count', () => {
    const before = sampledFor(LEAST_SAMPLED, ten)
    const sampled = (average: PremiumAverage) =>
      average.intervals.reduce((sum, interval) => sum + interval.sampled, 0)
    const gap = addPremium(before, ten, at(LEAST_SAMPLED + 600_000))
    expect(sampled(gap) - sampled(before)).to.equal(5_000)
    const none = addPremium(before, null, at(LEAST_SAMPLED + 1000))
    expect(sampled(none)).to.equal(sampled(before))
    expect(sampled(addPremium(none, ten, at(LEAST_SAMPLED + 1400)))).to.equal(sampled(before) + 400)
    expect(sampled(addPremium(before, ten, at(0)))).to.equal(sampled(before))
  })

  it('when an hour has passed, nothing of it counts any more', () => {
    const average = sampledFor(LEAST_SAMPLED, ten)
    expect(averagePremium(average, at(LEAST_SAMPLED + 3_600_000))).to.equal(0n)
    expect(addPremium(average, null, at(LEAST_SAMPLED + 3_600_000)).intervals).to.deep.equal([])
  })

  it('when any samples are taken, it is the mean over the samples of the last twelve intervals', () => {
    const anySample = fc.tuple(
      fc.integer({ min: 0, max: 400_000 }),
      fc.option(fc.bigInt(-(10n ** 17n), 10n ** 17n)),
    )
    fc.assert(
      fc.property(
        fc.array(anySample, { maxLength: 60 }),
        fc.integer({ max: 4_000_000, min: 0 }),
        (drawn, wait) => {
          let average = NO_PREMIUM
          let time = 0
          let last = -START
          const kept: { at: number; premium: bigint; millis: number }[] = []
          for (const [passed, premium] of drawn) {
            time += passed
            average = addPremium(average, premium as Rate | null, at(time))
            if (premium !== null)
              kept.push({ at: START + time, premium, millis: Math.min(time - last, 5_000) })
            last = time
          }
          const now = START + time + wait
          const first = (Math.floor(now / PREMIUM_INTERVAL) - 11) * PREMIUM_INTERVAL
          const counted = kept.filter((one) => one.at >= first)
          const weight = counted.reduce((sum, one) => sum + one.millis, 0)
          const weighted = counted.reduce((sum, one) => sum + one.premium * BigInt(one.millis), 0n)
          expect(averagePremium(average, millis(now))).to.equal(weighted / BigInt(Math.max(weight, 900_000)))
          expect(average.intervals.length).to.be.at.most(12)
        },
      ),
    )
  })
})
