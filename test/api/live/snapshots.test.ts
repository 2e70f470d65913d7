/** The order in which snapshots are read, on the feed's own database. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { ApiError } from '../../../api/errors.ts'
import type { Encoder } from '../../../api/live/frames.ts'
import { Snapshots } from '../../../api/live/snapshots.ts'
import { createCompleteness } from '../../../api/read-after/completeness.ts'
import { systemClock } from '../../../service/clock.ts'
import { freshDatabase, type TestDatabase } from '../../indexer/support/database.ts'

describe('snapshots of the live feed', () => {
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
  })
  after(() => test.close())

  const start = () => {
    const { db } = test
    const snapshots = new Snapshots({
      db,
      clock: systemClock,
      completeness: createCompleteness(db, systemClock),
    })
    const read: string[] = []
    const topic = (name: string): Encoder => ({
      name,
      channel: {
        ...{
          head: name,
          scope: { tables: ['read.book_levels'], shard: 'm1' },
          isConflatable: true,
          pacing: 'none',
          update: null,
        },
        async snapshot() {
          read.push(name)
          return {}
        },
      },
    })
    return { snapshots, read, topic }
  }

  it('when every subscription begins again, none is refused, and a new one waits for few of them', async () => {
    const { snapshots, read, topic } = start()
    const again = Array.from({ length: 400 }, (_, at) => snapshots.read(topic(`again ${at}`), 'again'))
    const first = snapshots.read(topic('new'), 'new')
    await Promise.all([...again, first])
    expect(read).to.have.length(401)
    expect(read.indexOf('new')).to.be.lessThan(8)
  })

  it('when many new subscriptions wait, further ones are refused, and those that begin again are served in turn', async () => {
    const { snapshots, read, topic } = start()
    const results = Promise.allSettled(
      Array.from({ length: 300 }, (_, at) => snapshots.read(topic(`new ${at}`), 'new')),
    )
    const again = snapshots.read(topic('again'), 'again')
    const refused = (await results).flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    await again
    expect(refused).to.have.length(300 - 204)
    for (const error of refused) expect((error as ApiError).code).to.equal('OVERLOADED')
    expect(read.indexOf('again')).to.be.lessThan(8)
  })
})
