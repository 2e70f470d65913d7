/**
 * The processor time of every endpoint and feed operation at its maximum; `command-cost.test.ts` measures commands on orders, and
 * `proof-cost.test.ts` proofs. A client that uses a limit to the full takes at most a quarter of one core of the reference, whose figures are
 * in recoveries of a signer (`processor-time.ts`). `npm run bench:costs` prints the table.
 */
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { ALLOWS_ALL, createApiKey } from '../../../api/auth/credentials.ts'
import type { Bucket } from '../../../api/http/buckets.ts'
import type { Op } from '../../../api/live/schema.ts'
import { seizeLease } from '../../../db/leases.ts'
import { RELAY_LANE } from '../../../db/relayers.ts'
import { withMirror } from '../../support/mirror.ts'
import { budgetOf } from '../support/cost-budget.ts'
import { descriptionOf } from '../support/description.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { type Parameter, pathOf } from '../support/largest-page.ts'
import { sendBatch } from '../support/place-batch.ts'
import { ProcessorTime } from '../support/processor-time.ts'
import { openRawFeed, type RawFeed } from '../support/raw-feed.ts'
import {
  append,
  clearedRow,
  confirmedRow,
  settledRow,
  submittedRow,
  type Trade,
} from '../support/trade-rows.ts'

const TRADES = 1_050

/**
 * Where each operation is measured that is no read, or has a test of its own. Other reads are measured by their routes. `bounded`: at most
 * so many per second as its limit allows, of which each takes about the processor time of a read.
 */
const MEASURED: Readonly<Record<string, string>> = {
  'POST /v0/orders': 'command-cost',
  'POST /v0/orders/place/batch': 'command-cost',
  'POST /v0/positions/close': 'command-cost',
  'GET /v0/auctions/{market_id}/{batch_id}/proof': 'proof-cost',
  'POST /v0/orders/replace': 'command-cost',
  'POST /v0/orders/replace/batch': 'command-cost',
  'POST /v0/orders/cancel/by-hash/{order_hash}': 'command-cost',
  'POST /v0/orders/cancel/by-client-id/{client_order_id}': 'command-cost',
  'POST /v0/orders/cancel/all-after': 'command-cost',
  'POST /v0/orders/validate': 'here',
  'POST /v0/orders/estimate': 'here',
  'POST /v0/orders/calculate-quantity': 'here',
  'POST /v0/session-keys/prepare': 'here',
  'POST /v0/orders/cancel/batch': 'command-cost',
  'POST /v0/orders/cancel/all': 'command-cost',
  'POST /v0/me/api-keys': 'here',
  'DELETE /v0/me/api-keys/{name}': 'here',
  'POST /v0/auth/challenge': 'bounded: auth',
  'POST /v0/me/api-key/rotate': 'bounded: auth',
  'POST /v0/faucet': 'bounded: faucet',
  'POST /v0/account/adjust-leverage': 'bounded: adjustments',
  'POST /v0/account/adjust-margin': 'bounded: adjustments',
  'POST /v0/account/invalidate-margin-nonces': 'bounded: relays',
  'POST /v0/session-keys/relay': 'bounded: relays',
}

/** Feed operations whose REST requests are measured, and those that cost only as messages. */
const OPS: Readonly<Record<Op, string>> = {
  subscribe: 'here',
  unsubscribe: 'message',
  ping: 'message',
  auth: 'GET /v0/me',
  place: 'POST /v0/orders',
  place_batch: 'POST /v0/orders/place/batch',
  replace: 'POST /v0/orders/replace',
  replace_batch: 'POST /v0/orders/replace/batch',
  cancel: 'POST /v0/orders/cancel/by-hash/{order_hash}',
  cancel_by_client_id: 'POST /v0/orders/cancel/by-client-id/{client_order_id}',
  cancel_batch: 'POST /v0/orders/cancel/batch',
  cancel_all: 'POST /v0/orders/cancel/all',
  cancel_on_disconnect: 'POST /v0/orders/cancel/all-after',
}

/** Reads that have nothing to answer here: an operation is one look-up, as a miss is, and `history/charges.test.ts` measures files. */
const UNANSWERED: Readonly<Record<string, number>> = { '/v0/session-keys/operations/{operation_id}': 404 }
const FILES = '/v0/history/{kind}/{market_id}/{day}.csv.gz'

describe('the cost of operations at their maximum', function () {
  this.timeout(300_000)
  let exchange: ExchangeFixture
  let alice: User
  let feed: RawFeed | undefined
  let time: ProcessorTime
  let paths: Record<string, Record<string, { operationId: string; parameters?: Parameter[] }>>
  const report: string[] = []

  before(async () => {
    exchange = await startExchange({
      FAUCET_WAIT_MS: '10',
      RELAY_WAIT_MS: '10',
      ADJUSTMENT_WAIT_MS: '10',
      SIGNATURE_EXPLANATIONS: '0',
    })
    alice = await createUser(exchange.db, 'alice', '1000000000')
    await trade(await createUser(exchange.db, 'bob', '1000000000'))
    await exchange.send(alice, 'POST', '/v0/orders', { ...signedBody(alice).body, client_order_id: 'named' })
    await exchange.project()
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    paths = ((await descriptionOf(exchange)) as unknown as { paths: typeof paths }).paths
    const { hash, body } = signedBody(alice)
    const signature = Buffer.from(String(body.signature).slice(2, 130), 'hex')
    time = new ProcessorTime({ digest: Buffer.from(hash.slice(2), 'hex'), signature })
    await time.start()
  })
  after(async () => {
    if (process.env.COSTS !== undefined) console.log(report.sort().join('\n'))
    feed?.close()
    await exchange.stop()
  })

  /** Trades of one fill each in the first market. */
  async function trade(bob: User): Promise<void> {
    const place = async (user: User, count: number, terms: object): Promise<string[]> => {
      const orders = Array.from(
        { length: count },
        () => signedBody(user, { quantity: '0.01', ...terms }).body,
      )
      const { body } = await sendBatch(exchange, user, orders)
      return body.results.map((result: { order: { order_id: string } }) => result.order.order_id)
    }
    for (let batch = 0; batch < TRADES; ) {
      const [buys, sells] = [await place(alice, 50, {}), await place(bob, 50, { side: 'SHORT' })]
      const trades = buys.map(
        (orderId, at): Trade => ({
          batch: ++batch,
          price: 1_000,
          steps: 10,
          buy: { orderId, user: alice, status: 'FILLED' },
          sell: { orderId: sells[at] as string, user: bob, status: 'FILLED' },
        }),
      )
      await append(
        exchange,
        ...trades.flatMap((each) => [
          clearedRow(each),
          submittedRow(each),
          settledRow(each),
          confirmedRow(each),
        ]),
      )
      await exchange.db
        .updateTable('orders')
        .set({ status: 'FILLED', ended_at: Date.now(), openable: 0, reserved: 0n, filled: 10 })
        .where('order_id', 'in', [...buys, ...sells])
        .execute()
      await withMirror(exchange.db).updateTable('accounts').set({ reserved: 0n }).execute()
    }
  }

  async function remaining(bucket: Bucket): Promise<number> {
    const { body } = await exchange.get(alice, '/v0/me/limits')
    return body.limits.find((limit: { bucket: string }) => limit.bucket === bucket).remaining
  }

  const excesses: string[] = []

  function judge(name: string, cost: number, allowed: number, status: unknown): void {
    const line = `${name}: ${cost.toFixed(0)} of ${allowed.toFixed(0)} recoveries (${status})`
    report.push(line)
    if (cost > allowed) excesses.push(line)
  }

  const expectWithin = (): void => void expect(excesses.splice(0)).to.deep.equal([])

  const requestsOf = ({ body }: Answer): number =>
    1 + Math.floor((typeof body === 'string' ? body : JSON.stringify(body)).length / 32_768)

  it('when an operation is described, it is measured', () => {
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    const isMeasuredRead = (operation: string) => operation.startsWith('GET ') && !(operation in MEASURED)
    expect(operations.filter((each) => !isMeasuredRead(each))).to.have.members(Object.keys(MEASURED))
    const named = Object.values(OPS).filter((each) => each !== 'here' && each !== 'message')
    expect(operations).to.include.members(named)
  })

  it('when a read has its largest page, it takes no more than its requests of the limit allow', async () => {
    const { body } = await exchange.get(alice, `/v0/orders/by-user/${alice.userId}?limit=1`)
    const [order] = body.orders
    const facts = {
      ...{ user_id: String(alice.userId), order_id: order.order_id, order_hash: order.order_hash },
      ...{ address: alice.address, market_id: '1', batch_id: '1', client_order_id: 'named' },
      operation_id: `0x${'ab'.repeat(32)}`,
    }
    const statuses: Record<string, number> = {}
    let large = 0
    for (const [template, methods] of Object.entries(paths)) {
      const operation = methods.get
      if (operation === undefined || template.endsWith('/proof') || template === FILES) continue
      const path = pathOf(template, operation.parameters ?? [], facts)
      let answer = await exchange.get(alice, path)
      if (answer.status !== 200) statuses[template] = answer.status
      const cost = await time.of(async () => {
        answer = await exchange.get(alice, path)
      })
      if (requestsOf(answer) > 5) large++
      judge(`GET ${path}`, cost, budgetOf('reads') * requestsOf(answer), answer.status)
    }
    expect(statuses, 'a refusal costs less than what is measured').to.deep.equal(UNANSWERED)
    expect(large, 'pages of many bytes').to.be.above(3)
    expectWithin()
  })

  for (const path of ['/v0/openapi.json', '/v0/asyncapi.json', '/docs', '/docs/js/scalar.js'])
    it(`when ${path} is read, it takes no more than a read may`, async () => {
      const headers = { 'accept-encoding': 'gzip' }
      const request = () => exchange.api.app.inject({ method: 'GET', url: path, headers })
      const { statusCode, rawPayload } = await request()
      const requests = 1 + Math.floor(rawPayload.length / 32_768)
      judge(`GET ${path}`, await time.of(request), budgetOf('reads') * requests, statusCode)
      expectWithin()
    })

  const post = (path: string, body: unknown) => exchange.send(alice, 'POST', path, body)

  it('when a request only computes, it takes no more than the reads that it costs allow', async () => {
    // A key is prepared only while a keeper owns the relayer lane.
    await seizeLease(exchange.db, { name: RELAY_LANE, owner: 'keeper', now: Date.now(), lifeMs: 600_000 })
    const order = signedBody(alice).body
    const market = { market_id: 1, side: 'LONG' }
    const sizing = { ...market, order_type: 'MARKET', leverage: 5 }
    const bodies: readonly (readonly [path: string, reads: number, body: object])[] = [
      ['/v0/orders/validate', 3, order],
      ['/v0/orders/validate', 3, { ...order, leverage: 7 }],
      ['/v0/orders/estimate', 3, { ...sizing, sizing_intent: 'max' }],
      ['/v0/orders/estimate', 3, { ...sizing, sizing_intent: 'notional', size: 1_000 }],
      ['/v0/orders/calculate-quantity', 3, { ...market, usd_amount: 1_000_000 }],
      [
        '/v0/session-keys/prepare',
        1,
        { session_public_address: `0x${'ab'.repeat(20)}`, operation: 'register' },
      ],
    ]
    for (const [path, reads, body] of bodies) {
      let answer = await post(path, body)
      const cost = await time.of(async () => {
        answer = await post(path, body)
      })
      judge(
        `POST ${path} ${JSON.stringify(body).slice(0, 60)}`,
        cost,
        budgetOf('reads') * reads,
        answer.status,
      )
    }
    expectWithin()
  })

  /** The least cost of calls that each need what `prepare` does before them: other work of the machine only adds to it. */
  async function costAfter(
    prepare: () => Promise<unknown>,
    work: () => Promise<unknown>,
    samples = 5,
  ): Promise<number> {
    const costs: number[] = []
    for (let call = 0; call < samples + 2; call++) {
      await prepare()
      costs.push(await time.once(work))
    }
    return Math.min(...costs)
  }

  it('when API keys are created and revoked, it takes no more than their limits allow', async () => {
    for (let n = 1; n < 19; n++)
      await createApiKey(exchange.db, alice.userId, ALLOWS_ALL, Date.now(), `key-${n}`)
    let body: object = {}
    const prepare = async () => {
      await exchange.send(alice, 'DELETE', '/v0/me/api-keys/last')
      const { challenge_id, message } = (await post('/v0/auth/challenge', { action: 'create_api_key' })).body
      body = { challenge_id, signature: await alice.wallet.signMessage(message), name: 'last' }
    }
    let answer: Answer | undefined
    const create = async () => {
      answer = await post('/v0/me/api-keys', body)
    }
    judge('api-keys, create', await costAfter(prepare, create, 3), budgetOf('auth'), answer?.status)
    expect(answer?.status).to.equal(200)
    const store = () => createApiKey(exchange.db, alice.userId, ALLOWS_ALL, Date.now(), 'last')
    const revoke = async () => {
      answer = await exchange.send(alice, 'DELETE', '/v0/me/api-keys/last')
    }
    judge('api-keys, revoke', await costAfter(store, revoke, 15), budgetOf('cancels'), answer?.status)
    expect(answer?.status).to.equal(200)
    expectWithin()
  })

  const topics = [
    ...['book', 'trades', 'stats', 'auction', 'candles.1m'].map((kind) => `market.1.${kind}`),
    'user',
    'markets',
  ]

  /** More than the subscriptions of this test cost. */
  const READS_OF_SUBSCRIPTIONS = 200

  /** Subscribes to each topic on its own, and waits until the feed has begun each. Returns the positions of the topics. */
  async function subscribe(feed: RawFeed, since?: Record<string, string>): Promise<Record<string, string>> {
    feed.messages.length = 0
    for (const [id, name] of topics.entries())
      feed.send({ op: 'subscribe', id, topics: [name], ...(since && { since: { [name]: since[name] } }) })
    const begun = () => feed.messages.filter(({ type }) => type === 'subscribed')
    while (begun().length < topics.length) {
      const refused = feed.messages.find(({ type }) => type === 'error')
      if (refused !== undefined) throw new Error(`a subscription is refused: ${refused.text}`)
      await sleep(5)
    }
    // The rows after the start come in the same turn, or with the next frames.
    await sleep(300)
    const starts = begun().map(({ text }) => JSON.parse(text))
    return Object.fromEntries(
      starts.map(({ topic, seq, data }) => [topic, `${data.epoch}:${Math.max(0, seq - 900)}`]),
    )
  }

  async function unsubscribe(feed: RawFeed): Promise<void> {
    feed.send({ op: 'unsubscribe', id: 'end', topics })
    // Rows that were encoded for readers that resume are kept for a moment.
    await sleep(1_000)
  }

  interface Measured {
    readonly cost: number
    readonly reads: number
  }

  async function measureSubscription(feed: RawFeed, since?: Record<string, string>): Promise<Measured> {
    for (;;) {
      await unsubscribe(feed)
      const before = await remaining('reads')
      const cost = await time.of(() => subscribe(feed, since), { warm: 0, samples: 1, calls: 1 })
      // The second look at the limits is a read too.
      const reads = before - (await remaining('reads')) - 1
      // Otherwise a window of the limit has ended in between.
      if (reads > 0) return { cost, reads }
    }
  }

  it('when subscriptions start or resume, they take no more than the reads that they cost', async () => {
    // Reads that earlier tests have spent come back with the next window of the limit.
    while ((await remaining('reads')) < READS_OF_SUBSCRIPTIONS) await sleep(1_000)
    const base = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
    feed = await openRawFeed(base, alice.apiKey)
    const positions = await subscribe(feed)
    expect(Object.keys(positions)).to.have.members(topics)
    for (const since of [undefined, positions]) {
      const samples = [
        await measureSubscription(feed, since),
        await measureSubscription(feed, since),
        await measureSubscription(feed, since),
      ]
      // Other programs and the collector of garbage add to a sample, and never take from it.
      const { cost, reads } = samples.toSorted((a, b) => a.cost / a.reads - b.cost / b.reads)[0] as Measured
      const name = `subscribe ${since ? 'with' : 'without'} since`
      judge(name, cost, budgetOf('reads') * reads, `${reads} reads`)
    }
    expectWithin()
  })
})
