import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { sql } from 'kysely'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { jobOptions, type LaneQueueOptions } from '../../keeper/adapters/lane-queue.ts'
import { freshDatabase } from '../support/postgres.ts'
import { startProxy } from '../support/proxy.ts'
import { emptyRedis, ON_REDIS, redisUrl } from '../support/redis.ts'
import { until } from './support/keeper-process.ts'
import { LANE, LaneProcess, UNFINISHED } from './support/lane-process.ts'

const DATABASE = 9

/** A job that is added while a connection is established may be lost. */
function laws(options: () => LaneQueueOptions): void {
  const running: LaneProcess[] = []
  const open = async (lanes?: readonly string[]): Promise<LaneProcess> => {
    const opened = new LaneProcess(options(), lanes)
    running.push(opened)
    await opened.opened()
    return opened
  }
  let owner: LaneProcess
  let other: LaneProcess
  beforeEach(async () => {
    other = await open()
    owner = (await open()).own(LANE)
    await (await owner.opened()).obliterate({ force: true })
  })
  afterEach(async () => {
    await owner.finishAll()
    await Promise.all(running.splice(0).map((each) => each.close()))
  })

  const untilFollowed = async (process = owner): Promise<void> => {
    const before = process.wakes()
    await until(async () => process.wakes() > before)
  }

  it('when a process that does not own a lane wakes it five times, one job wakes the owner and at most one follows', async () => {
    for (let n = 0; n < 5; n++) other.jobs.wake(LANE)
    await until(async () => owner.wakes() > 0)
    expect(await owner.count(...UNFINISHED)).to.be.at.most(1)
    await owner.finishAll()
    expect(await owner.count('completed')).to.equal(owner.wakes())
    expect(owner.wakes()).to.be.at.most(2)
    expect(other.wakes()).to.equal(0)
  })

  it('when the owner wakes its lane, it is woken at once and no job is added', async () => {
    owner.jobs.wake(LANE)
    expect(owner.wakes()).to.equal(1)
    expect(await owner.count(...UNFINISHED)).to.equal(0)
  })

  it('when a lane becomes busy, its job is active until the lane is idle', async () => {
    owner.pass('waiting')
    await untilFollowed()
    await owner.untilCount(1, 'active')
    owner.pass('idle')
    owner.pass('waiting')
    owner.later(60_000)
    owner.pass('idle')
    expect(await owner.count('active')).to.equal(1)
    owner.idle()
    await owner.untilCount(0, ...UNFINISHED)
    expect(await owner.count('completed')).to.equal(1)
  })

  it('when a lane is woken while its job ends, another job follows', async () => {
    owner.pass('waiting')
    await untilFollowed()
    await owner.untilCount(1, 'active')
    await (await owner.opened()).add(LANE, null, jobOptions(LANE))
    expect(owner.wakes()).to.equal(1)
    owner.idle()
    await until(async () => owner.wakes() === 2)
    await owner.untilCount(1, 'active')
  })

  it('when its jobs are lost, the owner of a busy lane adds another one once it notices, and an idle lane adds none', async () => {
    owner.pass('waiting')
    await untilFollowed()
    const queue = await owner.opened()
    await queue.obliterate({ force: true })
    await until(async () => {
      owner.later(1_000)
      owner.pass('waiting')
      return owner.wakes() === 2
    })
    await owner.untilCount(1, 'active')
    await queue.obliterate({ force: true })
    owner.idle()
    owner.later(1_000)
    owner.pass('idle')
    expect(await owner.count(...UNFINISHED)).to.equal(0)
  })

  it('when jobs of a lane are doubled, one follows the lane and the other ends', async () => {
    owner.pass('waiting')
    await untilFollowed()
    const queue = await owner.opened()
    const doubled = await queue.add(LANE, null)
    await until(async () => (await queue.getJob(doubled.id as string))?.returnvalue === 'followed')
    expect(await owner.count('active')).to.equal(1)
    expect(owner.wakes()).to.equal(1)
  })

  it('when the jobs of several lanes are reordered, each one wakes its own lane', async () => {
    const lanes = ['m2', 'm3', 'm4']
    const many = (await open(lanes)).own(...lanes)
    const queue = await many.opened()
    await queue.addBulk(lanes.toReversed().map((name) => ({ name, data: null, opts: { lifo: true } })))
    await until(async () => lanes.every((lane) => many.wakes(lane) === 1))
    for (const lane of lanes) many.idle(lane)
    await many.untilCount(0, ...UNFINISHED)
  })

  it('when the lease of a lane is lost, its job moves to the new owner', async () => {
    owner.pass('waiting')
    await untilFollowed()
    other.own(LANE)
    owner.release()
    await until(async () => other.wakes() === 1)
    await other.untilCount(1, 'active')
    other.idle()
    await other.untilCount(0, ...UNFINISHED)
    expect(await other.count('completed')).to.equal(1)
    owner.own(LANE)
    other.release()
  })

  it('when a step of a lane fails, its job is retried, and shows the kind of the error without its text', async () => {
    owner.pass('waiting')
    await untilFollowed()
    await owner.untilCount(1, 'active')
    const [job] = await (await owner.opened()).getJobs('active')
    owner.jobs.failed(LANE, Object.assign(new Error('http://user:secret@node'), { code: 'ECONNREFUSED' }))
    await until(async () => owner.wakes() === 2)
    const retried = await (await owner.opened()).getJob(job?.id as string)
    expect(retried?.failedReason).to.equal(
      'step failed with ECONNREFUSED; the log of the keeper has the error',
    )
    expect(JSON.stringify(retried)).not.to.contain('secret')
  })

  it('when no process owns a lane, its job ends after it was passed on some times', async () => {
    owner.release()
    other.jobs.wake(LANE)
    await until(async () => (await owner.count('completed')) === 1)
    expect([owner.wakes(), other.wakes()]).to.deep.equal([0, 0])
  })

  it('when it closes with an active job, it closes within 5 s', async () => {
    owner.pass('waiting')
    await untilFollowed()
    const third = (await open(['m9'])).own('m9')
    third.pass('waiting', 'm9')
    await until(async () => third.wakes('m9') === 1)
    const started = Date.now()
    third.release('m9')
    await third.close()
    expect(Date.now() - started).to.be.lessThan(5_000)
  })
}

describe('keeper/adapters/lane-queue in Postgres', function () {
  this.timeout(60_000)
  let databaseUrl: string
  let db: Db
  before(async () => {
    databaseUrl = await freshDatabase()
    db = createDb(createPool({ url: databaseUrl, connections: 1, name: 'test' }))
  })
  after(() => db.destroy())

  const options = () => ({ databaseUrl, redisUrl: null })
  describe('between two processes', () => laws(options))

  /** Connections to the database, except those of this test, and how many of them listen. */
  async function connections(): Promise<{ readonly all: number; readonly listening: number }> {
    const { rows } = await sql<{ all: number; listening: number }>`
      select count(*)::int as all, (count(*) filter (where application_name = 'lanes'))::int as listening
      from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
    `.execute(db)
    return rows[0] as { all: number; listening: number }
  }

  it('when a process has 20 busy lanes, one connection listens and one serves', async () => {
    await until(async () => (await connections()).all === 0)
    const lanes = Array.from({ length: 20 }, (_, index) => `m${index + 1}`)
    const process = new LaneProcess(options(), lanes).own(...lanes)
    await process.opened()
    for (const lane of lanes) process.pass('waiting', lane)
    await process.untilCount(20, 'active')
    expect(await connections()).to.deep.equal({ all: 2, listening: 1 })
    for (const lane of lanes) process.idle(lane)
    await process.untilCount(0, ...UNFINISHED)
    await process.close()
    await until(async () => (await connections()).all === 0)
  })

  it('when the database ends its connections, jobs run again over the same number of connections', async () => {
    const owner = new LaneProcess(options()).own(LANE)
    await owner.opened()
    await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
    `.execute(db)
    await until(async () => {
      owner.later(1_000)
      owner.pass('waiting')
      return owner.wakes() > 0
    })
    await owner.finishAll()
    expect((await connections()).all).to.be.at.most(2)
    await owner.close()
  })

  it('when its tables are dropped, an add returns at once, and once they can be created again, jobs run', async () => {
    const url = await freshDatabase()
    const owner = new LaneProcess({ databaseUrl: url, redisUrl: null }).own(LANE)
    await owner.opened()
    const admin = createDb(createPool({ url, connections: 1, name: 'test' }))
    await admin.schema.dropSchema('bullmq').cascade().execute()
    for (let n = 0; n < 20; n++) {
      owner.later(1_000)
      owner.pass('waiting')
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    expect(owner.wakes()).to.equal(0)
    await owner.close()
    await sql`create schema bullmq authorization clearbatch_keeper`.execute(admin)
    const next = new LaneProcess({ databaseUrl: url, redisUrl: null }).own(LANE)
    await next.opened()
    next.pass('waiting')
    await until(async () => next.wakes() === 1)
    await next.close()
    await admin.destroy()
  })
})

describe(`keeper/adapters/lane-queue ${ON_REDIS}`, function () {
  this.timeout(60_000)
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

  const options = (address = url) => ({ databaseUrl: '', redisUrl: address })
  describe('between two processes', () => laws(options))

  /** The lane is busy until a job follows it. */
  const untilFollowed = async (owner: LaneProcess): Promise<void> => {
    const before = owner.wakes()
    await until(async () => {
      owner.later(1_000)
      owner.pass('waiting')
      return owner.wakes() > before
    })
  }

  it('when Redis returns without its data, jobs run again over the same number of connections', async () => {
    const proxy = await startProxy(url as string)
    const owner = new LaneProcess(options(proxy.url)).own(LANE)
    await untilFollowed(owner)
    owner.idle()
    const connections = async () =>
      String(await redis.client('LIST'))
        .trim()
        .split('\n').length
    const before = await connections()
    for (let times = 0; times < 2; times++) {
      await proxy.cut()
      owner.later(1_000)
      for (let n = 0; n < 3; n++) owner.pass('waiting')
      await redis.flushdb()
      await proxy.restore()
      await untilFollowed(owner)
      owner.idle()
    }
    await until(async () => (await connections()) <= before)
    await owner.close()
    await proxy.cut()
  })

  it('when it opens while Redis is down, jobs run once Redis is up', async () => {
    const proxy = await startProxy(url as string)
    await proxy.cut()
    const owner = new LaneProcess(options(proxy.url)).own(LANE)
    owner.pass('waiting')
    await proxy.restore()
    await untilFollowed(owner)
    owner.idle()
    await owner.close()
    await proxy.cut()
  })

  it('when Redis is down, it closes within 5 s', async () => {
    const proxy = await startProxy(url as string)
    const owner = new LaneProcess(options(proxy.url)).own(LANE)
    await untilFollowed(owner)
    await proxy.cut()
    owner.release()
    const started = Date.now()
    await owner.close()
    expect(Date.now() - started).to.be.lessThan(5_000)
  })
})
