import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { plusDays } from '../../../domain/market/civil-day.ts'
import { ALWAYS_OPEN, nyseCalendar, sessionAt } from '../../../domain/market/trading-calendar.ts'
import { finalWindow, indexWindow } from '../../../domain/prices/reading-window.ts'
import type { Day, Millis } from '../../../domain/units.ts'
import { newYorkTime } from '../../../service/new-york-time.ts'

const DAY = 86_400_000
const calendar = nyseCalendar([], newYorkTime)
const time = (text: string): Millis => Date.parse(`2026-11-${text}Z`) as Millis

/** Friday 2026-11-20: open from 14:30 to 21:00 UTC. */
describe('domain/prices/reading-window', () => {
  const opening = time('20T14:30:00.000')
  const close = time('20T21:00:00.000')

  it('when a session runs, the readings since its opening count, also before the first report', () => {
    for (const at of [opening, time('20T17:00:00'), (close - 1) as Millis])
      for (const hasReported of [false, true])
        expect(indexWindow(calendar, at, hasReported)).to.deep.equal({ since: opening, asOf: at })
  })

  it('when no session runs, no reading counts and the last report is repeated', () => {
    for (const at of [close, time('21T12:00:00'), time('23T14:29:59.999')])
      expect(indexWindow(calendar, at, true)).to.equal(null)
  })

  it('when no session runs before the first report, the readings of the last session count as of its end', () => {
    const previousClose = { since: opening, asOf: close - 1 }
    for (const at of [close, time('21T12:00:00'), time('23T14:29:59.999')])
      expect(indexWindow(calendar, at, false)).to.deep.equal(previousClose)
    expect(indexWindow(calendar, time('27T18:00:00'), false)?.asOf).to.equal(time('27T17:59:59.999'))
  })

  it('when no session ran for a month, no reading counts', () => {
    const today = Math.floor(opening / DAY) as Day
    const closure = Array.from({ length: 40 }, (_, index) => ({ day: plusDays(today, -index), hours: null }))
    expect(indexWindow(nyseCalendar(closure, newYorkTime), opening, false)).to.equal(null)
  })

  it('when a market closes, readings of its final feed count from the close on', () => {
    const [closing, at] = [{ expiresAt: close, settlingAt: 0 as Millis }, (close + 1) as Millis]
    expect(finalWindow(closing, (close - 1) as Millis)).to.equal(null)
    expect(finalWindow(closing, close)).to.deep.equal({ since: close, asOf: close })
    expect(finalWindow({ ...closing, settlingAt: opening }, at)).to.deep.equal({ since: opening, asOf: at })
    expect(finalWindow({ ...closing, expiresAt: 0 as Millis }, at)).to.equal(null)
  })

  it('when a market has no calendar, or one that is always open, every reading counts', () => {
    const at = time('21T12:00:00')
    for (const each of [null, ALWAYS_OPEN])
      expect(indexWindow(each, at, true)).to.deep.equal({ since: 0, asOf: at })
  })

  it('when times are arbitrary, begin and end of the window are in one session that has begun', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: Date.UTC(2024, 0, 1), max: Date.UTC(2030, 0, 1) }),
        fc.boolean(),
        (now, has) => {
          const at = now as Millis
          const window = indexWindow(calendar, at, has)
          if (window === null) {
            expect([has, sessionAt(calendar, at).isOpen]).to.deep.equal([true, false])
            return
          }
          expect(window.asOf).to.be.at.most(at)
          const [begin, end] = [sessionAt(calendar, window.since), sessionAt(calendar, window.asOf)]
          expect(begin).to.deep.equal(end).and.to.include({ isOpen: true, opensAt: window.since })
        },
      ),
    )
  })
})
