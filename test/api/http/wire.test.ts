import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { lockShard } from '../../../db/journal.ts'
import {
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { untilLockWait } from '../support/wait.ts'

/** What comes over a connection, byte by byte, where a client library would not let it. */
describe('the wire', () => {
  let exchange: ExchangeFixture
  let alice: User
  let port: number

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    port = (exchange.api.app.server.address() as AddressInfo).port
  })
  after(() => exchange.stop())

  /** The answer to raw bytes until the connection ends; the requests send `Connection: close` to end it. */
  function sendRaw(text: string, then: (socket: Socket) => Promise<void> = async () => {}): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write(text)
        then(socket).catch(reject)
      })
      let answer = ''
      socket.on('data', (data) => {
        answer += data
      })
      socket.on('error', reject)
      socket.on('close', () => resolve(answer))
    })
  }

  const request = (method: string, path: string, body = '', ...headers: string[]): string =>
    [
      `${method} ${path} HTTP/1.1`,
      'Host: here',
      `Authorization: Key ${alice.apiKey}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      ...headers,
      '',
      body,
    ].join('\r\n')

  const statusOf = (answer: string): number => Number(/^HTTP\/1.1 (\d+)/.exec(answer)?.[1])
  const bodyOf = (answer: string) => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))

  for (const [what, text] of [
    ['no HTTP', 'HELLO\r\n\r\n'],
    ['a method that is none', 'FETCH /v0/time HTTP/1.1\r\nHost: here\r\n\r\n'],
    ['headers without end', `GET /v0/time HTTP/1.1\r\nHost: here\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
    [
      'two lengths',
      'POST /v0/orders HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}',
    ],
    [
      'a length and chunks',
      'POST /v0/orders HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
  ] as const) {
    it(`answers ${what} in the form of an error`, async () => {
      const answer = await sendRaw(text)
      expect(statusOf(answer), answer).to.equal(400)
      const { message, details } = bodyOf(answer)
      expect(message).to.be.a('string')
      expect(details).to.include({ code: 'MALFORMED_REQUEST', outcome: 'not_placed', retryable: false })
      expect(answer).to.include(`X-Request-Id: ${details.request_id}`)
    })
  }

  it('says nothing of an order that is still on its way when its connection breaks', async () => {
    const { body, hash } = signedBody(alice)
    const answer = await exchange.db.transaction().execute(async (tx) => {
      await lockShard(tx, 'm1')
      return sendRaw(request('POST', '/v0/orders', JSON.stringify(body)), async (socket) => {
        await untilLockWait(exchange.db)
        socket.write('HELLO\r\n\r\n')
      })
    })
    expect(answer).to.equal('')
    // It was placed all the same: who asks learns it.
    const again = await exchange.send(alice, 'POST', '/v0/orders', body)
    expect(again.body).to.include({ is_duplicate: true })
    expect(again.body.order.order_hash).to.equal(hash)
  })

  it('answers requests that arrive together one after the other', async () => {
    const [first, second] = [signedBody(alice), signedBody(alice)]
    const place = ({ body }: typeof first) => request('POST', '/v0/orders', JSON.stringify(body))
    const last = request('POST', '/v0/orders/cancel/all', '{}', 'Connection: close')
    const answers = (await sendRaw(place(first) + place(second) + last)).split('HTTP/1.1 ').slice(1)
    expect(answers.map((answer) => answer.slice(0, 3))).to.deep.equal(['200', '200', '200'])
    expect(answers[0]).to.include(first.hash)
    expect(answers[1]).to.include(second.hash)
  })

  it('answers whatever is expected of it', async () => {
    const odd = await sendRaw(request('GET', '/v0/time', '', 'Expect: miracles', 'Connection: close'))
    expect(statusOf(odd), odd).to.equal(200)
  })

  it('names the request that it could not route', async () => {
    const answer = await sendRaw(request('GET', '/v0/orders/%ZZ', '', 'Connection: close'))
    expect(statusOf(answer)).to.equal(400)
    expect(answer).to.include(`x-request-id: ${bodyOf(answer).details.request_id}`)
  })
})
