import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import Fastify from 'fastify'
import { after, afterEach, before, describe, it } from 'mocha'
import { readConfig } from '../../../api/config.ts'
import type { App } from '../../../api/http/types.ts'
import { type Connections, createConnections } from '../../../api/live/connections.ts'
import {
  type Frame,
  type Hub,
  NOTHING,
  type Reader,
  type StartCost,
  type Subscription,
} from '../../../api/live/ports.ts'
import { acceptWebSockets, liveRoute } from '../../../api/live/route.ts'
import { type Topic, topicName } from '../../../api/live/topics.ts'
import { createMetrics, type Metrics } from '../../../api/metrics.ts'
import { systemClock } from '../../../service/clock.ts'
import { createLogger } from '../../../service/logger.ts'
import { LiveClient, type LiveMessage } from '../../support/live-client.ts'
import { apiEnv } from '../support/exchange-fixture.ts'
import { until } from '../support/wait.ts'

const BOOK = 'market.1.book'
const TRADES = 'market.1.trades'
const FILLER = 'x'.repeat(64 * 1024)

/** Topics that count. A snapshot and an update have the count; an update has a filler, too. */
class CountingHub implements Hub {
  readonly counts = new Map<string, number>()
  readonly #readers = new Map<string, Set<Reader>>()
  /** What subscriptions wait for before they begin. */
  gate: Promise<unknown> = Promise.resolve()

  get readers(): number {
    return [...this.#readers.values()].reduce((sum, { size }) => sum + size, 0)
  }

  frame(topic: string, type: string, more: object): Frame {
    const seq = this.counts.get(topic) ?? 0
    const prevSeq = type === 'update' ? seq - 1 : 0
    const message = { type, topic, seq, prev_seq: prevSeq, ts: new Date().toISOString(), ...more }
    return { topic, seq, prevSeq, text: Buffer.from(JSON.stringify(message)), isConflatable: topic === BOOK }
  }

  async subscribe(reader: Reader, topic: Topic, { id }: Subscription): Promise<StartCost> {
    const name = topicName(topic)
    await this.gate
    const started = { ...this.frame(name, 'subscribed', { id, data: {} }), isConflatable: false }
    reader.send([started, this.frame(name, 'snapshot', { data: {} })])
    this.#readers.set(name, (this.#readers.get(name) ?? new Set()).add(reader))
    return NOTHING
  }

  unsubscribe(reader: Reader, topic: string): void {
    this.#readers.get(topic)?.delete(reader)
  }

  /** Larger than what may be unread. */
  refresh(reader: Reader, topic: string): void {
    reader.send([this.frame(topic, 'snapshot', { data: { filler: FILLER.repeat(20) } })])
  }

  heads(_reader: Reader, topics: Iterable<string>): Record<string, number> {
    return Object.fromEntries([...topics].map((topic) => [topic, this.counts.get(topic) ?? 0]))
  }

  publish(topics: readonly string[]): void {
    for (const topic of topics) this.counts.set(topic, (this.counts.get(topic) ?? 0) + 1)
    const frames = topics.map((topic) =>
      this.frame(topic, 'update', { batch_id: 1, data: { filler: FILLER } }),
    )
    for (const reader of new Set(topics.flatMap((topic) => [...(this.#readers.get(topic) ?? [])])))
      reader.send(frames.filter(({ topic }) => this.#readers.get(topic)?.has(reader)))
  }
}

describe('a connection of the live feed and its hub', function () {
  this.timeout(60_000)
  const config = readConfig(apiEnv('postgres://unused/unused', { LIVE_HEARTBEAT_MS: '200' }))
  const hub = new CountingHub()
  const clients: LiveClient[] = []
  let metrics: Metrics
  let app: App
  let connections: Connections
  let base: string

  before(async () => {
    metrics = createMetrics()
    const unused = null as never
    connections = createConnections(
      {
        ...{ hub, clock: systemClock, metrics: metrics.live, logger: createLogger('test', 'silent') },
        ...{ limits: { ...config.live, silenceMs: 60_000 }, random: () => 0.5 },
        arrivals: { now: () => 0, run: (_request, work) => work() },
        spans: null,
        notifications: { on() {}, onLost() {}, isListening: () => true, announce() {} },
        ...{ db: unused, commands: unused, authenticate: unused, switches: unused },
      },
      config.live,
    )
    app = Fastify() as never
    app.decorateRequest('caller', null)
    await acceptWebSockets(app)
    liveRoute(app, {
      config,
      connections,
      access: { spend: async () => {}, charge: () => {} },
      release: () => {},
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  })
  after(async () => {
    await connections.stop()
    await app.close()
  })
  afterEach(() => {
    for (const client of clients.splice(0)) client.socket.terminate()
  })

  const follow = async (...topics: string[]): Promise<LiveClient> => {
    const client = await LiveClient.open(base)
    clients.push(client)
    client.send('subscribe', { topics })
    for (const topic of topics) await client.find((one) => one.type === 'snapshot' && one.topic === topic)
    return client
  }
  const metric = async (name: string): Promise<number> => {
    const line = (await metrics.registry.metrics()).split('\n').find((one) => one.startsWith(name))
    return Number(line?.split(' ').at(-1) ?? 0)
  }
  const ofTopic = ({ messages }: LiveClient, name: string): LiveMessage[] =>
    messages.filter(({ topic, type }) => topic === name && type !== 'subscribed')
  /** Each message continues the one before, or is a snapshot. */
  const expectNoGap = (messages: readonly LiveMessage[]): void => {
    messages.forEach(({ prev_seq }, at) => {
      if (at > 0) expect([0, messages[at - 1].seq], `message ${at}`).to.include(prev_seq)
    })
  }

  it('when a client stops reading, the book is left out and replaced later, while others get everything', async () => {
    const [slow, fast] = [await follow(BOOK, TRADES), await follow(BOOK, TRADES)]
    slow.socket.pause()
    const before = await metric('api_live_conflations_total')
    for (let count = 0; count < 400; count++) {
      hub.publish([BOOK])
      await sleep(1)
    }
    expect(await metric('api_live_conflations_total')).to.be.greaterThan(before)
    slow.socket.resume()
    const head = hub.counts.get(BOOK)
    for (const client of [slow, fast]) await client.find(({ topic, seq }) => topic === BOOK && seq === head)
    hub.publish([BOOK, TRADES])
    for (const client of [slow, fast]) {
      await client.find(({ topic, seq }) => topic === TRADES && seq === hub.counts.get(TRADES))
      expectNoGap(ofTopic(client, BOOK))
      expect(ofTopic(client, BOOK).at(-1).seq).to.equal(hub.counts.get(BOOK))
    }
    expect(ofTopic(slow, BOOK).length).to.be.lessThan(ofTopic(fast, BOOK).length)
  })

  it('when too many bytes of a topic that is never left out are unread, its connection is closed with the reason', async () => {
    const slow = await follow(TRADES)
    slow.socket.pause()
    const closed = 'api_live_closed_total{reason="slow"}'
    for (let count = 0; count < 2_000 && (await metric(closed)) === 0; count++) {
      hub.publish([TRADES])
      if (count % 20 === 0) await sleep(1)
    }
    expect(await metric(closed)).to.equal(1)
    slow.socket.resume()
    expect(await slow.closed).to.deep.equal({
      code: 4408,
      reason: 'slow consumer: too many bytes are unread',
    })
    expectNoGap(ofTopic(slow, TRADES))
  })

  it('when a client leaves before its subscription begins, the subscription ends', async () => {
    await until(async () => hub.readers === 0)
    let begin = (): void => {}
    hub.gate = new Promise<void>((resolve) => {
      begin = resolve
    })
    const client = await LiveClient.open(base)
    client.send('subscribe', { topics: [BOOK] })
    await client.call('ping')
    await client.close()
    await until(async () => connections.size === 0)
    begin()
    hub.gate = Promise.resolve()
    await sleep(50)
    expect(hub.readers).to.equal(0)
  })

  it('when one change concerns several topics, their messages arrive one after the other', async () => {
    const client = await follow(BOOK, TRADES)
    const before = client.messages.length
    for (let count = 0; count < 20; count++) hub.publish([BOOK, TRADES])
    const isUpdate = ({ type }: LiveMessage) => type === 'update'
    await until(async () => client.messages.slice(before).filter(isUpdate).length === 40)
    const names = client.messages
      .slice(before)
      .filter(isUpdate)
      .map(({ topic }) => topic)
    expect(names).to.deep.equal(Array.from({ length: 20 }, () => [BOOK, TRADES]).flat())
  })
})
