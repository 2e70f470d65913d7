/** The trading calendars of a process: rules, and the exceptions of a database of its own. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { loadExceptions, putException, removeException } from '../../db/calendar-exceptions.ts'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { createCalendarCache, RELOAD_MS } from '../../db/trading-calendars.ts'
import { parseDay } from '../../domain/market/civil-day.ts'
import { sessionAt } from '../../domain/market/trading-calendar.ts'
import type { Day, Millis } from '../../domain/units.ts'
import { freshDatabase, loginOf } from '../support/postgres.ts'

const FRIDAY = parseDay('2026-11-20') as Day
const NOON = Date.UTC(2026, 10, 20, 17) as Millis

describe('db/trading-calendars', () => {
  let owner: Db
  let keeper: Db
  before(async () => {
    const url = await freshDatabase()
    owner = createDb(createPool({ url, connections: 1, name: 'test' }))
    keeper = createDb(createPool({ url: await loginOf(url, 'keeper'), connections: 2, name: 'test' }))
  })
  after(() => Promise.all([owner.destroy(), keeper.destroy()]))

  it('when the database is new, it has the unscheduled closure of 2025-01-09', async () => {
    expect(await loadExceptions(keeper)).to.deep.equal([
      {
        day: parseDay('2025-01-09'),
        hours: null,
        reason: 'National Day of Mourning for President Carter',
      },
    ])
  })

  it('when an exception is added or removed while a process runs, its calendar follows after the reload interval', async () => {
    let now = NOON
    const cache = createCalendarCache(keeper, { now: () => now })
    const isOpen = async () => sessionAt((await cache.current()).NYSE, NOON).isOpen
    expect(await isOpen()).to.equal(true)

    await putException(owner, { day: FRIDAY, hours: null, reason: 'closure' }, NOON)
    now = (NOON + RELOAD_MS - 1) as Millis
    expect(await isOpen()).to.equal(true)
    now = (NOON + RELOAD_MS) as Millis
    expect(await isOpen()).to.equal(false)

    const hours = { opens: 9 * 60 + 30, closes: 12 * 60 + 1 }
    await putException(owner, { day: FRIDAY, hours, reason: 'shorter closure' }, NOON)
    expect((await loadExceptions(keeper)).at(-1)).to.deep.equal({
      ...{ day: FRIDAY, hours, reason: 'shorter closure' },
    })
    now = (NOON + 2 * RELOAD_MS) as Millis
    expect(await isOpen()).to.equal(true)

    await removeException(owner, FRIDAY)
    now = (NOON + 3 * RELOAD_MS) as Millis
    expect(sessionAt((await cache.current()).NYSE, NOON).endsAt).to.equal(NOON + 4 * 3_600_000)
  })

  it('when several readers need a calendar at once, they share one reading and always-open is never loaded', async () => {
    const cache = createCalendarCache(keeper, { now: () => NOON })
    const [first, second] = await Promise.all([cache.current(), cache.current()])
    expect(second).to.equal(first)
    expect(sessionAt(first.ALWAYS_OPEN, NOON).isOpen).to.equal(true)
  })

  it('when the hours of an exception are outside 09:30 to 16:00 or only half given, Postgres refuses them', async () => {
    for (const hours of [
      { opens: 569, closes: 960 },
      { opens: 570, closes: 961 },
      { opens: 600, closes: 600 },
    ]) {
      const failure = await putException(owner, { day: FRIDAY, hours, reason: 'x' }, NOON).catch(
        (error) => error,
      )
      expect(failure).to.be.an('error').with.property('message').that.includes('calendar_exceptions_check')
    }
    const failure = await putException(owner, { day: FRIDAY, hours: null, reason: '' }, NOON).catch(
      (error) => error,
    )
    expect(failure).to.be.an('error')
  })

  it('when a process tries to edit the calendar, Postgres refuses', async () => {
    const failure = await removeException(keeper, FRIDAY).catch((error) => error)
    expect(failure).to.have.property('message', 'permission denied for table calendar_exceptions')
  })
})
