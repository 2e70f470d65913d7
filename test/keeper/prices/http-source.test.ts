/** Prices over HTTP: whatever a server answers, the source has a reading or a fault, and the publisher never waits for it. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Millis } from '../../../domain/units.ts'
import { createHttpSources } from '../../../keeper/adapters/sources/http.ts'
import type { PriceSource } from '../../../keeper/ports.ts'
import type { HttpTerms } from '../../../keeper/price-file.ts'
import { parseDecimal, parsePrice } from '../../../service/decimal.ts'
import { e18 } from '../../support/markets.ts'

const NOW = 1_800_000_000_000 as Millis

describe('a price source over HTTP', () => {
  let server: Server
  let url: string
  let respond: RequestListener
  let requests: number
  let open: PriceSource[]

  beforeEach(async () => {
    requests = 0
    open = []
    respond = (_, response) => response.end(JSON.stringify({ data: [{ price: '100.5', at: NOW - 250 }] }))
    server = createServer((request, response) => {
      requests++
      respond(request, response)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/prices`
  })
  afterEach(async () => {
    for (const source of open) source.stop()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  const terms = (changes: Partial<HttpTerms> = {}): HttpTerms => ({
    ...{ kind: 'http', name: 'alpha', url, price: 'data.0.price', time: 'data.0.at', isSeconds: false },
    ...{ maxAge: 5_000 as Millis, maxDeviation: 10_000n, pollMs: 50, timeoutMs: 200 },
    ...changes,
  })
  const sources = createHttpSources({ now: () => NOW })
  const start = (changes: Partial<HttpTerms> = {}): PriceSource => {
    const source = sources(terms(changes))
    open.push(source)
    return source
  }
  /** The answer once it is no longer `before`. */
  async function answerOf(source: PriceSource, before = 'NOT_POLLED') {
    for (let tries = 0; tries < 300; tries++) {
      const answer = source.answer(NOW, null)
      if (answer.fault !== before) return answer
      await sleep(10)
    }
    throw new Error(`still ${before}`)
  }

  it('when the document has price and time, they are the reading, with every digit', async () => {
    respond = (_, response) =>
      response.end(`{"data": [{"price": 62375.123456789012345678, "at": ${(NOW - 1_000) / 1_000}}]}`)
    const { reading } = await answerOf(start({ isSeconds: true }))
    expect(reading).to.deep.equal({ price: e18('62375.123456789012345678'), observedAt: NOW - 1_000 })
  })

  it('when the document has no time, it was observed when it arrived', async () => {
    expect((await answerOf(start({ time: null }))).reading).to.deep.equal({
      price: e18('100.5'),
      observedAt: NOW,
    })
  })

  const cases: readonly (readonly [string, RequestListener, string])[] = [
    ['has status 500', (_, response) => response.writeHead(500).end('{}'), 'HTTP_500'],
    ['is an error page', (_, response) => response.end('<html>Bad gateway</html>'), 'NOT_JSON'],
    ['is a redirect to an error page', (_, response) => response.writeHead(302).end(), 'HTTP_302'],
    ['never ends', () => {}, 'TIMED_OUT'],
    ['stalls in the middle', (_, response) => response.write('{"data": ['), 'TIMED_OUT'],
    ['is larger than 500 kB', (_, response) => response.end(' '.repeat(500_001)), 'TOO_LARGE'],
    ['has more than 20,000 values', (_, response) => response.end(`[${'0,'.repeat(20_000)}0]`), 'TOO_LARGE'],
    ['is nested deeply', (_, response) => response.end('['.repeat(19_000) + ']'.repeat(19_000)), 'TOO_LARGE'],
    ['breaks off', (request) => request.socket.destroy(), 'UNREACHABLE'],
    ['has no price', (_, response) => response.end('{"data": []}'), 'NO_PRICE'],
    [
      'has a price that is no number',
      (_, response) => response.end('{"data":[{"price":"n/a","at":1}]}'),
      'NO_PRICE',
    ],
    ['has no time', (_, response) => response.end('{"data":[{"price":"1"}]}'), 'NO_TIME'],
    [
      'has a time that no date can have',
      (_, response) => response.end('{"data":[{"price":"1","at":1e300}]}'),
      'NO_TIME',
    ],
    ['has a negative time', (_, response) => response.end('{"data":[{"price":"1","at":-1}]}'), 'NO_TIME'],
    ['is null', (_, response) => response.end('null'), 'NO_PRICE'],
  ]
  for (const [what, answer, fault] of cases) {
    it(`when the answer ${what}, the source has the fault ${fault}, and a reading once the server answers again`, async () => {
      const good = respond
      respond = answer
      const source = start()
      expect(await answerOf(source)).to.deep.equal({ reading: null, fault })
      respond = good
      expect((await answerOf(source, fault)).reading?.price).to.equal(e18('100.5'))
    })
  }

  it('when several sources have one URL, it is polled once for all, until the last of them stops', async () => {
    const [a, b] = [start(), start({ name: 'beta', price: 'data.0.at', time: null })]
    await answerOf(a)
    await answerOf(b)
    await sleep(120)
    expect(requests).to.be.lessThan(6)
    a.stop()
    const before = requests
    await sleep(120)
    expect(requests).to.be.greaterThan(before)
    b.stop()
    open = []
    await sleep(60)
    const stopped = requests
    await sleep(120)
    expect(requests).to.equal(stopped)
  })
})

describe('service/decimal', () => {
  for (const [text, value] of [
    ['1', e18('1')],
    ['-0.5', e18('-0.5')],
    ['6.2e4', e18('62000')],
    ['1.5E-3', e18('0.0015')],
    ['0.000000000000000001', 1n],
    ['0.0000000000000000001', null],
    ['0x10', null],
    ['1,5', null],
    ['', null],
    ['NaN', null],
  ] as const) {
    it(`when the text is "${text}", the amount is ${value}`, () => {
      expect(parseDecimal(text)).to.equal(value)
    })
  }

  it('when a price has more than 18 decimals, the rest is cut off', () => {
    expect(parsePrice('1.0000000000000000019')).to.equal(e18('1.000000000000000001'))
    expect(parsePrice('-1.0000000000000000019')).to.equal(e18('-1.000000000000000001'))
  })
})
