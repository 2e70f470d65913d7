import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { Registry } from 'prom-client'
import { createQueuePage } from '../../keeper/adapters/queue-page.ts'
import { readConfig } from '../../keeper/config.ts'
import { ConfigError } from '../../service/environment.ts'
import { serveHealth } from '../../service/health.ts'
import type { HttpListener } from '../../service/http-listener.ts'
import { freshDatabase } from '../support/postgres.ts'
import { emptyRedis, ON_REDIS, redisUrl } from '../support/redis.ts'
import { LANE, LaneProcess } from './support/lane-process.ts'
import { SILENT_LOGGER } from './support/market-fixture.ts'

const DATABASE = 13
const PASSWORD = 'a long secret: with a colon'
const basic = (credentials: string) => ({
  authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
})
const OPERATOR = basic(`operator:${PASSWORD}`)
const PAGES = ['', '/', '/queue/lanes', '/api/queues', '/static/favicon-32x32.png', '/unknown']

interface Listed {
  readonly queues: readonly {
    readonly name: string
    readonly readOnlyMode: boolean
    readonly isPaused: boolean
    readonly counts: Readonly<Record<string, number>>
    readonly jobs: readonly { readonly id: string; readonly name: string; readonly isFailed: boolean }[]
  }[]
}

function laws(optionsOf: () => Promise<ConstructorParameters<typeof LaneProcess>[0]>): void {
  let lanes: LaneProcess
  let health: HttpListener
  before(async () => {
    lanes = new LaneProcess(await optionsOf(), [LANE, 'relay']).own(LANE, 'relay')
    await lanes.opened()
    lanes.pass('waiting')
    lanes.pass('waiting', 'relay')
    await lanes.untilCount(2, 'active')
    lanes.idle('relay')
    await lanes.untilCount(1, 'completed')
    health = await serveHealth({
      host: '127.0.0.1',
      port: 0,
      registry: new Registry(),
      logger: SILENT_LOGGER,
      readiness: async () => ({ code: 200, status: 'ok', checks: {} }),
      page: await createQueuePage({ password: PASSWORD, queue: lanes.queue.queue }),
    })
  })
  after(async () => {
    await health.close()
    lanes.release()
    await lanes.close()
  })

  const request = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(`http://127.0.0.1:${health.port}/queues${path}`, { method, headers })

  it('when jobs are counted for the metrics, each state has the count of the page', async () => {
    const { counts } = await listed()
    const counted = Object.fromEntries(await lanes.queue.countJobs())
    expect(counted).to.deep.equal({
      waiting: counts.waiting,
      active: counts.active,
      delayed: counts.delayed,
      failed: counts.failed,
      completed: counts.completed,
    })
    expect(counted.active).to.equal(1)
  })

  async function listed(): Promise<Listed['queues'][number]> {
    const { queues } = (await (
      await request('/api/queues?activeQueue=lanes&status=latest', OPERATOR)
    ).json()) as Listed
    expect(queues.map(({ name }) => name)).to.deep.equal(['lanes'])
    return queues[0] as Listed['queues'][number]
  }

  it('when the password is missing or wrong, every path is answered with 401', async () => {
    const wrong = [
      {},
      basic(''),
      basic('operator:'),
      basic('operator:another secret'),
      { authorization: PASSWORD },
    ]
    for (const path of PAGES)
      for (const headers of [...wrong, { authorization: `Bearer ${PASSWORD}` }]) {
        const response = await request(path, headers as Record<string, string>)
        expect(response.status, path).to.equal(401)
        expect(response.headers.get('www-authenticate')).to.match(/^Basic /)
        expect(await response.text()).not.to.contain('lanes')
      }
  })

  it('when the password is right, the page lists the jobs of the lanes', async () => {
    const page = await request('/', OPERATOR)
    expect(page.status).to.equal(200)
    expect(page.headers.get('content-security-policy')).to.contain("default-src 'self'")
    expect(await page.text()).to.contain('Relayer lanes')
    expect((await request('/static/favicon-32x32.png', OPERATOR)).status).to.equal(200)
    const { counts, jobs, readOnlyMode } = await listed()
    expect(readOnlyMode).to.equal(true)
    expect([counts.active, counts.completed]).to.deep.equal([1, 1])
    expect(jobs.map(({ name }) => name)).to.have.members([LANE, 'relay'])
  })

  it('when a request would change something, it is refused and nothing changes', async () => {
    const earlier = await listed()
    const ids = earlier.jobs.map(({ id }) => id)
    const queue = '/api/queues/lanes'
    const changes = [
      ['PUT', `${queue}/pause`],
      ['PUT', `${queue}/resume`],
      ['PUT', `${queue}/empty`],
      ['PUT', `${queue}/obliterate`],
      ['POST', `${queue}/add`],
      ['PUT', `${queue}/retry/completed`],
      ['PUT', `${queue}/clean/completed`],
      ['PUT', '/api/queues/pause'],
      ...ids.flatMap((id) => [
        ['PUT', `${queue}/${id}/retry/completed`],
        ['PUT', `${queue}/${id}/clean`],
        ['PATCH', `${queue}/${id}/update-data`],
      ]),
    ] as const
    for (const [method, path] of changes) {
      expect((await request(path as string, {}, method)).status, path).to.equal(401)
      expect((await request(path as string, OPERATOR, method)).status, path).to.equal(405)
    }
    const later = await listed()
    expect(later.isPaused).to.equal(false)
    expect(later.counts).to.deep.equal(earlier.counts)
    expect(later.jobs.map(({ id }) => id)).to.deep.equal(ids)
  })

  it('when the password is right, the other paths of the listener need none', async () => {
    for (const path of ['/health/live', '/health/ready', '/metrics'])
      expect((await fetch(`http://127.0.0.1:${health.port}${path}`)).status).to.equal(200)
    expect((await fetch(`http://127.0.0.1:${health.port}/queuesx`)).status).to.equal(404)
  })
}

describe('keeper/adapters/queue-page', function () {
  this.timeout(60_000)
  describe('of a queue in Postgres', () =>
    laws(async () => ({ databaseUrl: await freshDatabase(), redisUrl: null })))

  describe('in the configuration', () => {
    const dir = mkdtempSync(join(tmpdir(), 'clearbatch-page-'))
    const file = join(dir, 'password')
    after(() => rmSync(dir, { recursive: true }))
    writeFileSync(
      join(dir, 'keys.json'),
      JSON.stringify({ worker: 'a'.repeat(64), publisher: 'b'.repeat(64) }),
    )
    const passwordOf = (env: Record<string, string>) =>
      readConfig({
        DATABASE_URL: 'postgres://localhost/x',
        RPC_URL: 'http://localhost',
        CHAIN_ID: '6343',
        ADDRESS_USDM: `0x${'1'.repeat(40)}`,
        ADDRESS_MARGIN_BANK: `0x${'2'.repeat(40)}`,
        RELAYER_KEYS: '{}',
        ENGINE_URL: '/run/engine',
        ENGINE_KEYS_FILE: join(dir, 'keys.json'),
        ...env,
      }).queuePagePassword

    it('when a password is set, in a variable or a file, there is a page, and otherwise none', () => {
      writeFileSync(file, `${PASSWORD}\n`)
      expect(passwordOf({})).to.equal(null)
      expect(passwordOf({ QUEUE_PAGE_PASSWORD: PASSWORD })).to.equal(PASSWORD)
      expect(passwordOf({ QUEUE_PAGE_PASSWORD_FILE: file })).to.equal(PASSWORD)
    })

    it('when the password is too short, empty or missing in its file, the error names the variable and not the password', () => {
      const short = 'fifteen letters'
      const errorOf = (env: Record<string, string>): string => {
        try {
          passwordOf(env)
        } catch (error) {
          expect(error).to.be.instanceOf(ConfigError)
          return (error as Error).message
        }
        return ''
      }
      expect(errorOf({ QUEUE_PAGE_PASSWORD: short }))
        .to.match(/^QUEUE_PAGE_PASSWORD has/)
        .and.not.contain(short)
      for (const text of ['', short]) {
        writeFileSync(file, text)
        const error = errorOf({ QUEUE_PAGE_PASSWORD_FILE: file })
        expect(error)
          .to.match(/^QUEUE_PAGE_PASSWORD_FILE has/)
          .and.not.contain(short)
      }
      expect(errorOf({ QUEUE_PAGE_PASSWORD_FILE: join(dir, 'none') })).to.contain('cannot be read: ENOENT')
    })
  })

  it('when the queue is not open, it answers 503 after the password', async () => {
    const page = await createQueuePage({ password: PASSWORD, queue: () => null })
    const health = await serveHealth({
      host: '127.0.0.1',
      port: 0,
      registry: new Registry(),
      logger: SILENT_LOGGER,
      readiness: async () => ({ code: 200, status: 'ok', checks: {} }),
      page,
    })
    const url = `http://127.0.0.1:${health.port}/queues/api/queues`
    expect((await fetch(url)).status).to.equal(401)
    expect((await fetch(url, { headers: OPERATOR })).status).to.equal(503)
    await health.close()
  })

  describe(`of a queue ${ON_REDIS}`, () => {
    const url = redisUrl(DATABASE)
    before(async function () {
      if (url === null) return this.skip()
      ;(await emptyRedis(url)).disconnect()
    })
    if (url !== null) laws(async () => ({ databaseUrl: '', redisUrl: url }))
  })
})
