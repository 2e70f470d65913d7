/**
 * The processor time of every endpoint and feed operation at its maximum. A client that uses a limit to the full takes at most a quarter of
 * one core of the reference, whose figures are in recoveries of a signer (`processor-time.ts`). `npm run bench:costs`, on a machine without
 * other work, prints the table and judges commands by their exact budget.
 */
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { ALLOWS_ALL, createApiKey } from '../../../api/auth/credentials.ts'
import { readConfig } from '../../../api/config.ts'
import { type Bucket, costOfCancels } from '../../../api/http/access.ts'
import { perpetual } from '../../support/markets.ts'
import { descriptionOf } from '../support/description.ts'
import {
  type Answer,
  apiEnv,
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'
import { newRequestId, sendBatch } from '../support/place-batch.ts'
import { median, ProcessorTime } from '../support/processor-time.ts'
import { openRawFeed, type RawFeed } from '../support/raw-feed.ts'
import {
  append,
  clearedRow,
  confirmedRow,
  settledRow,
  submittedRow,
  type Trade,
} from '../support/trade-rows.ts'

/** Processor time of a bare recovery on the machine of the reference, microseconds. */
const REFERENCE_US = 50
/** Of one core. */
const SHARE = 0.25
/**
 * A command waits for the database several times. On a busy machine other processes run meanwhile, and it continues with cold caches: the
 * same command then costs up to twice as much.
 */
const COMMAND_SLACK = process.env.COSTS === undefined ? 4 : 1
const PAGE = 1_000
const TRADES = 1_050

const LIMITS = readConfig({
  ...apiEnv('postgres://user@localhost/database'),
  ...Object.fromEntries(
    Object.keys(apiEnv(''))
      .filter((name) => name.startsWith('RATE_LIMIT'))
      .map((name) => [name, '']),
  ),
}).limits

/** Recoveries that one request of the limit may take. */
const budgetOf = (bucket: Bucket): number => (SHARE * 1e6) / LIMITS[bucket] / REFERENCE_US

describe('the cost of operations at their maximum', function () {
  this.timeout(300_000)
  let exchange: ExchangeFixture
  let alice: User
  let feed: RawFeed
  let time: ProcessorTime
  let paths: Record<
    string,
    Record<string, { operationId: string; parameters?: { name: string; in: string }[] }>
  >
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
    await exchange.project()
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    const base = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
    feed = await openRawFeed(base, alice.apiKey)
    paths = ((await descriptionOf(exchange)) as unknown as { paths: typeof paths }).paths
    const { hash, body } = signedBody(alice)
    const signature = Buffer.from(String(body.signature).slice(2, 130), 'hex')
    time = new ProcessorTime({ digest: Buffer.from(hash.slice(2), 'hex'), signature })
    await time.start()
  })
  after(async () => {
    if (process.env.COSTS !== undefined) console.log(report.sort().join('\n'))
    feed.close()
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
      await exchange.db.updateTable('accounts').set({ reserved: 0n }).execute()
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

  const judgeCommand = (name: string, cost: number, allowed: number, status: unknown): void =>
    judge(name, cost, allowed * COMMAND_SLACK, status)

  const expectWithin = (): void => void expect(excesses.splice(0)).to.deep.equal([])

  const requestsOf = ({ body }: Answer): number =>
    1 + Math.floor((typeof body === 'string' ? body : JSON.stringify(body)).length / 32_768)

  /** A path with its parameters, and a page of the maximum. */
  function pathOf(template: string, names: readonly string[], facts: Record<string, string>): string {
    const path = template.replace(/\{(\w+)\}/g, (_, name) => facts[name] ?? '1')
    const values: Record<string, string> = {
      ...{ limit: String(PAGE), market_id: '1', symbol: perpetual.symbol, resolution: '1', interval: '1m' },
      ...{ from: '0', to: '4000000', countback: '1000', batch_id: '1', depth: '1000', levels: '1000' },
      ...(template.includes('udf') ? {} : { from: '', to: '' }),
    }
    const query = names.flatMap((name) =>
      values[name] ? [`${name}=${encodeURIComponent(values[name])}`] : [],
    )
    return query.length === 0 ? path : `${path}?${query.join('&')}`
  }

  it('when a read has its largest page, it takes no more than its requests of the limit allow', async () => {
    const { body } = await exchange.get(alice, `/v0/orders/by-user/${alice.userId}?limit=1`)
    const [order] = body.orders
    const facts = {
      ...{ user_id: String(alice.userId), order_id: order.order_id, order_hash: order.order_hash },
      ...{ address: alice.address, market_id: '1', batch_id: '1', client_order_id: 'none' },
    }
    let large = 0
    for (const [template, methods] of Object.entries(paths)) {
      const operation = methods.get
      if (operation === undefined || template.endsWith('/proof')) continue
      const names = (operation.parameters ?? []).filter((each) => each.in === 'query').map(({ name }) => name)
      const path = pathOf(template, names, facts)
      let answer = await exchange.get(alice, path)
      const cost = await time.of(async () => {
        answer = await exchange.get(alice, path)
      })
      if (requestsOf(answer) > 5) large++
      judge(`GET ${path}`, cost, budgetOf('reads') * requestsOf(answer), answer.status)
    }
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

  const bodies = (count: number) =>
    Array.from({ length: count }, () => signedBody(alice, { quantity: '0.01', price: '96' }).body)
  const post = (path: string, body: unknown) => exchange.send(alice, 'POST', path, body)

  /** Costs of calls that each need what `prepare` does before them, the first two of which are not counted. */
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
    return median(costs.slice(2))
  }

  it('when an order is placed, it takes no more than its limit allows', async () => {
    const prepared = bodies(100)
    const placed: Answer[] = []
    const single = async () => placed.push(await post('/v0/orders', prepared.pop()))
    const cost = await time.of(single, { warm: 30, samples: 7, calls: 10 })
    expect(placed.map(({ status }) => status)).to.deep.equal(Array(placed.length).fill(200))
    judgeCommand('place', cost, budgetOf('orders'), 200)
    expectWithin()
  })

  it('when a batch of the maximum is placed, it takes no more than its limit allows', async () => {
    const batches = Array.from({ length: 7 }, () => bodies(50))
    const batch = async () => sendBatch(exchange, alice, batches.pop())
    judgeCommand(
      'place/batch of 50',
      await time.of(batch, { warm: 2, samples: 5, calls: 1 }),
      budgetOf('batches'),
      200,
    )
    expectWithin()
  })

  it('when signatures are wrong, refusing them takes no more than their limits allow', async () => {
    // At most this many signatures a second are explained, of all clients together.
    const explained = readConfig({
      ...apiEnv(exchange.url),
      SIGNATURE_EXPLANATIONS: '',
    }).signatureExplanations
    const explaining = await startSecondApi(exchange, { SIGNATURE_EXPLANATIONS: '1000000' })
    const bad = { ...bodies(1)[0], leverage: 7 }
    const refused = await time.of(() => post('/v0/orders', bad))
    const explanation = (await time.of(() => explaining.send(alice, 'POST', '/v0/orders', bad))) - refused
    await explaining.stop()
    const ofOne = (bucket: Bucket): number => (Math.max(0, explanation) * explained) / LIMITS[bucket]
    judgeCommand('place, wrong', refused + ofOne('orders'), budgetOf('orders'), 400)
    const wrong = bodies(50).map((body) => ({ ...body, leverage: 7 }))
    const ofBatch = await time.of(() => sendBatch(exchange, alice, wrong))
    judgeCommand('place/batch, 50 wrong', ofBatch + ofOne('batches'), budgetOf('batches'), 200)
    expectWithin()
  })

  it('when orders are cancelled, it takes no more than its limit allows', async () => {
    await post('/v0/orders/cancel/all', {})
    const hashes: string[] = []
    const place = (batches: number) => async () => {
      for (let batch = 0; batch < batches; batch++) {
        const { body } = await sendBatch(exchange, alice, bodies(50))
        hashes.push(...body.results.map(({ order }: Answer['body']) => order.order_hash))
      }
    }
    let answer: Answer | undefined
    const cancelBatch = async (orderHashes: readonly string[]) => {
      answer = await post('/v0/orders/cancel/batch', { client_request_id: newRequestId(), orderHashes })
    }
    const requests = () => 1 + Math.max(costOfCancels(100), requestsOf(answer as Answer) - 1)
    const ofBatch = await costAfter(place(2), () => cancelBatch(hashes.splice(0, 100)))
    expect(answer?.body.results.every(({ cancelled }: Answer['body']) => cancelled)).to.equal(true)
    judgeCommand('cancel/batch of 100', ofBatch, budgetOf('cancels') * requests(), answer?.status)
    const unknown = Array.from({ length: 100 }, (_, at) => `0x${(at + 1).toString(16).padStart(64, '0')}`)
    const ofUnknown = await time.of(() => cancelBatch(unknown))
    judgeCommand('cancel/batch of 100 unknown', ofUnknown, budgetOf('cancels') * requests(), answer?.status)
    await place(2)()
    const single = () => exchange.cancel(alice, hashes.pop() as string)
    const ofSingle = await time.of(single, { warm: 30, samples: 7, calls: 10 })
    judgeCommand('cancel/by-hash', ofSingle, budgetOf('cancels'), 200)
    // The orders had to be placed before, in batches of fifty.
    const ofAll = await costAfter(
      place(6),
      async () => {
        answer = await post('/v0/orders/cancel/all', {})
      },
      3,
    )
    expect(answer?.body.cancelled_count).to.equal(300)
    const allowed = budgetOf('cancels') * requestsOf(answer as Answer) + budgetOf('batches') * 6
    judgeCommand('cancel/all of 300', ofAll, allowed, answer?.status)
    expectWithin()
  })

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
    judgeCommand('api-keys, create', await costAfter(prepare, create, 3), budgetOf('auth'), answer?.status)
    expect(answer?.status).to.equal(200)
    const store = () => createApiKey(exchange.db, alice.userId, ALLOWS_ALL, Date.now(), 'last')
    const revoke = async () => {
      answer = await exchange.send(alice, 'DELETE', '/v0/me/api-keys/last')
    }
    judgeCommand('api-keys, revoke', await costAfter(store, revoke, 15), budgetOf('cancels'), answer?.status)
    expect(answer?.status).to.equal(200)
    expectWithin()
  })

  const topics = [
    ...['book', 'trades', 'stats', 'auction', 'candles.1m'].map((kind) => `market.1.${kind}`),
    'user',
    'markets',
  ]

  /** Subscribes to each topic on its own, and waits until the feed has begun each. Returns the positions of the topics. */
  /** More than three times what the subscriptions of this test cost. */
  const READS_OF_SUBSCRIPTIONS = 100

  async function subscribe(since?: Record<string, string>): Promise<Record<string, string>> {
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

  async function unsubscribe(): Promise<void> {
    feed.send({ op: 'unsubscribe', id: 'end', topics })
    // Rows that were encoded for readers that resume are kept for a moment.
    await sleep(1_000)
  }

  async function measureSubscription(since?: Record<string, string>) {
    for (;;) {
      await unsubscribe()
      const before = await remaining('reads')
      const cost = await time.of(() => subscribe(since), { warm: 0, samples: 1, calls: 1 })
      // The second look at the limits is a read too.
      const reads = before - (await remaining('reads')) - 1
      // Otherwise a window of the limit has ended in between.
      if (reads > 0) return { cost, reads }
    }
  }

  it('when subscriptions start or resume, they take no more than the reads that they cost', async () => {
    // Reads that earlier tests have spent come back with the next window of the limit.
    while ((await remaining('reads')) < READS_OF_SUBSCRIPTIONS) await sleep(1_000)
    const positions = await subscribe()
    expect(Object.keys(positions)).to.have.members(topics)
    for (const since of [undefined, positions]) {
      const { cost, reads } = await measureSubscription(since)
      const name = `subscribe ${since ? 'with' : 'without'} since`
      judge(name, cost, budgetOf('reads') * reads, `${reads} reads`)
    }
    expectWithin()
  })
})
