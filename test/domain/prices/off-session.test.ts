import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { ALWAYS_OPEN, nyseCalendar, sessionAt } from '../../../domain/market/trading-calendar.ts'
import { type ObservedPrice, regularPrice } from '../../../domain/prices/off-session.ts'
import type { Millis, Price } from '../../../domain/units.ts'
import { newYorkTime } from '../../../service/new-york-time.ts'

const calendar = nyseCalendar([], newYorkTime)
const time = (text: string): Millis => Date.parse(`2026-11-${text}Z`) as Millis
const observed = (price: number, text: string): ObservedPrice => ({
  price: BigInt(price) as Price,
  observedAt: time(text),
})

/** Friday 2026-11-20: 14:30 to 21:00 UTC. */
describe('domain/prices/off-session', () => {
  const close = observed(260, '20T20:59:59.900')

  it('when a session runs, it reports the reading with its own time', () => {
    const reading = observed(261, '20T15:00:00.000')
    expect(regularPrice(calendar, time('20T15:00:00.400'), reading, close)).to.equal(reading)
  })

  it('when the session has opened without a reading of its own, it reports nothing', () => {
    const opening = time('20T14:30:00.100')
    for (const reading of [null, observed(255, '20T14:29:59.999'), observed(255, '19T20:59:59.999')])
      expect(regularPrice(calendar, opening, reading, observed(254, '20T14:29:59.900'))).to.equal(null)
    const first = observed(263, '20T14:30:00.000')
    expect(regularPrice(calendar, opening, first, null)).to.equal(first)
  })

  it('when the session has closed, it repeats the last reading of the session as of now', () => {
    const at = time('20T21:00:00.300')
    const before = observed(259, '20T20:59:59.400')
    expect(regularPrice(calendar, at, close, before)).to.deep.equal({ price: 260n, observedAt: at })
    expect(regularPrice(calendar, at, observed(270, '20T21:00:00.000'), close)).to.deep.equal({
      price: 260n,
      observedAt: at,
    })
    expect(regularPrice(calendar, at, null, close)).to.deep.equal({ price: 260n, observedAt: at })
  })

  it('when prices move after the close and over the weekend, each report repeats the close and is fresh', () => {
    let last: ObservedPrice | null = close
    for (let at = time('20T21:00:00'); at < time('23T14:30:00'); at = (at + 1_800_000) as Millis) {
      last = regularPrice(calendar, at, { price: BigInt(at) as Price, observedAt: at }, last)
      expect(last).to.deep.equal({ price: 260n, observedAt: at })
    }
  })

  it('when no publisher ran at the close, a reading of the session that is newer than the last report is repeated', () => {
    const at = time('21T03:00:00')
    expect(regularPrice(calendar, at, close, observed(250, '20T16:00:00'))?.price).to.equal(260n)
    expect(regularPrice(calendar, at, close, observed(262, '21T02:59:59'))?.price).to.equal(262n)
  })

  it('when there has never been a regular price, it reports nothing outside sessions, or the previous close of a source', () => {
    const at = time('21T03:00:00')
    expect(regularPrice(calendar, at, null, null)).to.equal(null)
    expect(regularPrice(calendar, at, observed(270, '21T02:59:59'), null)).to.equal(null)
    expect(regularPrice(calendar, at, observed(270, '21T02:59:59'), close)?.price).to.equal(260n)
  })

  it('when the calendar is always open, every reading is reported as it is', () => {
    const reading = observed(270, '21T02:59:59')
    expect(regularPrice(ALWAYS_OPEN, time('21T03:00:00'), reading, close)).to.equal(reading)
    expect(regularPrice(ALWAYS_OPEN, time('21T03:00:00'), null, close)).to.equal(null)
  })

  it('when times are arbitrary, it never reports a price that was observed outside a session', () => {
    const anyObserved = fc.option(
      fc.record({
        price: fc.constantFrom(1n, 2n).map((price) => price as Price),
        observedAt: fc
          .integer({ min: time('19T00:00:00'), max: time('24T00:00:00') })
          .map((at) => at as Millis),
      }),
    )
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10_000 }), anyObserved, anyObserved, (lag, reading, last) => {
        const at = ((reading?.observedAt ?? time('21T03:00:00')) + lag) as Millis
        const report = regularPrice(calendar, at, reading, last)
        if (report === null || report.price === last?.price) return
        expect(report.price).to.equal(reading?.price)
        expect(sessionAt(calendar, (reading as ObservedPrice).observedAt).isOpen).to.equal(true)
      }),
    )
  })
})
