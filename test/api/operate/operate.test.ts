/** The operator's view on real metrics of processes: registries of the engine and of the keeper behind internal listeners. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import type { Registry } from 'prom-client'
import { readOperate } from '../../../api/operate/config.ts'
import { listedTerms } from '../../../domain/market/changes.ts'
import { listedParameters } from '../../../domain/market/parameters.ts'
import { toStoredTerms } from '../../../domain/market/stored-terms.ts'
import type { Millis } from '../../../domain/units.ts'
import { createMetrics as createIndexerMetrics } from '../../../indexer/metrics.ts'
import { createMetrics as createEngineMetrics } from '../../../keeper/engine/metrics.ts'
import { createMetrics as createKeeperMetrics } from '../../../keeper/metrics.ts'
import { ConfigError } from '../../../service/environment.ts'
import { serveHealth } from '../../../service/health.ts'
import type { HttpListener } from '../../../service/http-listener.ts'
import { createMetrics as createSignerMetrics } from '../../../signer/metrics.ts'
import { SILENT_LOGGER } from '../../keeper/support/market-fixture.ts'
import { binary, e18, future, perpetual } from '../../support/markets.ts'
import {
  type Answer,
  codeOf,
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'

const PASSWORD = 'a long secret: with a colon'
const basic = (credentials: string) => ({
  authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
})
const OPERATOR = basic(`operator:${PASSWORD}`)
const PATHS = ['engine', 'markets', 'relayers', 'queues', 'oracle', 'processes'].map(
  (name) => `/operate/${name}`,
)
const MARKET = perpetual.marketId
const RELAYERS = [`0x${'a1'.repeat(20)}`, `0x${'a2'.repeat(20)}`] as const
/** Nothing listens on the first port of the reserved ones. */
const GONE = 'http://127.0.0.1:1'
const DIGEST = 'abcdef0123456789abcdef0123456789'
/** In Unix seconds: an hour from now. */
const PAUSE_ENDS_AT = Math.floor(Date.now() / 1000) + 3_600
/** Behind all groups of the fixture. */
const HEAD = 1_000_000
const OTHER_DIGEST = 'ffffff0123456789abcdef0123456789'

const listen = (registry: Registry): Promise<HttpListener> =>
  serveHealth({
    host: '127.0.0.1',
    port: 0,
    registry,
    logger: SILENT_LOGGER,
    readiness: async () => ({ code: 200, status: 'ok', checks: {} }),
  })

/** A member of the engine; `reads` counts scrapes. */
function memberOf(isOwner: boolean, digest: string) {
  const metrics = createEngineMetrics()
  let reads = 0
  metrics.observe({
    waiting: (of) => (of === 'placement' ? 3 : 0),
    isOwner: () => isOwner,
    stored: () => ({ head: HEAD, digest }),
    lagMs: () => {
      reads += 1
      return isOwner ? 0 : 40
    },
  })
  metrics.turnStarted(MARKET, isOwner ? 25 : 9_000)
  return { registry: metrics.registry, reads: () => reads }
}

function keeperOf(): Registry {
  const metrics = createKeeperMetrics()
  metrics.balance(`m${MARKET}`, e18('0.25'), (Date.now() - 2_000) as Millis)
  metrics.inFlight(`m${MARKET}`, 2)
  metrics.queued(`m${MARKET}`, 5)
  metrics.freezePending(MARKET, true)
  metrics.signerFault('two', 'UNREACHABLE')
  metrics.observeJobs(async () => new Map(Object.entries({ waiting: 1, active: 4, failed: 7 })))
  return metrics.registry
}

/** The newest group of the journal, two keys of a lane, an open lease, and three actions of which one is mined. */
async function seed({ db }: ExchangeFixture): Promise<void> {
  await sql`
    insert into engine_groups (number, token, version, rows, before, digest) values (${HEAD}, 1, 1, '[]', '', ${DIGEST})
  `.execute(db)
  await sql`update engine_ownership set token = 7`.execute(db)
  for (const [at, address] of RELAYERS.entries())
    await db
      .insertInto('relayers')
      .values({ address, chain_id: 6343, lane: `m${MARKET}`, next_nonce: 10 + at, registered_at: 1_000 + at })
      .execute()
  await db
    .insertInto('leases')
    .values({ name: `settle:m${MARKET}`, owner: 'keeper-1', token: 3, expires_at: Date.now() + 600_000 })
    .execute()
  for (const [queueNo, status] of (['MINED', 'SUBMITTED', 'QUEUED'] as const).entries())
    await sql`
      insert into actions (market_id, queue_no, kind, as_of, status, created_at, payload)
      values (${MARKET}, ${queueNo + 1}, 'update_funding', ${Date.now() - 60_000 + queueNo}, ${status}, 0, '{}')
    `.execute(db)
  const halted = { mode: 'halted', activeFrom: ((PAUSE_ENDS_AT + 1) * 1000) as Millis } as const
  const terms = listedTerms(listedParameters(future, null))
  const announced = { ...terms, pending: { ...terms.pending, restriction: halted } }
  await db
    .updateTable('markets')
    .set({ terms: JSON.stringify(toStoredTerms(announced)) })
    .where('market_id', '=', future.marketId)
    .execute()
  await db
    .updateTable('markets')
    .set({ mode: 'cancel_only' })
    .where('market_id', '=', binary.marketId)
    .execute()
  await db.updateTable('chain_progress').set({ bank_pause_ends_at: PAUSE_ENDS_AT }).execute()
  const readings = [
    {
      source: 'one',
      reading: { price: e18('100').toString(), observedAt: Date.now() - 3_000 },
      dropped: null,
    },
    { source: 'two', reading: null, dropped: 'NO_READING', detail: 'HTTP_500' },
  ]
  await db
    .updateTable('oracle_reports')
    .set({ readings: JSON.stringify(readings), status: 'halted', reason: 'SOURCES_DISAGREE' })
    .where('market_id', '=', MARKET)
    .execute()
}

describe('api/operate', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let user: User
  const listeners: HttpListener[] = []
  const owner = memberOf(true, DIGEST)
  const read = (path: string, headers: Record<string, string> = OPERATOR): Promise<Answer> =>
    exchange.send(null, 'GET', path, undefined, headers)

  before(async () => {
    const indexer = createIndexerMetrics()
    indexer.metrics.mismatch('effect')
    const registries = [
      owner.registry,
      memberOf(false, DIGEST).registry,
      memberOf(false, OTHER_DIGEST).registry,
      keeperOf(),
      indexer.registry,
      createSignerMetrics().registry,
    ]
    for (const registry of registries) listeners.push(await listen(registry))
    const targets = [...listeners.map(({ port }) => `http://127.0.0.1:${port}`), GONE]
    exchange = await startExchange({ QUEUE_PAGE_PASSWORD: PASSWORD, OPERATE_TARGETS: targets.join(',') })
    user = await createUser(exchange.db, 'operator')
    await seed(exchange)
  })
  after(async () => {
    await exchange.stop()
    for (const listener of listeners) await listener.close()
  })

  it('when the password is missing or wrong, every path answers 401 and names what is valid', async () => {
    const headers: Record<string, string>[] = [
      {},
      basic('operator:another long secret'),
      basic(PASSWORD.slice(0, -1)),
      { authorization: `Key ${user.apiKey}` },
      { authorization: `Bearer ${PASSWORD}` },
      { authorization: PASSWORD },
    ]
    for (const path of PATHS)
      for (const each of headers) {
        const answer = await read(path, each)
        expect(codeOf(answer), `${path} ${Object.values(each)}`).to.deep.equal([401, 'OPERATOR_PASSWORD'])
        expect(answer.body.details.expected).to.contain('QUEUE_PAGE_PASSWORD')
      }
  })

  it('when a query has a field, it is refused by name', async () => {
    expect(codeOf(await read('/operate/engine?all=1'))).to.deep.equal([400, 'UNKNOWN_FIELD'])
  })

  it('when members of the engine differ, the view names owner, lag and the one whose digest is not that of the journal', async () => {
    const { status, body, headers } = await read('/operate/engine')
    expect([status, headers['cache-control']]).to.deep.equal([200, 'no-store'])
    expect(body).to.deep.include({ owners: 1, digest_mismatches: 1 })
    expect(body.journal).to.deep.include({ token: 7, head: HEAD, caught_up: true })
    expect(body.journal.tables_behind).to.be.within(1, HEAD)
    const common = { head: HEAD, target: undefined }
    expect(body.members.map((member: object) => ({ ...member, target: undefined }))).to.deep.equal([
      {
        ...common,
        is_owner: true,
        digest: DIGEST.slice(0, 12),
        digest_agrees: true,
        follower_lag_seconds: 0,
      },
      {
        ...common,
        is_owner: false,
        digest: DIGEST.slice(0, 12),
        digest_agrees: true,
        follower_lag_seconds: 0.04,
      },
      {
        ...common,
        is_owner: false,
        digest: OTHER_DIGEST.slice(0, 12),
        digest_agrees: false,
        follower_lag_seconds: 0.04,
      },
    ])
  })

  it('when markets have open actions and a freeze request, the view shows lateness by the owner, settlement lag and the request', async () => {
    const { body } = await read('/operate/markets')
    const market = body.markets.find(({ market_id: id }: { market_id: number }) => id === MARKET)
    expect(market).to.deep.include({
      symbol: perpetual.symbol,
      mode: 'open',
      restriction: 'open',
      freeze_pending: true,
      lateness_seconds: 0.025,
      last_batch_id: 0,
      last_batch_age_ms: null,
    })
    expect(market.settlement).to.deep.include({ queued: 1, signed: 0, submitted: 1, is_complete: true })
    expect(market.settlement.lag_ms).to.be.at.least(59_000)
    expect(market.turn_age_ms).to.be.at.least(0)
    const quiet = body.markets.find(({ market_id: id }: { market_id: number }) => id !== MARKET)
    expect(quiet).to.deep.include({ freeze_pending: null, lateness_seconds: null, turn_age_ms: null })
    expect(quiet.settlement).to.deep.include({ queued: 0, lag_ms: null })
  })

  it('when a market is restricted, a mode is announced and the bank is paused, the view shows each of them', async () => {
    const { body } = await read('/operate/markets')
    expect(body.bank_pause_ends_at).to.equal(new Date(PAUSE_ENDS_AT * 1000).toISOString())
    const modes = body.markets.map((market: Record<string, unknown>) => [
      market.market_id,
      market.mode,
      market.restriction,
      market.announced_mode,
    ])
    const at = new Date((PAUSE_ENDS_AT + 1) * 1000).toISOString()
    expect(modes).to.have.deep.members([
      [MARKET, 'open', 'open', null],
      [future.marketId, 'open', 'open', { mode: 'halted', active_from: at }],
      [binary.marketId, 'cancel_only', 'cancel_only', null],
    ])
  })

  it('when a lane has had two keys, the newest one has balance and transactions, and both have their nonces', async () => {
    const { body } = await read('/operate/relayers')
    const [present, former] = body.relayers
    expect(present).to.deep.include({
      lane: `m${MARKET}`,
      address: RELAYERS[1],
      is_present: true,
      next_nonce: 11,
      balance: 0.25,
      transactions_in_flight: 2,
      actions_queued: 5,
    })
    expect(present.balance_age_ms).to.be.at.least(2_000)
    expect(former).to.deep.include({ address: RELAYERS[0], is_present: false, next_nonce: 10, balance: null })
    expect(body.leases).to.deep.equal([
      { name: `settle:m${MARKET}`, owner: 'keeper-1', token: 3, is_held: true },
    ])
  })

  it('when queues are read, lane jobs have their states and commands of the owner their classes', async () => {
    const { body } = await read('/operate/queues')
    expect(body.lane_jobs).to.deep.equal({ waiting: 1, active: 4, delayed: 0, failed: 7, completed: 0 })
    expect(body.engine_commands).to.deep.equal({ auction: 0, cancel: 0, chain: 0, placement: 3 })
  })

  it('when a feed is halted, the view shows its reason, the age of its report and each source', async () => {
    const { body } = await read('/operate/oracle')
    const feed = body.feeds.find(({ market_id: id }: { market_id: number }) => id === MARKET)
    expect(feed).to.deep.include({ feed: 'index', status: 'halted', reason: 'SOURCES_DISAGREE' })
    expect(feed.age_ms).to.be.at.least(0)
    expect(feed.sources.map(({ source, detail }: Record<string, unknown>) => [source, detail])).to.deep.equal(
      [
        ['one', null],
        ['two', 'HTTP_500'],
      ],
    )
    expect(body.signer_faults).to.deep.equal([{ signer: 'two', fault: 'UNREACHABLE', count: 1 }])
  })

  it('when a process does not answer, it has its fault, and all other processes are shown', async () => {
    const { body } = await read('/operate/processes')
    expect(body.processes.map(({ kind, fault }: Record<string, unknown>) => [kind, fault])).to.deep.equal([
      ...['engine', 'engine', 'engine', 'keeper', 'indexer', 'signer'].map((kind) => [kind, null]),
      [null, 'unreachable'],
    ])
    expect(body.chain).to.deep.include({ block: 0, settlement_mismatches: { effect: 1 } })
  })

  it('when answers are read, none contains the password, a database URL or a key', async () => {
    const login = new URL(exchange.url)
    for (const path of PATHS) {
      const { status, body } = await read(path)
      expect(status, path).to.equal(200)
      const text = JSON.stringify(body)
      for (const secret of [PASSWORD, 'postgres:', login.password, 'signatures', 'ENGINE_KEYS'])
        if (secret !== '') expect(text, path).not.to.contain(secret)
    }
  })

  it('when many pages read at once, the processes are read once', async () => {
    await read('/operate/processes')
    const before = owner.reads()
    const began = performance.now()
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, at) => read(PATHS[at % PATHS.length] as string)),
    )
    expect(answers.every(({ status }) => status === 200)).to.equal(true)
    // One more for each second that has passed.
    const most = 2 + Math.floor((performance.now() - began) / 1_000)
    expect(owner.reads() - before).to.be.at.most(most)
  })

  it('when no password is set, the paths do not exist', async () => {
    const bare = await startExchange()
    try {
      for (const path of PATHS)
        expect(codeOf(await bare.send(null, 'GET', path, undefined, OPERATOR))).to.deep.equal([
          404,
          'ROUTE_NOT_FOUND',
        ])
    } finally {
      await bare.stop()
    }
  })

  it('when an address tries too many passwords, it must wait, also with the right one', async () => {
    const guarded = await startExchange({
      QUEUE_PAGE_PASSWORD: PASSWORD,
      RATE_LIMIT_FAILURES: '0',
      RATE_LIMIT_WINDOW_SECONDS: '600',
    })
    try {
      const attempt = async (headers: Record<string, string>) =>
        codeOf(await guarded.send(null, 'GET', '/operate/queues', undefined, headers))
      expect(await attempt(OPERATOR)).to.deep.equal([200, undefined])
      expect(await attempt(basic('x:wrong'))).to.deep.equal([401, 'OPERATOR_PASSWORD'])
      expect(await attempt(basic('x:wrong'))).to.deep.equal([429, 'RATE_LIMITED'])
      expect(await attempt(OPERATOR)).to.deep.equal([429, 'RATE_LIMITED'])
    } finally {
      await guarded.stop()
    }
  })
})

describe('api/operate in the configuration', () => {
  const env = { QUEUE_PAGE_PASSWORD: PASSWORD }

  it('when targets are listed, each is kept once; without a password there is no view', () => {
    const listed = { OPERATE_TARGETS: 'http://app1:8081, https://app2:8081/,http://app1:8081' }
    expect(readOperate({ ...env, ...listed }, 'api')?.targets).to.deep.equal([
      'http://app1:8081',
      'https://app2:8081',
    ])
    expect(readOperate(env, 'api')?.targets).to.deep.equal([])
    expect(readOperate(listed, 'api')).to.equal(null)
  })

  for (const [targets, problem] of [
    ['app1:8081', 'contains "app1:8081"'],
    ['ftp://app1', 'contains "ftp://app1"'],
    ['http://app1:8081/metrics', 'contains "http://app1:8081/metrics"'],
    ['http://user:secret-word@app1:8081', 'contains a URL with credentials'],
    [Array.from({ length: 65 }, (_, n) => `http://app${n}`).join(','), 'has 65 URLs'],
  ] as const)
    it(`when targets are invalid, the error says that the variable ${problem}`, () => {
      expect(() => readOperate({ ...env, OPERATE_TARGETS: targets }, 'api'))
        .to.throw(ConfigError, `OPERATE_TARGETS ${problem}`)
        .with.property('message')
        .not.contain('secret-word')
    })
})
