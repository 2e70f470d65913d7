/** Bookmarks while the read model lags: a delayed projector, a rebuild, a lost database, too many waiting reads. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { appendRows, lockShard, shardId } from '../../../db/journal.ts'
import { ACCOUNTS_SHARD, type JournalRow } from '../../../domain/journal/journal-row.ts'
import { rebuild } from '../../../indexer/project/rebuild.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { startProxy } from '../../support/proxy.ts'
import {
  type Answer,
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
  let alice: User
  const WAIT_MS = 1_500

  before(async () => {
    exchange = await startExchange({ READ_AFTER_WAIT_MS: String(WAIT_MS), READ_AFTER_POLL_MS: '50' })
    alice = await createUser(exchange.db, 'alice')
    await exchange.project()
  })
  after(() => exchange.stop())

  const place = async (): Promise<{ path: string; mark: Bookmark }> => {
    const { body } = await exchange.place(alice, { quantity: '0.01' })
    return { path: `/v0/orders/${body.order.order_id}`, mark: body.read_after }
  }
  const timed = async (path: string): Promise<{ answer: Answer; ms: number }> => {
    const since = performance.now()
    return { answer: await exchange.get(alice, path), ms: performance.now() - since }
  }

  it('when the projector catches up in time, the read waits for it and then answers', () =>
    whileHeld(exchange, 'm1', async (release) => {
      const { path, mark } = await place()
      const reading = timed(`${path}?${query(mark)}`)
      await exchange.project('m1')
      await sleep(400)
      await release()
      await exchange.project('m1')
      const { answer, ms } = await reading
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
      expect(ms).to.be.at.least(400)
    }))

  it('when the projector does not catch up in time, it answers 503 PENDING, and the bookmark is valid later', () =>
    whileHeld(exchange, 'm1', async (release) => {
      const { path, mark } = await place()
      const { answer, ms } = await timed(`${path}?${query(mark)}`)
      expect(codeOf(answer)).to.deep.equal(PENDING)
      expect(answer.headers['retry-after']).to.equal('0.5')
      expect(answer.body.details).to.include({ retryable: true }).and.not.have.property('outcome')
      expect(ms).to.be.at.least(WAIT_MS - 20)
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
      const { answer, ms } = await timed(path)
      expect(codeOf(answer)).to.deep.equal([404, 'ORDER_NOT_FOUND'])
      expect(ms).to.be.lessThan(WAIT_MS)
    }))

  it('when many reads wait for one row, all return it once it is projected', async () => {
    const { path, mark } = await place()
    const waiting = Array.from({ length: 200 }, () => exchange.get(alice, `${path}?${query(mark)}`))
    await exchange.project('m1')
    const statuses = (await Promise.all(waiting)).map(({ status }) => status)
    expect(new Set(statuses)).to.deep.equal(new Set([200]))
  })

  it('when a bookmark is beyond the head of the journal, it waits and answers 503 PENDING', async () => {
    const { mark } = await place()
    await exchange.project('m1')
    const beyond = { ...mark, shard_seq: String(Number(mark.shard_seq) + 1_000) }
    expect(codeOf(await exchange.get(alice, `/v0/markets?${query(beyond)}`))).to.deep.equal(PENDING)
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
      const { answer, ms } = await timed(`/v0/markets?${query({ shard_id, shard_seq })}`)
      expect(codeOf(answer), JSON.stringify(answer.body)).to.deep.equal(STALE)
      expect(answer.body.details).to.include({ retryable: false })
      expect(answer.body.details.field).to.match(/^read_after_shard_(id|seq)$/)
      expect(ms).to.be.lessThan(WAIT_MS)
    })
  }

  it('when the read model was rebuilt, old bookmarks are 409 STALE, also for waiting reads, and new ones are valid', async () => {
    const old = await place()
    const waiting = exchange.get(alice, `${old.path}?${query(old.mark)}`)
    await sleep(50)
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
      expect(codeOf(await exchange.get(alice, path)), 'its market is held back').to.deep.equal(PENDING)
    })
    const waiting = exchange.get(alice, path)
    await exchange.project()
    const { status, body } = await waiting
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body.order_id).to.equal(placed.order.order_id)
  })
})

describe('the limit of waiting reads', () => {
  it('when too many reads wait, more are 429 CAPACITY, reads without a bookmark pass, and places are released', async () => {
    const exchange = await startExchange({ READ_AFTER_WAIT_MS: '4000', READ_AFTER_WAITERS: '3' })
    const alice = await createUser(exchange.db, 'alice')
    await exchange.project()
    const others = [await createUser(exchange.db, 'bob'), await createUser(exchange.db, 'carol')]
    const last = await createUser(exchange.db, 'dave')
    const { body } = await exchange.place(alice)
    const path = `/v0/orders/${body.order.order_id}`
    const marked = `${path}?${query(body.read_after)}`
    const ownOf = (user: User) => `/v0/orders/by-user/${user.userId}?${query(body.read_after)}`
    const waiting = [exchange.get(alice, marked), ...others.map((user) => exchange.get(user, ownOf(user)))]
    // Until all three wait, a fourth read may get one of the places.
    await sleep(300)
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
    // The poll interval exceeds the wait, so only a notification can wake the reads in time.
    const slow = { READ_AFTER_POLL_MS: '120000', READ_AFTER_WAIT_MS: '15000' }
    const exchange = await startExchange(slow)
    const second = await startSecondApi(exchange, slow)
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
      await sleep(100)
      await projector.project('m1')
      expect((await read).status).to.equal(200)
    }
    await second.stop()
    await exchange.stop()
  })
})

describe('the share of one caller', () => {
  it('when one caller waits with many reads, it gets a quarter of the places, and again after they are answered', async () => {
    const exchange = await startExchange({ READ_AFTER_WAIT_MS: '4000', READ_AFTER_WAITERS: '8' })
    const [alice, bob] = [await createUser(exchange.db, 'alice'), await createUser(exchange.db, 'bob')]
    await exchange.project()
    for (let round = 0; round < 2; round++) {
      const { body } = await exchange.place(alice)
      const ownOf = (user: User) => `/v0/orders/by-user/${user.userId}?${query(body.read_after)}`
      const waiting = [1, 2].map(() => exchange.get(alice, ownOf(alice)))
      await sleep(300)
      expect(codeOf(await exchange.get(alice, ownOf(alice)))).to.deep.equal(CAPACITY)
      const other = exchange.get(bob, ownOf(bob))
      await sleep(100)
      await exchange.project('m1')
      for (const { status } of await Promise.all([...waiting, other])) expect(status).to.equal(200)
    }
    await exchange.stop()
  })
})

describe('bookmarks that no write has returned', () => {
  it('when invented bookmarks wait, they get a quarter of the places and leave the rest to other reads', async () => {
    const exchange = await startExchange({ READ_AFTER_WAIT_MS: '2500', READ_AFTER_WAITERS: '8' })
    const alice = await createUser(exchange.db, 'alice')
    await exchange.project()
    const { body } = await exchange.place(alice)
    const made = { ...body.read_after, shard_seq: '999999999' }
    const strangers = Array.from({ length: 2 }, () => exchange.get(null, `/v0/markets?${query(made)}`))
    await sleep(300)
    expect(codeOf(await exchange.get(null, `/v0/markets?${query(made)}`))).to.deep.equal(CAPACITY)
    const own = exchange.get(alice, `/v0/orders/${body.order.order_id}?${query(body.read_after)}`)
    await exchange.project('m1')
    expect((await own).status).to.equal(200)
    for (const answer of await Promise.all(strangers)) expect(codeOf(answer)).to.deep.equal(PENDING)
    await exchange.stop()
  })
})

describe('a process without access to the read model', () => {
  it('when the database is down, waiting and new reads are 503 UNAVAILABLE with Retry-After 2, and the bookmark is valid afterwards', async () => {
    const url = await freshDatabase()
    const proxy = await startProxy(url)
    const exchange = await startExchange({ DATABASE_URL: proxy.url, READ_AFTER_POLL_MS: '50' }, url)
    const alice = await createUser(exchange.db, 'alice')
    await exchange.project()
    const { body } = await exchange.place(alice)
    const marked = `/v0/markets?${query(body.read_after)}`
    const waiting = exchange.get(null, marked)
    await sleep(200)
    await proxy.cut()
    for (const answer of [await waiting, await exchange.get(null, marked)]) {
      expect(codeOf(answer)).to.deep.equal(UNAVAILABLE)
      expect(answer.headers['retry-after']).to.equal('2')
      expect(answer.body.details.retryable).to.equal(true)
    }
    await proxy.restore()
    await exchange.project()
    let again = await exchange.get(null, marked)
    for (let tries = 0; again.status !== 200 && tries < 50; tries++) {
      await sleep(100)
      again = await exchange.get(null, marked)
    }
    expect(again.status).to.equal(200)
    await exchange.stop()
    await proxy.cut()
  })
})
