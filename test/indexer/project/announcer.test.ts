import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import fc from 'fast-check'
import { after, before, describe, it } from 'mocha'
import { createDb, createPool } from '../../../db/client.ts'
import { createNotifications, type RunningNotifications } from '../../../db/notifications.ts'
import {
  decodeNotice,
  encodeNotice,
  PROJECTED_CHANNEL,
  type ProjectedNotice,
} from '../../../db/projected-notices.ts'
import { Announcer, type ProjectedChunk } from '../../../indexer/project/announcer.ts'
import { waitFor } from '../../support/patience.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'

const anyNotice: fc.Arbitrary<ProjectedNotice> = fc.record({
  projections: fc.uniqueArray(fc.constantFrom('orders', 'fills', 'positions', 'funding_spans'), {
    minLength: 1,
  }),
  shards: fc.array(
    fc.record({ shard: fc.nat(9_999).map((id) => `m${id}`), epoch: fc.nat(9), seq: fc.maxSafeNat() }),
    { minLength: 1, maxLength: 900 },
  ),
  feedSeq: fc.option(fc.maxSafeNat()),
})

describe('notices of projected rows', () => {
  it('when a notice is encoded, its payloads are short enough, and together they are the notice', () => {
    fc.assert(
      fc.property(anyNotice, (notice) => {
        const payloads = encodeNotice(notice)
        for (const payload of payloads) expect(payload.length).to.be.below(8_000)
        const notices = payloads.map(decodeNotice)
        expect(notices.flatMap(({ shards }) => shards)).to.deep.equal(notice.shards)
        for (const { projections, feedSeq } of notices)
          expect({ projections, feedSeq }).to.deep.equal({
            projections: notice.projections,
            feedSeq: notice.feedSeq,
          })
      }),
    )
  })
})

/** The last sequence of each shard. */
const reachedBy = (notices: readonly ProjectedNotice[]): Map<string, number> =>
  new Map(notices.flatMap(({ shards }) => shards.map(({ shard, seq }) => [shard, seq])))

const chunk = (seq: number, hasBatch: boolean): ProjectedChunk => ({
  ...{ shard: 'm1', epoch: 1, seq, projections: ['orders'], feedSeq: null, hasBatch },
})

describe('the announcer', () => {
  let test: TestDatabase
  let notifications: RunningNotifications
  const heard: string[] = []
  before(async () => {
    test = await freshDatabase()
    notifications = createNotifications(test.url, 'test')
    notifications.on(PROJECTED_CHANNEL, (payload) => heard.push(payload))
    await notifications.start()
  })
  after(async () => {
    await notifications.stop()
    await test.close()
  })

  it('when 300 markets commit batch after batch, far fewer notifications reach the last sequence of each', async () => {
    const announcer = new Announcer(test.db, (error) => {
      throw error
    })
    const projections = ['orders', 'fills']
    const batches = 20
    for (let seq = 1; seq <= batches; seq++) {
      for (let market = 1; market <= 300; market++)
        announcer.add({
          shard: `m${market}`,
          epoch: 1,
          seq,
          projections,
          feedSeq: seq * 300 + market,
          hasBatch: true,
        })
      await sleep(5)
    }
    await announcer.stop()
    const notices = await waitFor(
      async () => heard.map(decodeNotice),
      (all) => reachedBy(all).get('m1') === batches && reachedBy(all).get('m300') === batches,
    )
    expect(notices.length).to.be.at.most(2 * batches)
    const reached = reachedBy(notices)
    expect(reached.size).to.equal(300)
    expect([...new Set(reached.values())]).to.deep.equal([batches])
    expect(Math.max(...notices.map(({ feedSeq }) => feedSeq ?? 0))).to.equal(batches * 300 + 300)
  })

  it('when a chunk has a batch, it is announced at once after others, but not after another batch', async () => {
    heard.length = 0
    const mergeMs = 5_000
    const announcer = new Announcer(test.db, () => {}, mergeMs)
    const times: number[] = []
    for (const seq of [1, 2, 3]) {
      announcer.add(chunk(seq, seq > 1))
      await waitFor(
        async () => heard.length,
        (count) => count === seq,
      )
      times.push(performance.now())
    }
    await announcer.stop()
    const [first, second, third] = times as [number, number, number]
    expect(second - first).to.be.below(mergeMs)
    expect(third - second).to.be.at.least(mergeMs - 500)
  })

  it('when the database fails, it reports that and does not wait for it', async () => {
    const failures: Error[] = []
    const unreachable = createDb(
      createPool({ url: 'postgres://127.0.0.1:1/x', connections: 1, name: 'test' }),
    )
    const announcer = new Announcer(unreachable, (error) => failures.push(error))
    announcer.add(chunk(1, false))
    await announcer.stop()
    expect(failures).to.have.length(1)
    await unreachable.destroy()
  })
})
