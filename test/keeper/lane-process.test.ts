import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { sql } from 'kysely'
import { afterEach, before, beforeEach, describe, it } from 'mocha'
import { perpetual, rate } from '../support/markets.ts'
import { type CutProxy, startProxy } from '../support/proxy.ts'
import { emptyRedis, ON_REDIS, redisUrl } from '../support/redis.ts'
import { ChainFixture, useChain } from './support/chain-fixture.ts'
import { type KeeperProcess, until } from './support/keeper-process.ts'
import { Keepers } from './support/keepers.ts'
import { LaneProcess } from './support/lane-process.ts'

const DATABASE = 14

describe(`the keeper process ${ON_REDIS}`, function () {
  this.timeout(60_000)
  const url = redisUrl(DATABASE)
  before(function () {
    if (url === null) this.skip()
  })
  const chain = useChain(perpetual)
  let redis: Redis
  let keepers: Keepers
  let proxy: CutProxy
  let keeper: KeeperProcess

  beforeEach(async () => {
    redis = await emptyRedis(url as string)
    proxy = await startProxy(url as string)
    keepers = await Keepers.on(await ChainFixture.openOn(chain()))
    keeper = await keepers.startReady({ REDIS_URL: proxy.url, SWEEP_MS: '300' })
  })
  afterEach(async () => {
    await proxy.cut()
    await keepers.close()
    await redis.flushdb()
    redis.disconnect()
  })

  it('when Redis loses its data, goes down and returns, it settles every batch and exits with 0 on SIGTERM', async () => {
    await keepers.cross(10)
    await redis.flushdb()
    await keepers.untilHeld(10, keeper)

    await proxy.cut()
    await keepers.cross(15)
    await keepers.untilHeld(25, keeper)

    await proxy.restore()
    await keepers.cross(5)
    await keepers.untilHeld(30, keeper)
    expect(await keeper.kill('SIGTERM')).to.deep.equal([0, null])
    await keepers.fixture.follow()
  })

  it('when it receives SIGTERM while Redis is down, it exits with 0', async () => {
    await keepers.cross(10)
    await keepers.untilHeld(10, keeper)
    await proxy.cut()
    expect(await keeper.kill('SIGTERM')).to.deep.equal([0, null])
    expect((await fetch(keeper.url).catch(() => null)) === null).to.equal(true)
  })
})

interface Page {
  readonly queues: readonly { readonly jobs: readonly { readonly name: string }[] }[]
}

/** Bound of the time until the job of a process that has died is found stalled and has ended elsewhere. */
const STALLED_MS = 40_000

describe('keeper processes with jobs of lanes', function () {
  this.timeout(90_000)
  // Without funding, the keeper's transactions are those of the batches alone.
  const chain = useChain({ ...perpetual, fundingCap: rate('0') })
  let keepers: Keepers
  let fixture: ChainFixture

  beforeEach(async () => {
    fixture = await ChainFixture.openOn(chain())
    keepers = await Keepers.on(fixture)
  })
  afterEach(() => keepers.close())

  const mined = () => chain().provider.getTransactionCount(fixture.lane.relayer)

  for (const { place, url } of [
    { place: 'in Postgres', url: '' },
    { place: ON_REDIS, url: redisUrl(DATABASE) },
  ])
    it(`when a keeper is killed with an active job ${place}, the other one settles once and ends the job`, async function () {
      if (url === null) return this.skip()
      if (url !== '') (await emptyRedis(url)).disconnect()
      const env = { REDIS_URL: url, STUCK_AFTER_MS: '30000' }
      const victim = await keepers.startReady(env)
      const other = await keepers.startReady(env)
      // Owns no lane, and passes every job on.
      const observer = new LaneProcess({ databaseUrl: fixture.url, redisUrl: url || null }, [])
      await keepers.cross(10)
      await until(
        async () => (await observer.count('active')) > 0,
        () => victim.output + other.output,
      )
      await victim.kill('SIGKILL')
      await keepers.untilHeld(10, other)
      await keepers.cross(5)
      await keepers.untilHeld(15, other)
      expect(await mined()).to.equal(2)
      await until(
        async () => (await observer.count('active', 'waiting', 'delayed')) === 0,
        () => other.output,
        STALLED_MS,
      )
      expect(await observer.count('completed')).to.be.at.least(1)
      await observer.close()
    })

  it('when a keeper settles and pays a faucet request, its page shows a job of each lane, and refuses to pause them', async () => {
    const password = 'the password of the operator'
    const keeper = await keepers.startReady({ QUEUE_PAGE_PASSWORD: password })
    const request = (path: string, method = 'GET') =>
      fetch(`${keeper.url}/queues/api${path}`, {
        method,
        headers: { authorization: `Basic ${Buffer.from(`operator:${password}`).toString('base64')}` },
      })
    // A job that is added before the queue is open is dropped, and a lane that is idle again needs none.
    await until(async () => (await request('/queues')).status === 200)
    await keepers.requestFaucet()
    await keepers.cross(10)
    await keepers.untilHeld(10, keeper)
    await until(async () => {
      const { queues } = (await (await request('/queues?activeQueue=lanes&status=latest')).json()) as Page
      const names = queues.flatMap(({ jobs }) => jobs.map(({ name }) => name))
      return names.includes('m1') && names.includes('faucet')
    })
    expect((await request('/queues/lanes/pause', 'PUT')).status).to.equal(405)
    expect((await fetch(`${keeper.url}/queues`)).status).to.equal(401)
    expect(keeper.output).not.to.contain(password)
  })

  it('when no password is set, there is no page', async () => {
    const keeper = await keepers.startReady()
    expect((await fetch(`${keeper.url}/queues`)).status).to.equal(404)
  })

  it('when the tables of the queue are missing the whole time, the keeper settles every batch and exits with 0', async () => {
    await sql`drop schema bullmq cascade`.execute(fixture.db)
    const keeper = await keepers.startReady()
    await keepers.cross(10)
    await keepers.untilHeld(10, keeper)
    await keepers.cross(5)
    await keepers.untilHeld(15, keeper)
    expect(await mined()).to.equal(2)
    expect(await keeper.kill('SIGTERM')).to.deep.equal([0, null])
  })
})
