import { channel } from 'node:diagnostics_channel'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { EXPOSED } from '../../../api/app.ts'
import { FRESH_MS } from '../../../api/http/shared-answers.ts'
import {
  createUser,
  type ExchangeFixture,
  startExchange,
  startSecondApi,
} from '../support/exchange-fixture.ts'

const PATHS = [
  '/v0/markets',
  '/v0/markets?limit=2',
  '/v0/orderbook/by-market/1?depth=20',
  '/v0/orderbook?symbol=BTC-PERP&depth=5',
  '/v0/markets/stats',
  '/v0/tickers',
]
/** Requests of one burst: more than make an answer demanded. */
const BURST = 40
/** Published by fastify for each request that it handles. */
const handled = channel('tracing:fastify.request.handler:start')

interface Received {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** All answers to pipelined requests. */
class Client {
  readonly #socket: Socket
  #received = Buffer.alloc(0)
  #onData: () => void = () => {}

  constructor(port: number) {
    this.#socket = connect(port, '127.0.0.1')
    this.#socket.on('data', (data) => {
      this.#received = Buffer.concat([this.#received, data])
      this.#onData()
    })
  }

  #next(): Received | undefined {
    const end = this.#received.indexOf('\r\n\r\n')
    if (end < 0) return undefined
    const [first = '', ...lines] = this.#received.subarray(0, end).toString('latin1').split('\r\n')
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 2),
      ]),
    )
    const size = Number(headers['content-length'])
    const body = this.#received.subarray(end + 4, end + 4 + size)
    if (body.length < size) return undefined
    this.#received = this.#received.subarray(end + 4 + size)
    return { status: Number(first.split(' ')[1]), headers, body: body.toString() }
  }

  /** `headersOf`: lines of the headers of the request with that number. */
  burst(path: string, count: number, headersOf: (n: number) => string = () => ''): Promise<Received[]> {
    const answers: Received[] = []
    const requests = Array.from(
      { length: count },
      (_, n) => `GET ${path} HTTP/1.1\r\nHost: here\r\n${headersOf(n)}\r\n`,
    )
    return new Promise((resolve) => {
      this.#onData = () => {
        for (let next = this.#next(); next !== undefined; next = this.#next()) answers.push(next)
        if (answers.length === count) resolve(answers)
      }
      this.#socket.write(requests.join(''))
    })
  }

  close(): void {
    this.#socket.destroy()
  }
}

describe('answers in demand', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let client: Client
  let handledRequests = 0
  const opened: ExchangeFixture[] = []
  const count = () => {
    handledRequests++
  }

  const listen = async ({ api: { app } }: ExchangeFixture): Promise<Client> => {
    await app.listen({ port: 0, host: '127.0.0.1' })
    return new Client((app.server.address() as AddressInfo).port)
  }

  before(async () => {
    handled.subscribe(count)
    exchange = await startExchange({ RATE_LIMIT_WINDOW_SECONDS: '600' })
    opened.push(exchange)
    await exchange.project()
    client = await listen(exchange)
  })
  after(async () => {
    handled.unsubscribe(count)
    client.close()
    for (const each of opened) await each.stop()
  })

  /** Bursts until a burst was answered without the framework in part; its answers, and those requests of all bursts. */
  async function demanded(path: string): Promise<{ answers: Received[]; sent: number; direct: number }> {
    for (let sent = BURST; ; sent += BURST) {
      const before = handledRequests
      const answers = await client.burst(path, BURST)
      const direct = BURST - (handledRequests - before)
      if (direct > 0) return { answers, sent, direct }
    }
  }

  /** Headers without those that each answer has its own value of. */
  const comparable = (headers: Received['headers']) => {
    const { 'x-request-id': id, 'ratelimit-remaining': left, 'ratelimit-reset': reset, ...rest } = headers
    expect([Boolean(id), Number(left) >= 0, Number(reset) > 0]).to.deep.equal([true, true, true])
    const { date: _date, connection: _connection, 'keep-alive': _keepAlive, ...same } = rest
    return same
  }

  for (const path of PATHS) {
    it(`when the answer to ${path} is in demand, its status, headers and body are those of an ordinary answer`, async () => {
      const ordinary = await exchange.api.app.inject({ url: path })
      const { answers } = await demanded(path)
      for (const { status, headers, body } of answers) {
        expect(status).to.equal(ordinary.statusCode)
        expect(comparable(headers)).to.deep.equal(
          comparable({ ...ordinary.headers, 'content-length': headers['content-length'] } as never),
        )
        expect(Buffer.byteLength(body)).to.equal(Number(headers['content-length']))
        expect(Object.keys(JSON.parse(body))).to.deep.equal(Object.keys(ordinary.json()))
      }
      expect(new Set(answers.map(({ headers }) => headers['x-request-id'])).size).to.equal(BURST)
    })
  }

  it('when URLs differ in order, value or encoding of the query, no answer is that of another URL', async () => {
    const books = ['depth=1&symbol=BTC-PERP', 'symbol=BTC-PERP&depth=1', 'symbol=BTC%2DPERP&depth=1']
    for (const query of books) {
      const { answers } = await demanded(`/v0/orderbook?${query}`)
      expect(new Set(answers.map(({ body }) => JSON.parse(body).symbol))).to.deep.equal(new Set(['BTC-PERP']))
    }
    for (const limit of [1, 2, 3]) {
      const { answers } = await demanded(`/v0/markets?limit=${limit}`)
      expect(new Set(answers.map(({ body }) => JSON.parse(body).length))).to.deep.equal(new Set([limit]))
    }
    const answers = await client.burst('/v0/markets?limit=x', BURST)
    expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([400]))
  })

  it('when a request has a credential, an origin or a bookmark, the framework handles it', async () => {
    const { apiKey } = await createUser(exchange.db, 'alice')
    for (const [header, path] of [
      [`Authorization: Key ${apiKey}`, '/v0/tickers'],
      ['Origin: https://trade.example', '/v0/tickers'],
      ['X-Any: 1', '/v0/tickers?read_after_shard_id=accounts.1&read_after_shard_seq=0'],
    ] as const) {
      await demanded('/v0/tickers')
      const before = handledRequests
      const answers = await client.burst(path, BURST, () => `${header}\r\n`)
      expect([header, handledRequests - before]).to.deep.equal([header, BURST])
      const [allowed, exposed] = header.startsWith('Origin')
        ? ['https://trade.example', EXPOSED.join(', ')]
        : []
      for (const { headers } of answers) {
        expect(headers['access-control-allow-origin']).to.equal(allowed)
        expect(headers['access-control-expose-headers']).to.equal(exposed)
      }
    }
  })

  it('when answers are sent both ways, the metrics count all of them by route and status', async () => {
    const counted = async (): Promise<number> => {
      const labels = 'method="GET",route="/v0/markets/stats",status="200"'
      const line = (await exchange.metrics())
        .split('\n')
        .find((text) => text.startsWith(`api_request_duration_seconds_count{${labels}}`))
      return Number(line?.split(' ')[1] ?? 0)
    }
    const before = await counted()
    const { sent, direct } = await demanded('/v0/markets/stats')
    expect(direct).to.be.greaterThan(0)
    expect(await counted()).to.equal(before + sent)
  })

  it('when answers are sent both ways, the limit of each forwarded address is exact', async () => {
    const limits = { RATE_LIMIT_ADDRESS: '5', RATE_LIMIT_READS: '4', RATE_LIMIT_WINDOW_SECONDS: '50' }
    const limited = await startSecondApi(exchange, { ...limits, TRUST_PROXY: '1' })
    opened.push(limited)
    const proxied = await listen(limited)
    const answers: Received[] = []
    const handledBefore = handledRequests
    const from = (n: number): string => `X-Forwarded-For: 203.0.113.${n % 2}\r\n`
    for (let burst = 0; burst < 12; burst++)
      answers.push(...(await proxied.burst('/v0/tickers', BURST, from)))
    proxied.close()
    for (const parity of [0, 1]) {
      const ofAddress = answers.filter((_, n) => n % 2 === parity)
      const [accepted, rejected] = [200, 429].map((code) => ofAddress.filter(({ status }) => status === code))
      expect([accepted?.length, rejected?.length]).to.deep.equal([200, 40])
      const left = accepted?.map(({ headers }) => Number(headers['ratelimit-remaining']))
      expect(left?.toSorted((a, b) => b - a)).to.deep.equal(Array.from({ length: 200 }, (_, n) => 199 - n))
      for (const { headers, body } of rejected ?? []) {
        expect(JSON.parse(body).details.code).to.equal('RATE_LIMITED')
        expect(headers).to.include.keys('retry-after', 'ratelimit-limit', 'ratelimit-remaining')
      }
    }
    expect(handledRequests - handledBefore).to.be.lessThan(400)
  })

  it('when the answer that requests wait for cannot be computed, each of them counts once', async () => {
    const path = '/v0/orderbook/by-market/2?depth=7'
    const { answers } = await demanded(path)
    await sql`alter table read.book_levels rename to book_levels_away`.execute(exchange.db)
    await sleep(2 * FRESH_MS)
    const failed = await client.burst(path, BURST)
    await sql`alter table read.book_levels_away rename to book_levels`.execute(exchange.db)
    expect(new Set(failed.map(({ status }) => status))).to.deep.equal(new Set([500]))
    const left = [...answers, ...failed].map(({ headers }) => Number(headers['ratelimit-remaining']))
    const least = Math.min(...left)
    const counts = Array.from({ length: 2 * BURST }, (_, n) => least + 2 * BURST - 1 - n)
    expect(left.toSorted((a, b) => b - a)).to.deep.equal(counts)
  })
})
