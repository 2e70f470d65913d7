import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  changeFees,
  chargedAt,
  FEE_NOTICE,
  type FeeChange,
  type FeeSchedule,
  fromStoredFees,
  nextFeeChange,
  toStoredFees,
} from '../../../domain/market/fee-periods.ts'
import type { Millis, Rate } from '../../../domain/units.ts'
import { rate } from '../../support/markets.ts'

const HIGHEST = { makerFee: rate('0.0002'), takerFee: rate('0.0005') }
const FREE = { makerFee: rate('0'), takerFee: rate('0') }
const NOW = 1_800_000_000_000 as Millis
const HOUR = 3_600_000
const at = (hours: number): Millis => (NOW + hours * HOUR) as Millis

const changed = (schedule: FeeSchedule, change: FeeChange, now: Millis = NOW): FeeSchedule => {
  const verdict = changeFees(HIGHEST, schedule, change, now)
  if (!verdict.ok) throw new Error(JSON.stringify(verdict.refusal))
  return verdict.value
}
const refusal = (schedule: FeeSchedule, change: FeeChange) => {
  const verdict = changeFees(HIGHEST, schedule, change, NOW)
  return verdict.ok ? null : verdict.refusal
}

describe('fee periods', () => {
  it('when a period without fees is announced, its rates are charged from its start to before its end', () => {
    const schedule = changed([], { rates: FREE, from: at(1), until: at(30) })
    expect([0, 1, 29, 30].map((hour) => chargedAt(HIGHEST, schedule, at(hour)).takerFee)).to.deep.equal([
      ...[HIGHEST.takerFee, 0n, 0n, HIGHEST.takerFee],
    ])
    expect(nextFeeChange(HIGHEST, schedule, NOW)).to.deep.equal({ at: at(1), rates: FREE })
    expect(nextFeeChange(HIGHEST, schedule, at(30))).to.equal(null)
  })

  it('when the highest rate falls below that of a period, the highest is charged', () => {
    const half = { makerFee: rate('0.0001'), takerFee: rate('0.0004') }
    const schedule = changed([], { rates: half, from: NOW, until: null })
    expect(chargedAt({ ...HIGHEST, takerFee: rate('0.0003') }, schedule, at(1))).to.deep.equal({
      ...half,
      takerFee: rate('0.0003'),
    })
  })

  it('when a rate would rise within a day, the change is rejected with the earliest time', () => {
    const free = changed([], { rates: FREE, from: NOW, until: at(72) })
    const end = (from: Millis) => ({ rates: null, from, until: null })
    const early = { code: 'NOTICE_TOO_SHORT', field: 'makerFee', earliest: NOW + FEE_NOTICE }
    expect(refusal(free, end(at(1)))).to.deep.equal(early)
    expect(refusal(free, end((NOW + FEE_NOTICE) as Millis))).to.equal(null)
    expect(refusal([], { rates: FREE, from: NOW, until: at(2) })).to.deep.equal(null)
  })

  it('when a rate is above the highest or off the grid, or the span is empty or past, the change is rejected', () => {
    const span = { from: NOW, until: at(48) }
    const codeOf = (change: FeeChange) => refusal([], change)?.code
    expect(codeOf({ rates: { ...FREE, takerFee: rate('0.0006') }, ...span })).to.equal('RATE_INVALID')
    expect(codeOf({ rates: { ...FREE, makerFee: 1n as Rate }, ...span })).to.equal('RATE_INVALID')
    expect(codeOf({ rates: FREE, from: at(2), until: at(2) })).to.equal('SPAN_EMPTY')
    expect(codeOf({ rates: FREE, from: at(-1), until: null })).to.equal('FROM_PAST')
  })

  it('when changes are made at random, periods never overlap, the last change decides the rates, and no rate rises within a day', () => {
    const hour = fc.integer({ min: 0, max: 200 })
    const change = fc.record({
      rates: fc.option(
        fc.integer({ min: 0, max: 200 }).map((millionths) => {
          const fee = (BigInt(millionths) * 10n ** 12n) as Rate
          return { makerFee: fee, takerFee: fee }
        }),
      ),
      from: hour,
      length: fc.option(fc.integer({ min: 1, max: 90 })),
      wait: fc.integer({ min: 0, max: 30 }),
    })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
        let schedule: FeeSchedule = []
        let now = 0
        for (const { rates, from, length, wait } of changes) {
          now += wait
          const start = at(now + from)
          const until = length === null ? null : at(now + from + length)
          const verdict = changeFees(HIGHEST, schedule, { rates, from: start, until }, at(now))
          if (!verdict.ok) continue
          const next = verdict.value
          for (let hours = now; hours < now + 320; hours++) {
            const time = at(hours)
            const isIn = time >= start && (until === null || time < until)
            const expected = isIn ? (rates ?? HIGHEST) : chargedAt(HIGHEST, schedule, time)
            expect(chargedAt(HIGHEST, next, time).takerFee).to.equal(expected.takerFee)
            if (hours < now + 24)
              expect(
                chargedAt(HIGHEST, next, time).takerFee <= chargedAt(HIGHEST, schedule, time).takerFee,
              ).to.equal(true)
          }
          for (const [place, period] of next.entries())
            expect(
              (period.until ?? Number.POSITIVE_INFINITY) <=
                (next[place + 1]?.from ?? Number.POSITIVE_INFINITY),
            ).to.equal(true)
          expect(fromStoredFees(toStoredFees(next))).to.deep.equal(next)
          schedule = next
        }
      }),
      { numRuns: 100 },
    )
  })
})
