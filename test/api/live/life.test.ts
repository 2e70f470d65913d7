import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { readRows } from '../../../db/journal.ts'
import { ACCOUNTS_SHARD } from '../../../domain/journal/journal-row.ts'
import type { Millis } from '../../../domain/units.ts'
import { LiveClient, type LiveOptions } from '../../support/live-client.ts'
import { expectRefusedOutcome } from '../../support/refused-outcome.ts'
import { lockShard } from '../../support/rows/journal.ts'
import { ServedEngine } from '../../support/served-engine.ts'
import { startApiProcess } from '../support/api-process.ts'
import {
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'
import { until } from '../support/wait.ts'

const HEARTBEAT_MS = 200
const GRACE_S = 5
const ENV = { LIVE_HEARTBEAT_MS: String(HEARTBEAT_MS), LIVE_IDLE_MS: '600', LIVE_RECONNECT_MS: '3000' }

const listen = async ({ api }: ExchangeFixture): Promise<string> => {
  await api.app.listen({ port: 0, host: '127.0.0.1' })
  return `http://127.0.0.1:${(api.app.server.address() as AddressInfo).port}`
}

describe('the life of a connection', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let alice: User
  let base: string
  let accounts = 0
  const open: LiveClient[] = []

  before(async () => {
    exchange = await startExchange(ENV)
    await exchange.project()
    base = await listen(exchange)
  })
  after(() => exchange.stop())
  // An account of its own for each test: the end of a connection is stored a moment later.
  beforeEach(async () => {
    alice = await createUser(exchange.db, `alice ${++accounts}`)
  })
  afterEach(() => Promise.all(open.splice(0).map((client) => client.close())))

  const connect = async (options: LiveOptions = {}, to = base): Promise<LiveClient> => {
    const client = await LiveClient.open(to, options)
    open.push(client)
    return client
  }
  const asAlice = (more: LiveOptions = {}): LiveOptions => ({
    ...more,
    headers: { authorization: `Key ${alice.apiKey}` },
  })
  const guarded = async (more: LiveOptions = {}, to = base): Promise<LiveClient> => {
    const client = await connect(asAlice(more), to)
    const { data } = await client.call('cancel_on_disconnect', { grace_seconds: GRACE_S })
    expect(data).to.deep.equal({ armed: true, grace_seconds: GRACE_S })
    return client
  }
  const switches = () =>
    exchange.db.selectFrom('connection_switches').selectAll().where('user_id', '=', alice.userId).execute()
  /** When the engine fires the switches of the account's connections. */
  const deadlines = async (): Promise<number[]> => {
    const own = new Set((await switches()).map(({ connection_id }) => connection_id))
    return exchange.engine.deadlines
      .due(Number.MAX_SAFE_INTEGER as Millis)
      .flatMap(({ connectionId, fireAt }) => (own.has(connectionId) ? [fireAt] : []))
  }
  const fireAt = async (): Promise<number> => (await deadlines())[0] ?? 0
  /** Whether the orders of the account are cancelled if the engine fires switches at this time. */
  const firesAt = async (now: number): Promise<boolean> => {
    await exchange.engine.fireSwitches(now as Millis)
    const rows = await readRows(exchange.db, ACCOUNTS_SHARD, 0, 1_000)
    return rows.some(
      ({ row }) => row.kind === 'switches_fired' && row.fired.some(({ user_id }) => user_id === alice.userId),
    )
  }

  it('when a connection is open, it gets heartbeats', async () => {
    const client = await guarded()
    await until(async () => client.messages.filter(({ type }) => type === 'heartbeat').length >= 3)
    expect(client.messages.find(({ type }) => type === 'heartbeat').data).to.deep.equal({ topics: {} })
  })

  it('when a client has no subscription and sends nothing, its connection is closed', async () => {
    const client = await connect()
    expect(await client.closed).to.deep.equal({
      code: 4410,
      reason: 'no subscription and no message for too long',
    })
  })

  it('when a client does not answer pings, its connection is cut off', async () => {
    const client = await guarded({ autoPong: false })
    const started = Date.now()
    expect((await client.closed).code).to.equal(1006)
    expect(Date.now() - started).to.be.at.least(3 * HEARTBEAT_MS)
  })

  it('when connections end, the metrics count them by reason', async () => {
    const client = await connect()
    await client.close()
    const metrics = await exchange.metrics()
    expect(metrics).to.match(/api_live_closed_total\{reason="idle"\} [1-9]/)
    expect(metrics).to.match(/api_live_closed_total\{reason="silent"\} [1-9]/)
    expect(metrics).to.match(/api_live_connections 0\n/)
    expect(metrics).to.match(/api_live_received_total\{op="cancel_on_disconnect"\} [1-9]/)
  })

  describe('cancel on disconnect', () => {
    it('when the connection lives, its switch is renewed and never fires', async () => {
      await guarded()
      const armed = await fireAt()
      await until(async () => (await fireAt()) > armed)
      expect(await firesAt(Date.now())).to.equal(false)
    })

    it('when the connection is closed, the switch fires a grace later', async () => {
      const client = await guarded()
      const armed = await fireAt()
      await sleep(300)
      await client.close()
      await until(async () => (await fireAt()) >= armed + 200)
      const final = await fireAt()
      await sleep(1_000)
      expect(await fireAt(), 'not renewed any more').to.equal(final)
      expect(await firesAt(final - 1)).to.equal(false)
      expect(await firesAt(final)).to.equal(true)
    })

    it('when it is turned off, its switch is gone and stays so', async () => {
      const client = await guarded()
      const { data } = await client.call('cancel_on_disconnect', { grace_seconds: 0 })
      expect(data).to.deep.equal({ armed: false, grace_seconds: 0 })
      expect(await switches()).to.deep.equal([])
      await client.close()
      await sleep(1_000)
      expect(await switches()).to.deep.equal([])
    })

    it('when the grace is out of range, it is rejected by name', async () => {
      const client = await connect(asAlice())
      for (const grace_seconds of [4, 901, -1, 5.5]) {
        const { data } = await client.call('cancel_on_disconnect', { grace_seconds })
        expect(data.details).to.include({
          code: 'INVALID_FIELD',
          field: 'grace_seconds',
        })
        expectRefusedOutcome(data.details)
      }
      expect(await switches()).to.deep.equal([])
    })

    it('when the account arms and disarms its own switch, that of the connection stays', async () => {
      await guarded()
      const path = '/v0/orders/cancel/all-after'
      await exchange.send(alice, 'POST', path, { timeout_seconds: 60 })
      await exchange.send(alice, 'POST', path, { timeout_seconds: 0 })
      expect(await switches()).to.have.length(1)
      expect((await exchange.get(alice, path)).body.armed).to.equal(false)
    })

    it('when the client connects again within the grace, nothing fires', async () => {
      await (await guarded()).close()
      await guarded()
      await until(async () => (await deadlines()).length === 2)
      const due = Math.min(...(await deadlines()))
      await until(async () => (await deadlines()).some((one) => one > due + 500))
      expect(await firesAt(due)).to.equal(false)
    })

    it('when the process is killed, its switch fires at most one grace later', async () => {
      const served = await ServedEngine.start(exchange.db, exchange.engine)
      const { process: child, base: other } = await startApiProcess(exchange.url, { ...ENV, ...served.env })
      const client = await guarded({}, other)
      child.kill('SIGKILL')
      expect((await client.closed).code).to.equal(1006)
      const due = await fireAt()
      expect(due).to.be.within(Date.now() + 1_000, Date.now() + GRACE_S * 1000)
      expect(await firesAt(due)).to.equal(true)
      await served.stop()
    })
  })

  describe('the end of the process', () => {
    it('when it begins, clients are notified, answered and closed with 1012, and reconnect within the grace', async () => {
      const second = await startSecondApi(exchange, ENV)
      const to = await listen(second)
      const client = await guarded({}, to)
      const late = await connect(asAlice(), to)
      // The placement is in flight when the stop begins.
      const { placed, stopped } = await exchange.db.transaction().execute(async (tx) => {
        await lockShard(tx, 'm1')
        const answer = client.call('place', { body: signedBody(alice).body })
        await sleep(300)
        const stopping = second.stop()
        await client.find(({ type }) => type === 'server_shutdown')
        const { data } = await late.call('place', { body: signedBody(alice).body })
        expect(data.details).to.include({ code: 'SHUTTING_DOWN', outcome: 'not_read' })
        const refused = await connect({}, to).catch((error) => error)
        expect({ status: refused.status, code: refused.details?.code }).to.deep.equal({
          ...{ status: 503, code: 'SHUTTING_DOWN' },
        })
        return { placed: answer, stopped: stopping }
      })
      expect((await placed).type).to.equal('result')
      expect(await client.closed).to.deep.equal({ code: 1012, reason: 'the server restarts' })
      const closedAt = Date.now()
      await stopped
      const { data } = await client.find(({ type }) => type === 'server_shutdown')
      expect(data.reconnect_after_ms).to.be.within(0, 2_999)
      const due = closedAt + GRACE_S * 1000 + data.reconnect_after_ms
      expect(await fireAt()).to.be.within(due - 2_000, due + 500)
    })
  })
})
