import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { createDb, createPool } from '../../db/client.ts'
import { createQueues } from '../../keeper/adapters/queue.ts'
import type { WakeQueues } from '../../keeper/ports.ts'
import { settleQueue } from '../../keeper/queues.ts'
import { perpetual } from '../support/markets.ts'
import { freshDatabase } from '../support/postgres.ts'
import { type CutProxy, startProxy } from '../support/proxy.ts'
import { emptyRedis, ON_REDIS, redisUrl } from '../support/redis.ts'
import { ChainFixture, useChain } from './support/chain-fixture.ts'
import { expectConsistent } from './support/invariants.ts'
import { KeeperProcess, until } from './support/keeper-process.ts'
import { SILENT_LOGGER, type Trader } from './support/market-fixture.ts'

const RULE = settleQueue(1)
const DATABASE = 9

/** Wakes with new batch numbers until one arrives: what is sent while a connection is re-established may be lost. */
function wakings(queues: WakeQueues) {
  let batch = 0
  let heard = 0
  const send = queues.sender(RULE)
  return {
    heard: () => heard,
    hear: () => {
      heard++
    },
    send: () => send({ market_id: 1, batch_id: ++batch }),
    async untilHeard() {
      const before = heard
      await until(async () => {
        this.send()
        return heard > before
      })
    },
    untilQuiet: () =>
      until(async () => {
        const before = heard
        await new Promise((resolve) => setTimeout(resolve, 200))
        return heard === before
      }),
  }
}

function laws(open: () => Promise<WakeQueues>): void {
  let queues: WakeQueues
  beforeEach(async () => {
    queues = await open()
  })
  afterEach(() => queues.close())

  it('when a receiver listens, it gets the wake-up of each batch once', async () => {
    const waking = wakings(queues)
    queues.receiver(RULE, waking.hear)
    await waking.untilHeard()
    await waking.untilQuiet()
    const before = waking.heard()
    for (let n = 0; n < 5; n++) waking.send()
    await until(async () => waking.heard() === before + 5)
  })

  it('when a receiver opens later, it gets the wake-up that waited', async () => {
    const waking = wakings(queues)
    waking.send()
    queues.receiver(RULE, waking.hear)
    await until(async () => waking.heard() === 1)
  })

  it('when a receiver closes, it closes within 5 s and gets no further wake-up', async () => {
    const waking = wakings(queues)
    const receiver = queues.receiver(RULE, waking.hear)
    await waking.untilHeard()
    const started = Date.now()
    await receiver.close()
    expect(Date.now() - started).to.be.lessThan(5_000)
    await waking.untilQuiet()
    const before = waking.heard()
    waking.send()
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(waking.heard()).to.equal(before)
  })
}

describe('keeper/adapters/queue in Postgres', () => {
  let databaseUrl: string
  before(async () => {
    databaseUrl = await freshDatabase()
  })
  laws(() => createQueues({ databaseUrl, redisUrl: null }, SILENT_LOGGER))

  it('when its tables are missing, it delivers no wake-up and blocks no sender', async () => {
    const db = createDb(createPool({ url: databaseUrl, connections: 1, name: 'test' }))
    const queues = await createQueues({ databaseUrl, redisUrl: null }, SILENT_LOGGER)
    await db.schema.dropSchema('bullmq').cascade().execute()
    await db.destroy()
    const waking = wakings(queues)
    queues.receiver(RULE, waking.hear)
    for (let n = 0; n < 20; n++) {
      waking.send()
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    await queues.close()
    expect(waking.heard()).to.equal(0)
  })
})

describe(`keeper/adapters/queue ${ON_REDIS}`, () => {
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

  laws(() => createQueues({ databaseUrl: '', redisUrl: url }, SILENT_LOGGER))

  it('when Redis returns without its data, wake-ups arrive again over the same number of connections', async () => {
    const proxy = await startProxy(url as string)
    const queues = await createQueues({ databaseUrl: '', redisUrl: proxy.url }, SILENT_LOGGER)
    const waking = wakings(queues)
    queues.receiver(RULE, waking.hear)
    await waking.untilHeard()
    const connections = async () =>
      String(await redis.client('LIST'))
        .trim()
        .split('\n').length
    const before = await connections()
    for (let times = 0; times < 2; times++) {
      await proxy.cut()
      for (let n = 0; n < 3; n++) waking.send()
      await redis.flushdb()
      await proxy.restore()
      await waking.untilHeard()
    }
    await until(async () => (await connections()) <= before)
    await queues.close()
    await proxy.cut()
  })

  it('when it opens while Redis is down, it delivers wake-ups once Redis is up', async () => {
    const proxy = await startProxy(url as string)
    await proxy.cut()
    const queues = await createQueues({ databaseUrl: '', redisUrl: proxy.url }, SILENT_LOGGER)
    const waking = wakings(queues)
    queues.receiver(RULE, waking.hear)
    waking.send()
    await proxy.restore()
    await waking.untilHeard()
    await queues.close()
    await proxy.cut()
  })

  it('when Redis is down, it closes within 5 s', async () => {
    const proxy = await startProxy(url as string)
    const queues = await createQueues({ databaseUrl: '', redisUrl: proxy.url }, SILENT_LOGGER)
    const waking = wakings(queues)
    queues.receiver(RULE, waking.hear)
    await waking.untilHeard()
    await proxy.cut()
    const started = Date.now()
    await queues.close()
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
