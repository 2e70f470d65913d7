/** Bookmarks while the read model lags: a delayed projector, a rebuild, a lost database, too many waiting reads. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { shardId } from '../../../db/journal.ts'
import { ACCOUNTS_SHARD, type JournalRow } from '../../../domain/journal/journal-row.ts'
import { rebuild } from '../../../indexer/project/rebuild.ts'
import { waitFor } from '../../support/patience.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { startProxy } from '../../support/proxy.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import {
  codeOf,
  createUser,
  type ExchangeFixture,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'

interface Bookmark {
  readonly shard_id: string
  readonly shard_seq: string
}

const query = ({ shard_id, shard_seq }: Bookmark): string =>
  `read_after_shard_id=${shard_id}&read_after_shard_seq=${shard_seq}`

const PENDING = [503, 'HTV1_READ_AFTER_PENDING']
const STALE = [409, 'HTV1_READ_AFTER_STALE_BOOKMARK']
const UNAVAILABLE = [503, 'HTV1_READ_AFTER_UNAVAILABLE']
const CAPACITY = [429, 'HTV1_READ_AFTER_CAPACITY']
const STOPPING = [503, 'SHUTTING_DOWN']

/** A wait that ends within a test, so that the read is answered 503 PENDING. */
const SHORT_MS = 1_500
/** A wait that ends in no test, however slow the machine is: such reads end only by what the test does. */
const PATIENT = { readAfterWaitMs: 600_000 }

/** Resolves when so many reads of the api wait for their bookmarks. */
const untilWaiting = (exchange: ExchangeFixture, reads: number): Promise<string> =>
  waitFor(
    () => exchange.metrics(),
    (metrics) => new RegExp(`^api_read_after_waiting ${reads}$`, 'm').test(metrics),
    { everyMs: 10, budgetMs: 50_000 },
  )

/** Blocks the projector of the shard by locking its row, until `release` or the end of `work`. */
async function whileHeld(
  { db }: ExchangeFixture,
  shard: string,
  work: (release: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const ended = Promise.withResolvers<void>()
  const holding = Promise.withResolvers<void>()
  const done = db.transaction().execute(async (tx) => {
    await sql`select 1 from read.places where shard = ${shard} for update`.execute(tx)
    holding.resolve()
    await ended.promise
  })
  await holding.promise
  const release = (): Promise<void> => {
    ended.resolve()
    return done
  }
  await work(release).finally(release)
}

describe('a bookmark while the read model lags', () => {
  let exchange: ExchangeFixture
  let impatient: ExchangeFixture
  let alice: User

  before(async () => {
    exchange = await startExchange({ READ_AFTER_POLL_MS: '50' }, undefined, PATIENT)
    impatient = await startSecondApi(exchange, { READ_AFTER_WAIT_MS: String(SHORT_MS) })
    alice = await createUser(exchange.db, 'alice')
    await exchange.project()
  })
  after(async () => {
    await impatient.stop()
    await exchange.stop()
  })

  const place = async (): Promise<{ path: string; mark: Bookmark }> => {
    const { body } = await exchange.place(alice, { quantity: '0.01' })
    return { path: `/v0/orders/${body.order.order_id}`, mark: body.read_after }
  }

  it('when the projector catches up, the read waits for it and then answers', () =>
    whileHeld(exchange, 'm1', async (release) => {
      const { path, mark } = await place()
      const reading = exchange.get(alice, `${path}?${query(mark)}`)
      await exchange.project('m1')
      await untilWaiting(exchange, 1)
      await release()
      await exchange.project('m1')
      const answer = await reading
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
    }))

  it('when the projector does not catch up in time, it answers 503 PENDING, and the bookmark is valid later', () =>
    whileHeld(exchange, 'm1', async (release) => {
      const { path, mark } = await place()
      const since = performance.now()
      const answer = await impatient.get(alice, `${path}?${query(mark)}`)
      expect(codeOf(answer)).to.deep.equal(PENDING)
      expect(answer.headers['retry-after']).to.equal('0.5')
      expect(answer.body.details).to.include({ retryable: true }).and.not.have.property('outcome')
      expect(performance.now() - since).to.be.at.least(SHORT_MS - 20)
      await release()
      await exchange.project('m1')
      expect((await exchange.get(alice, `${path}?${query(mark)}`)).status).to.equal(200)
    }))

  it('when another shard lags, it does not wait for it', () =>
    whileHeld(exchange, 'm2', async () => {
      const { path, mark } = await place()
      await exchange.project('m1')
      expect((await exchange.get(alice, `${path}?${query(mark)}`)).status).to.equal(200)
    }))

  it('when a read has no bookmark, it never waits', () =>
    whileHeld(exchange, 'm1', async () => {
      const { path } = await place()
      expect(codeOf(await exchange.get(alice, path))).to.deep.equal([404, 'ORDER_NOT_FOUND'])
    }))

  it('when many reads wait for one row, all return it once it is projected', async () => {
    const { path, mark } = await place()
    const waiting = Array.from({ length: 200 }, () => exchange.get(alice, `${path}?${query(mark)}`))
    await untilWaiting(exchange, 200)
    await exchange.project('m1')
    const statuses = (await Promise.all(waiting)).map(({ status }) => status)
    expect(new Set(statuses)).to.deep.equal(new Set([200]))
  })

  it('when a bookmark is beyond the head of the journal, it waits and answers 503 PENDING', async () => {
    const { mark } = await place()
    await exchange.project('m1')
    const beyond = { ...mark, shard_seq: String(Number(mark.shard_seq) + 1_000) }
    expect(codeOf(await impatient.get(alice, `/v0/markets?${query(beyond)}`))).to.deep.equal(PENDING)
  })

  for (const [what, shard_id, shard_seq] of [
    ['an unknown shard', 'm77.1', '1'],
    ['an invalid shard', 'x1.1', '1'],
    ['a shard without an epoch', 'm1', '1'],
    ['another epoch', 'm1.2', '1'],
    ['an epoch that no integer holds', 'm1.99999999999', '1'],
    ['a shard that no integer holds', 'm99999999999.1', '1'],
    ['a sequence that is negative', 'm1.1', '-1'],
    ['a sequence that no number holds', 'm1.1', '99999999999999999999'],
    ['a sequence with a fraction', 'm1.1', '1.5'],
    ['nothing', '', ''],
  ] as const) {
    it(`when the bookmark names ${what}, it answers 409 STALE at once`, async () => {
      const answer = await exchange.get(alice, `/v0/markets?${query({ shard_id, shard_seq })}`)
      expect(codeOf(answer), JSON.stringify(answer.body)).to.deep.equal(STALE)
      expect(answer.body.details).to.include({ retryable: false })
      expect(answer.body.details.field).to.match(/^read_after_shard_(id|seq)$/)
    })
  }

  it('when the read model was rebuilt, old bookmarks are 409 STALE, also for waiting reads, and new ones are valid', async () => {
    const old = await place()
    const waiting = exchange.get(alice, `${old.path}?${query(old.mark)}`)
    await untilWaiting(exchange, 1)
    await rebuild(exchange.db, { limit: 1_000, killPoint: () => {} })
    expect(codeOf(await waiting)).to.deep.equal(STALE)
    expect(codeOf(await exchange.get(alice, `${old.path}?${query(old.mark)}`))).to.deep.equal(STALE)
    expect((await exchange.get(alice, old.path)).status, 'dropped, the read answers').to.equal(200)
    const { path, mark } = await place()
    expect(mark.shard_id).to.equal('m1.2')
    await exchange.project('m1')
    expect((await exchange.get(alice, `${path}?${query(mark)}`)).status).to.equal(200)
  })

  it('when a command covers several shards, a read with its bookmark shows all of them or waits', async () => {
    const { body: placed } = await exchange.place(alice, { quantity: '0.01' })
    const m1 = Number(placed.read_after.shard_seq)
    const mark = await exchange.db.transaction().execute(async (tx) => {
      const shard = await lockShard(tx, ACCOUNTS_SHARD)
      const row: JournalRow = {
        kind: 'command_spanned',
        user_id: alice.userId,
        shards: { m1 },
        at: Date.now(),
      }
      return { shard_id: shardId(shard), shard_seq: String(await appendRows(tx, shard, [row])) }
    })
    const path = `/v0/orders/${placed.order.order_id}?${query(mark)}`
    await whileHeld(exchange, 'm1', async () => {
      await exchange.project(ACCOUNTS_SHARD)
      expect(codeOf(await impatient.get(alice, path)), 'its market is held back').to.deep.equal(PENDING)
    })
    const waiting = exchange.get(alice, path)
    await untilWaiting(exchange, 1)
    await exchange.project()
    const { status, body } = await waiting
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body.order_id).to.equal(placed.order.order_id)
  })
})

describe('the limit of waiting reads', () => {
  it('when too many reads wait, more are 429 CAPACITY, reads without a bookmark pass, and places are released', async () => {
    const exchange = await startExchange({ READ_AFTER_WAITERS: '3' }, undefined, PATIENT)
    const alice = await createUser(exchange.db, 'alice')
    await exchange.project()
    const others = [await createUser(exchange.db, 'bob'), await createUser(exchange.db, 'carol')]
    const last = await createUser(exchange.db, 'dave')
    const { body } = await exchange.place(alice)
    const path = `/v0/orders/${body.order.order_id}`
    const marked = `${path}?${query(body.read_after)}`
    const ownOf = (user: User) => `/v0/orders/by-user/${user.userId}?${query(body.read_after)}`
    const waiting = [exchange.get(alice, marked), ...others.map((user) => exchange.get(user, ownOf(user)))]
    await untilWaiting(exchange, 3)
    expect(codeOf(await exchange.get(last, ownOf(last)))).to.deep.equal(CAPACITY)
    const late = await exchange.get(alice, marked)
    expect(codeOf(late)).to.deep.equal(CAPACITY)
    expect(late.headers['retry-after']).to.equal('1')
    expect(late.body.details.retryable).to.equal(true)
    expect(codeOf(await exchange.get(alice, path))).to.deep.equal([404, 'ORDER_NOT_FOUND'])
    await exchange.project('m1')
    for (const { status } of await Promise.all(waiting)) expect(status).to.equal(200)
    expect((await exchange.get(alice, marked)).status).to.equal(200)
    await exchange.stop()
  })
})

describe('several processes', () => {
  it('when a row is projected by any process, the waiting reads of every process are woken', async () => {
    // Poll and wait exceed the limit of the test, so only a notification can wake the reads.
    const slow = { ...PATIENT, readAfterPollMs: 600_000 }
    const exchange = await startExchange({}, undefined, slow)
    const second = await startSecondApi(exchange, {}, slow)
    const alice = await createUser(exchange.db, 'alice')
    await exchange.project()
    for (const [writer, reader, projector] of [
      [exchange, second, exchange],
      [second, exchange, exchange],
      [exchange, second, second],
      [exchange, exchange, second],
    ] as const) {
      const { body } = await writer.place(alice)
      const read = reader.get(alice, `/v0/orders/${body.order.order_id}?${query(body.read_after)}`)
      await untilWaiting(reader, 1)
      await projector.project('m1')
      expect((await read).status).to.equal(200)
    }
    await second.stop()
    await exchange.stop()
  })
})

describe('the share of one caller', () => {
  it('when one caller waits with many reads, it gets a quarter of the places, and again after they are answered', async () => {
    const exchange = await startExchange({ READ_AFTER_WAITERS: '8' }, undefined, PATIENT)
    const [alice, bob] = [await createUser(exchange.db, 'alice'), await createUser(exchange.db, 'bob')]
    await exchange.project()
    for (let round = 0; round < 2; round++) {
      const { body } = await exchange.place(alice)
      const ownOf = (user: User) => `/v0/orders/by-user/${user.userId}?${query(body.read_after)}`
      const waiting = [1, 2].map(() => exchange.get(alice, ownOf(alice)))
      await untilWaiting(exchange, 2)
      expect(codeOf(await exchange.get(alice, ownOf(alice)))).to.deep.equal(CAPACITY)
      const other = exchange.get(bob, ownOf(bob))
      await untilWaiting(exchange, 3)
      await exchange.project('m1')
      for (const { status } of await Promise.all([...waiting, other])) expect(status).to.equal(200)
    }
    await exchange.stop()
  })
})

describe('bookmarks that no write has returned', () => {
  it('when invented bookmarks wait, they get a quarter of the places and leave the rest to other reads', async () => {
    const exchange = await startExchange({ READ_AFTER_WAITERS: '8' }, undefined, PATIENT)
    const alice = await createUser(exchange.db, 'alice')
    await exchange.project()
    const { body } = await exchange.place(alice)
    const made = { ...body.read_after, shard_seq: '999999999' }
    const strangers = Array.from({ length: 2 }, () => exchange.get(null, `/v0/markets?${query(made)}`))
    await untilWaiting(exchange, 2)
    expect(codeOf(await exchange.get(null, `/v0/markets?${query(made)}`))).to.deep.equal(CAPACITY)
    const own = exchange.get(alice, `/v0/orders/${body.order.order_id}?${query(body.read_after)}`)
    await untilWaiting(exchange, 3)
    await exchange.project('m1')
    expect((await own).status).to.equal(200)
    await exchange.stop()
    for (const answer of await Promise.all(strangers)) expect(codeOf(answer)).to.deep.equal(STOPPING)
  })
})

describe('a process without access to the read model', () => {
  it('when the database is down, waiting and new reads are 503 UNAVAILABLE with Retry-After 2, and the bookmark is valid afterwards', async () => {
    const url = await freshDatabase()
    const proxy = await startProxy(url)
    const env = { DATABASE_URL: proxy.url, READ_AFTER_POLL_MS: '50' }
    const exchange = await startExchange(env, url, PATIENT)
    const alice = await createUser(exchange.db, 'alice')
    await exchange.project()
    const { body } = await exchange.place(alice)
    const marked = `/v0/markets?${query(body.read_after)}`
    const waiting = exchange.get(null, marked)
    await untilWaiting(exchange, 1)
    await proxy.cut()
    for (const answer of [await waiting, await exchange.get(null, marked)]) {
      expect(codeOf(answer)).to.deep.equal(UNAVAILABLE)
      expect(answer.headers['retry-after']).to.equal('2')
      expect(answer.body.details.retryable).to.equal(true)
    }
    await proxy.restore()
    await exchange.project()
    await waitFor(
      () => exchange.get(null, marked),
      ({ status }) => status === 200,
      { budgetMs: 40_000 },
    )
    await exchange.stop()
    await proxy.cut()
  })
})
