import { isDeepStrictEqual } from 'node:util'
import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { sql } from 'kysely'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { createDb, createPool, type Db } from '../../db/client.ts'
import type { MarketId } from '../../domain/units.ts'
import { createWakeUps } from '../../keeper/adapters/wake-ups.ts'
import type { WakeUps } from '../../keeper/ports.ts'
import { perpetual } from '../support/markets.ts'
import { freshDatabase } from '../support/postgres.ts'
import { type CutProxy, startProxy } from '../support/proxy.ts'
import { emptyRedis, ON_REDIS, redisUrl } from '../support/redis.ts'
import { ChainFixture, useChain } from './support/chain-fixture.ts'
import { expectConsistent } from './support/invariants.ts'
import { KeeperProcess, until } from './support/keeper-process.ts'
import { SILENT_LOGGER, type Trader } from './support/market-fixture.ts'

const MARKET = 1 as MarketId
const DATABASE = 9

/** Two processes: what one sends, the other one gets. What is sent while a connection is established may be lost. */
function pairOf(open: () => WakeUps) {
  const [sender, receiver] = [open(), open()]
  const heard = new Map<MarketId, number>()
  const heardOf = (market: MarketId): number => heard.get(market) ?? 0
  const pair = {
    sender,
    receiver,
    heard: heardOf,
    listen: (market: MarketId = MARKET) =>
      receiver.listen(market, () => heard.set(market, heardOf(market) + 1)),
    async untilHeard(market: MarketId = MARKET) {
      const before = heardOf(market)
      await until(async () => {
        sender.send(market)
        return heardOf(market) > before
      })
    },
    untilQuiet: () =>
      until(async () => {
        const before = heardOf(MARKET)
        await new Promise((resolve) => setTimeout(resolve, 200))
        return heardOf(MARKET) === before
      }),
    close: () => Promise.all([sender.close(), receiver.close()]),
  }
  return pair
}

function laws(open: () => WakeUps): void {
  let pair: ReturnType<typeof pairOf>
  beforeEach(() => {
    pair = pairOf(open)
  })
  afterEach(() => pair.close())

  it('when another process listens, it gets every wake-up of its market and no other', async () => {
    pair.listen()
    await pair.untilHeard()
    await pair.untilQuiet()
    const before = pair.heard(MARKET)
    for (let n = 0; n < 5; n++) pair.sender.send(MARKET)
    pair.sender.send(2 as MarketId)
    await until(async () => pair.heard(MARKET) === before + 5)
    await pair.untilQuiet()
    expect(pair.heard(MARKET)).to.equal(before + 5)
  })

  it('when the listener is in the same process, it is woken at once and other processes are not', async () => {
    pair.listen()
    await pair.untilHeard()
    await pair.untilQuiet()
    const before = pair.heard(MARKET)
    let own = 0
    pair.sender.listen(MARKET, () => own++)
    pair.sender.send(MARKET)
    expect(own).to.equal(1)
    await pair.untilQuiet()
    expect(pair.heard(MARKET)).to.equal(before)
  })

  it('when a listener ends, it gets no further wake-up', async () => {
    const end = pair.listen()
    await pair.untilHeard()
    await pair.untilQuiet()
    end()
    const before = pair.heard(MARKET)
    pair.sender.send(MARKET)
    await pair.untilQuiet()
    expect(pair.heard(MARKET)).to.equal(before)
  })

  it('when it closes, it closes within 5 s', async () => {
    pair.listen()
    await pair.untilHeard()
    const started = Date.now()
    await pair.close()
    expect(Date.now() - started).to.be.lessThan(5_000)
  })
}

describe('keeper/adapters/wake-ups in Postgres', function () {
  this.timeout(30_000)
  let databaseUrl: string
  let db: Db
  before(async () => {
    databaseUrl = await freshDatabase()
    db = createDb(createPool({ url: databaseUrl, connections: 1, name: 'test' }))
  })
  after(() => db.destroy())

  const open = () => createWakeUps({ databaseUrl, redisUrl: null }, SILENT_LOGGER)
  describe('between two processes', () => laws(open))

  /** Connections to the database, except those of this test, and how many of them listen. */
  async function connections(): Promise<{ readonly all: number; readonly listening: number }> {
    const { rows } = await sql<{ all: number; listening: number }>`
      select count(*)::int as all, (count(*) filter (where application_name like 'bullmq:relay:%'))::int as listening
      from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
    `.execute(db)
    return rows[0] as { all: number; listening: number }
  }

  it('when a process listens to 20 markets, one connection listens and one sends', async () => {
    await until(async () => (await connections()).all === 0)
    const pair = pairOf(open)
    const markets = Array.from({ length: 20 }, (_, index) => (index + 1) as MarketId)
    for (const market of markets) pair.listen(market)
    for (const market of markets) await pair.untilHeard(market)
    const opened = await connections()
    await pair.close()
    // Two processes have two connections each.
    expect(opened).to.deep.equal({ all: 4, listening: 2 })
    await until(async () => (await connections()).all === 0)
  })

  it('when the database ends its connections, wake-ups arrive again over the same number of connections', async () => {
    const pair = pairOf(open)
    pair.listen()
    await pair.untilHeard()
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'bullmq:relay:%'`.execute(
      db,
    )
    await pair.untilHeard()
    await until(async () => isDeepStrictEqual(await connections(), { all: 4, listening: 2 }))
    await pair.close()
  })

  it('when its tables are missing, it delivers no wake-up and blocks no sender', async () => {
    const url = await freshDatabase()
    const pair = pairOf(() => createWakeUps({ databaseUrl: url, redisUrl: null }, SILENT_LOGGER))
    pair.listen()
    await pair.untilHeard()
    await pair.untilQuiet()
    const owner = createDb(createPool({ url, connections: 1, name: 'test' }))
    await owner.schema.dropSchema('bullmq').cascade().execute()
    await owner.destroy()
    const before = pair.heard(MARKET)
    for (let n = 0; n < 20; n++) {
      pair.sender.send(MARKET)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    await pair.close()
    expect(pair.heard(MARKET)).to.equal(before)
  })
})

describe(`keeper/adapters/wake-ups ${ON_REDIS}`, function () {
  this.timeout(30_000)
  const url = redisUrl(DATABASE)
  let redis: Redis
  before(async function () {
    if (url === null) return this.skip()
    redis = await emptyRedis(url)
  })
  after(async () => {
    await redis?.flushdb()
    redis?.disconnect()
  })

  const openAt = (redisUrl: string) => () => createWakeUps({ databaseUrl: '', redisUrl }, SILENT_LOGGER)
  describe('between two processes', () => laws(() => openAt(url as string)()))

  it('when Redis returns without its data, wake-ups arrive again over the same number of connections', async () => {
    const proxy = await startProxy(url as string)
    const pair = pairOf(openAt(proxy.url))
    pair.listen()
    await pair.untilHeard()
    const connections = async () =>
      String(await redis.client('LIST'))
        .trim()
        .split('\n').length
    const before = await connections()
    for (let times = 0; times < 2; times++) {
      await proxy.cut()
      for (let n = 0; n < 3; n++) pair.sender.send(MARKET)
      await redis.flushdb()
      await proxy.restore()
      await pair.untilHeard()
    }
    await until(async () => (await connections()) <= before)
    await pair.close()
    await proxy.cut()
  })

  it('when it opens while Redis is down, it delivers wake-ups once Redis is up', async () => {
    const proxy = await startProxy(url as string)
    await proxy.cut()
    const pair = pairOf(openAt(proxy.url))
    pair.listen()
    pair.sender.send(MARKET)
    await proxy.restore()
    await pair.untilHeard()
    await pair.close()
    await proxy.cut()
  })

  it('when Redis is down, it closes within 5 s', async () => {
    const proxy = await startProxy(url as string)
    const pair = pairOf(openAt(proxy.url))
    pair.listen()
    await pair.untilHeard()
    await proxy.cut()
    const started = Date.now()
    await pair.close()
    expect(Date.now() - started).to.be.lessThan(5_000)
  })
})

describe(`the keeper process ${ON_REDIS}`, function () {
  this.timeout(60_000)
  const url = redisUrl(DATABASE)
  before(function () {
    if (url === null) this.skip()
  })
  const chain = useChain(perpetual)
  let redis: Redis
  let fixture: ChainFixture
  let alice: Trader
  let bob: Trader
  let proxy: CutProxy
  let keeper: KeeperProcess

  beforeEach(async () => {
    redis = await emptyRedis(url as string)
    proxy = await startProxy(url as string)
    fixture = await ChainFixture.openOn(chain())
    await fixture.report(1000)
    alice = await fixture.depositor('alice')
    bob = await fixture.depositor('bob')
    keeper = await KeeperProcess.start(fixture, { REDIS_URL: proxy.url, SWEEP_MS: '300' })
    await keeper.ready()
  })
  afterEach(async () => {
    await keeper.kill('SIGKILL')
    await proxy.cut()
    await expectConsistent(fixture)
    await fixture.close()
    await redis.flushdb()
    redis.disconnect()
  })

  async function cross(steps: number): Promise<void> {
    await fixture.report(1000)
    await fixture.place({ by: alice, side: 'LONG', steps, limit: 1000 })
    await fixture.place({ by: bob, side: 'SHORT', steps, limit: 1000 })
    await fixture.auction().run()
  }
  const untilHeld = (steps: number) =>
    until(
      async () => {
        await fixture.follow()
        return (await fixture.position(alice)) === BigInt(steps)
      },
      () => keeper.output,
    )

  it('when Redis loses its data, goes down and returns, it settles every batch and exits with 0 on SIGTERM', async () => {
    await cross(10)
    await redis.flushdb()
    await untilHeld(10)

    await proxy.cut()
    await cross(15)
    await untilHeld(25)

    await proxy.restore()
    await cross(5)
    await untilHeld(30)
    expect(await keeper.kill('SIGTERM')).to.deep.equal([0, null])
    await fixture.follow()
  })

  it('when it receives SIGTERM while Redis is down, it exits with 0', async () => {
    await cross(10)
    await untilHeld(10)
    await proxy.cut()
    expect(await keeper.kill('SIGTERM')).to.deep.equal([0, null])
    expect((await fetch(keeper.url).catch(() => null)) === null).to.equal(true)
  })
})
