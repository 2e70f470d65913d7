import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { readClock } from '../../db/clock.ts'
import { createDatabaseClock, type DatabaseClock, SLOW_READING_MS } from '../../db/database-clock.ts'
import type { Millis } from '../../domain/units.ts'
import { freshDatabase } from '../support/postgres.ts'

/** Both clocks count whole milliseconds. */
const ROUNDING_MS = 2

describe('the database clock', () => {
  let db: Db
  let clock: DatabaseClock
  let errors: object[]
  let skews: number[]
  let step: number

  beforeEach(async () => {
    db = createDb(createPool({ url: await freshDatabase(), connections: 1, name: 'clock test' }))
    errors = []
    skews = []
    step = 0
    clock = createDatabaseClock({
      db,
      system: { now: () => (Date.now() + step) as Millis },
      metrics: { clockSkew: (seconds) => skews.push(seconds) },
      logger: { debug() {}, info() {}, warn() {}, error: (details) => errors.push(details as object) },
    })
  })

  afterEach(async () => {
    clock.stop()
    await db.destroy()
  })

  /** Starts the clock. Returns by how much its readings may be wrong: half the time of the first one, or of a later one. */
  async function started(): Promise<number> {
    const since = performance.now()
    await clock.start()
    return Math.max(SLOW_READING_MS, performance.now() - since) / 2 + ROUNDING_MS
  }

  for (const wrong of [0, 5_000, 3_600_000, -5_000]) {
    it(`when the system clock is wrong by ${wrong} ms, it has the time of the database and reports the difference`, async () => {
      step = wrong
      const uncertainty = await started()
      const earliest = clock.now()
      const time = await readClock(db)
      expect(time).to.be.within(earliest - uncertainty, clock.now() + uncertainty)
      expect(clock.skewMs()).to.be.closeTo(wrong, uncertainty)
      expect(skews[0]).to.be.closeTo(wrong / 1000, uncertainty / 1000)
      expect(errors).to.have.length(wrong === 0 ? 0 : 1)
    })
  }

  it('when the system clock steps after the start, it does not step', async () => {
    const uncertainty = await started()
    const since = performance.now()
    const before = clock.now()
    step = 3_600_000
    const passed = clock.now() - before
    // A reading in between may correct the one before it.
    expect(passed).to.be.within(-uncertainty, performance.now() - since + uncertainty)
    expect(clock.skewMs()).to.be.closeTo(3_600_000, uncertainty)
  })
})
