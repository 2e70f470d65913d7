import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { loadExceptions, putException } from '../../../db/calendar-exceptions.ts'
import { loadCalendars } from '../../../db/trading-calendars.ts'
import { plusDays } from '../../../domain/market/civil-day.ts'
import { nyseCalendar, sessionAt } from '../../../domain/market/trading-calendar.ts'
import type { Day, Millis } from '../../../domain/units.ts'
import { newYorkTime } from '../../../service/new-york-time.ts'
import { perpetual } from '../../support/markets.ts'
import { waitFor } from '../../support/patience.ts'
import { applySetting } from '../../support/settings.ts'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'

const DAY = 86_400_000

describe('the session of a market', () => {
  let exchange: ExchangeFixture
  before(async () => {
    exchange = await startExchange()
    await exchange.project()
  })
  after(() => exchange.stop())

  const follow = (calendar: 'NYSE' | 'ALWAYS_OPEN' | null) =>
    applySetting(exchange.engine, perpetual.marketId, { kind: 'calendar', calendar })
  const sessionOf = ({ session, next_session_change }: Record<string, unknown>) => ({
    session,
    next_session_change,
  })
  const shown = async () => sessionOf((await exchange.get(null, `/v0/markets/${perpetual.marketId}`)).body)
  const listed = async () => sessionOf((await exchange.get(null, '/v0/markets')).body[0])
  const expected = async () => {
    const { isOpen, nextChangeAt } = sessionAt((await loadCalendars(exchange.db)).NYSE, Date.now() as Millis)
    return {
      session: isOpen ? 'regular' : 'closed',
      next_session_change: new Date(nextChangeAt as number).toISOString(),
    }
  }

  it('when a market has no calendar, its session is continuous and never changes', async () => {
    expect(await shown()).to.deep.equal({ session: 'continuous', next_session_change: null })
  })

  it('when its calendar is always open, its session is regular and no change is known', async () => {
    await follow('ALWAYS_OPEN')
    const regular = { session: 'regular', next_session_change: null }
    expect([await shown(), await listed()]).to.deep.equal([regular, regular])
  })

  it('when it follows New York, it shows the session and its next change, and an added closure without a restart', async () => {
    await follow('NYSE')
    expect(await shown()).to.deep.equal(await expected())

    const today = Math.floor(Date.now() / DAY) as Day
    for (let offset = -1; offset <= 10; offset++)
      await putException(
        exchange.db,
        { day: plusDays(today, offset), hours: null, reason: 'closure' },
        Date.now() as Millis,
      )
    const closed = await expected()
    expect(closed.session).to.equal('closed')
    expect(Date.parse(closed.next_session_change)).to.be.greaterThan(Date.now() + 9 * DAY)
    await waitFor(shown, ({ next_session_change }) => next_session_change === closed.next_session_change, {
      budgetMs: 50_000,
      everyMs: 200,
    })
    expect(await listed()).to.deep.equal(closed)
    const exceptions = await loadExceptions(exchange.db)
    expect(sessionAt(nyseCalendar(exceptions, newYorkTime), Date.now() as Millis).isOpen).to.equal(false)
  })
})
