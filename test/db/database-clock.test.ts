import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { readClock } from '../../db/clock.ts'
import { createDatabaseClock, type DatabaseClock } from '../../db/database-clock.ts'
import type { Millis } from '../../domain/units.ts'
import { freshDatabase } from '../support/postgres.ts'

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
      logger: { info() {}, warn() {}, error: (details) => errors.push(details as object) },
    })
  })

  afterEach(async () => {
    clock.stop()
    await db.destroy()
  })

  for (const wrong of [0, 5_000, 3_600_000, -5_000]) {
    it(`when the system clock is wrong by ${wrong} ms, it has the time of the database and reports the difference`, async () => {
      step = wrong
      await clock.start()
      expect(clock.now()).to.be.closeTo(await readClock(db), 200)
      expect(clock.skewMs()).to.be.closeTo(wrong, 200)
      expect(skews[0]).to.be.closeTo(wrong / 1000, 0.2)
      expect(errors).to.have.length(wrong === 0 ? 0 : 1)
    })
  }

  it('when the system clock steps after the start, it does not step', async () => {
    await clock.start()
    const before = clock.now()
    step = 3_600_000
    expect(clock.now() - before).to.be.within(0, 200)
    expect(clock.skewMs()).to.be.closeTo(3_600_000, 200)
  })
})
