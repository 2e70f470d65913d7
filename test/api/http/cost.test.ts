/**
 * The processor time of every endpoint and feed operation at its maximum, in recoveries of a signer that are measured in the same run, so
 * that it does not depend on the speed of the machine. A client that uses a limit to the full takes at most a quarter of one core. Other
 * programs on the same cores distort the figures, so it runs by itself: `npm run bench:costs`.
 */
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { readConfig } from '../../../api/config.ts'
import type { Bucket } from '../../../api/http/access.ts'
import { recover } from '../../../service/crypto.ts'
import { LiveClient } from '../../support/live-client.ts'
import { perpetual } from '../../support/markets.ts'
import { descriptionOf } from '../support/description.ts'
import {
  type Answer,
  apiEnv,
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { newRequestId, sendBatch } from '../support/place-batch.ts'
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
const PAGE = 1_000
const TRADES = 1_050
const ROUNDS = 5

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

const usage = (): number => {
  const { user, system } = process.cpuUsage()
  return user + system
}

describe('the cost of operations at their maximum (skipped: npm run bench:costs measures it)', function () {
  this.timeout(300_000)
  let exchange: ExchangeFixture
  let alice: User
  let client: LiveClient
  let recoveryUs: number
  let paths: Record<
    string,
    Record<string, { operationId: string; parameters?: { name: string; in: string }[] }>
  >
  const report: string[] = []

  before(async function () {
    if (process.env.COSTS === undefined) this.skip()
    exchange = await startExchange({ FAUCET_WAIT_MS: '10', RELAY_WAIT_MS: '10', ADJUSTMENT_WAIT_MS: '10' })
    alice = await createUser(exchange.db, 'alice', '1000000000')
    await trade(await createUser(exchange.db, 'bob', '1000000000'))
    await exchange.project()
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    const base = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
    client = await LiveClient.open(base, { headers: { authorization: `Key ${alice.apiKey}` } })
    paths = ((await descriptionOf(exchange)) as unknown as { paths: typeof paths }).paths
    recoveryUs = measureRecovery()
  })
  after(async () => {
    if (process.env.COSTS === undefined) return
    console.log(report.sort().join('\n'))
    await client.close()
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
          ...{ batch: ++batch, price: 1_000, steps: 10 },
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

  /** Processor time of a bare recovery, microseconds. */
  function measureRecovery(): number {
    const { hash, body } = signedBody(alice)
    const digest = Buffer.from(hash.slice(2), 'hex')
    const signature = Buffer.from(String(body.signature).slice(2, 130), 'hex')
    let least = Number.POSITIVE_INFINITY
    for (let round = 0; round < ROUNDS; round++) {
      const before = usage()
      for (let at = 0; at < 500; at++) recover(digest, signature, (at % 2) as 0 | 1)
      least = Math.min(least, (usage() - before) / 500)
    }
    return least
  }

  /** Least processor time of the rounds, in recoveries. */
  async function costOf(work: () => Promise<unknown>, rounds = ROUNDS): Promise<number> {
    await work()
    let least = Number.POSITIVE_INFINITY
    for (let round = 0; round < rounds; round++) {
      const before = usage()
      await work()
      least = Math.min(least, usage() - before)
    }
    return least / recoveryUs
  }

  async function remaining(bucket: Bucket): Promise<number> {
    const { body } = await exchange.get(alice, '/v0/me/limits')
    return body.limits.find((limit: { bucket: string }) => limit.bucket === bucket).remaining
  }

  function judge(name: string, cost: number, allowed: number, status: unknown): void {
    report.push(`${name}: ${cost.toFixed(0)} of ${allowed.toFixed(0)} recoveries (${status})`)
    expect(cost, `${name} (${status}), in recoveries`).to.be.at.most(allowed)
  }

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
      const cost = await costOf(async () => {
        answer = await exchange.get(alice, path)
      })
      if (requestsOf(answer) > 5) large++
      judge(`GET ${path}`, cost, budgetOf('reads') * requestsOf(answer), answer.status)
    }
    expect(large, 'pages of many bytes').to.be.above(3)
  })

  for (const path of ['/v0/openapi.json', '/v0/asyncapi.json', '/docs', '/docs/js/scalar.js'])
    it(`when ${path} is read, it takes no more than a read may`, async () => {
      const headers = { 'accept-encoding': 'gzip' }
      const request = () => exchange.api.app.inject({ method: 'GET', url: path, headers })
      const { statusCode, rawPayload } = await request()
      const requests = 1 + Math.floor(rawPayload.length / 32_768)
      judge(`GET ${path}`, await costOf(request), budgetOf('reads') * requests, statusCode)
    })

  it('when a command is as large as it may be, it takes no more than its limit allows', async () => {
    const bodies = (count: number) =>
      Array.from({ length: count }, () => signedBody(alice, { quantity: '0.01', price: '96' }))
    const post = (path: string, body: unknown) => exchange.send(alice, 'POST', path, body)
    const prepared = bodies(2 * ROUNDS + 2)
    const single = async () => post('/v0/orders', prepared.pop()?.body)
    judge('place', await costOf(single), budgetOf('orders'), 200)
    const batches = Array.from({ length: ROUNDS + 2 }, () => bodies(50).map(({ body }) => body))
    const batch = async () => sendBatch(exchange, alice, batches.pop())
    judge('place/batch of 50', await costOf(batch), budgetOf('batches'), 200)
    const wrong = Array.from({ length: 50 }, () => ({ ...bodies(1)[0]?.body, leverage: 7 }))
    judge(
      'place/batch, 50 wrong',
      await costOf(() => sendBatch(exchange, alice, wrong)),
      budgetOf('batches'),
      200,
    )
    const bad = { ...bodies(1)[0]?.body, leverage: 7 }
    judge('place, wrong', await costOf(() => post('/v0/orders', bad)), budgetOf('orders'), 400)
    await exchange.project()
    const { body } = await exchange.get(alice, `/v0/orders/by-user/${alice.userId}?limit=${PAGE}`)
    const hashes = body.orders.map((order: { order_hash: string }) => order.order_hash)
    const cancelled = hashes.slice(0, 100)
    let answer: Answer | undefined
    const cancel = async () => {
      answer = await post('/v0/orders/cancel/batch', {
        client_request_id: newRequestId(),
        orderHashes: cancelled,
      })
    }
    judge(
      'cancel/batch of 100',
      await costOf(cancel),
      budgetOf('cancels') * requestsOf(answer as Answer),
      200,
    )
    judge(
      'cancel/by-hash',
      await costOf(() => exchange.cancel(alice, cancelled[0])),
      budgetOf('cancels'),
      200,
    )
    const unknown = Array.from({ length: 100 }, (_, at) => `0x${(at + 1).toString(16).padStart(64, '0')}`)
    const none = () =>
      post('/v0/orders/cancel/batch', { client_request_id: newRequestId(), orderHashes: unknown })
    judge('cancel/batch of 100 unknown', await costOf(none, 2), budgetOf('cancels') * 2, 200)
    // The orders had to be placed before, in batches of fifty.
    const before = usage()
    const all = await post('/v0/orders/cancel/all', {})
    const ended = all.body.cancelled_count as number
    expect(ended).to.be.above(100)
    const allowed = budgetOf('cancels') * requestsOf(all) + (budgetOf('batches') * ended) / 50
    judge(`cancel/all of ${ended}`, (usage() - before) / recoveryUs, allowed, all.status)
  })

  it('when a subscription starts or resumes, it takes no more than the reads that it costs', async () => {
    const topics = ['book', 'trades', 'stats', 'auction', 'candles.1m'].map((kind) => `market.1.${kind}`)
    const names = [...topics, 'user', 'markets']
    const { messages } = client
    const started = await Promise.all(names.map((name) => client.call('subscribe', { topics: [name] })))
    void started
    await new Promise((resolve) => setTimeout(resolve, 500))
    const positions: Record<string, string> = {}
    for (const message of messages)
      if (message.type === 'subscribed')
        positions[message.topic] = `${message.data.epoch}:${Math.max(0, message.seq - 900)}`
    const known = Object.keys(positions)
    expect(known.length).to.be.above(3)
    for (const since of [undefined, positions]) {
      const before = await remaining('reads')
      const beforeCpu = usage()
      for (const name of known) {
        client.send('subscribe', { topics: [name], ...(since && { since: { [name]: since[name] } }) })
      }
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      const cost = (usage() - beforeCpu) / recoveryUs
      const reads = before - (await remaining('reads'))
      judge(
        `subscribe ${since ? 'with' : 'without'} since`,
        cost,
        budgetOf('reads') * reads,
        `${reads} reads`,
      )
    }
  })
})
