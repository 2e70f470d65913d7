import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { lockShard } from '../../support/rows/journal.ts'
import {
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { untilLockWait } from '../support/wait.ts'

/** Raw bytes that a client library would not send. */
describe('raw HTTP connections', () => {
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
    ['text that is not HTTP', 'HELLO\r\n\r\n'],
    ['an unknown method', 'FETCH /v0/time HTTP/1.1\r\nHost: here\r\n\r\n'],
    [
      'headers beyond the size limit',
      `GET /v0/time HTTP/1.1\r\nHost: here\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    ],
    [
      'two Content-Length headers',
      'POST /v0/orders HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}',
    ],
    ['a version that is not HTTP/1', 'GET /v0/time HTTP/7.1\r\nHost: here\r\n\r\n'],
    ['a request line without a path', 'GET HTTP/1.1\r\nHost: here\r\n\r\n'],
    ['no Host header', 'POST /v0/orders HTTP/1.1\r\nConnection: close\r\n\r\n'],
    ['a CONNECT request', 'CONNECT there:443 HTTP/1.1\r\nHost: there:443\r\n\r\n'],
    [
      'Content-Length and chunked encoding',
      'POST /v0/orders HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
  ] as const) {
    it(`when a client sends ${what}, it answers with an error of the catalogue`, async () => {
      const answer = await sendRaw(text)
      expect(statusOf(answer), answer).to.equal(400)
      const { message, details } = bodyOf(answer)
      expect(message).to.be.a('string')
      expect(details).to.include({ code: 'MALFORMED_REQUEST', outcome: 'not_read', retryable: false })
      expect(answer.toLowerCase()).to.include(`x-request-id: ${details.request_id}`)
    })
  }

  const chunked = (...chunks: string[]): string =>
    [
      'POST /v0/orders HTTP/1.1',
      'Host: here',
      `Authorization: Key ${alice.apiKey}`,
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
      '',
      ...chunks,
      '0',
      '',
      '',
    ].join('\r\n')

  for (const [what, chunks] of [
    ['a chunk without a size', ['zz', '{}']],
    ['a second chunk without a size', ['1', '{', 'zz', '}']],
    ['a chunk that is longer than its size', ['1', '{}']],
  ] as const) {
    it(`when the body of an order has ${what}, it answers 400 and places no order`, async () => {
      const before = await exchange.state()
      const answer = await sendRaw(chunked(...chunks))
      expect(statusOf(answer), answer).to.equal(400)
      expect(bodyOf(answer).details).to.include({ code: 'MALFORMED_REQUEST', outcome: 'not_read' })
      expect(await exchange.state()).to.deep.equal(before)
    })
  }

  it('when garbage follows a request that is answered before its body, it sends no second answer', async () => {
    const head = 'POST /v0/orders HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n'
    const answer = await sendRaw(head, async (socket) => {
      await new Promise((resolve) => socket.once('data', resolve))
      socket.write('zz\r\n')
    })
    expect(answer.match(/HTTP\/1.1 \d+/g)).to.deep.equal(['HTTP/1.1 401'])
  })

  it('when garbage follows an unanswered order, it closes the connection without an answer', async () => {
    const { body, hash } = signedBody(alice)
    const answer = await exchange.db.transaction().execute(async (tx) => {
      await lockShard(tx, 'm1')
      return sendRaw(request('POST', '/v0/orders', JSON.stringify(body)), async (socket) => {
        await untilLockWait(exchange.db)
        socket.write('HELLO\r\n\r\n')
      })
    })
    expect(answer).to.equal('')
    // The order was placed; repeating it returns the order.
    const again = await exchange.send(alice, 'POST', '/v0/orders', body)
    expect(again.body).to.include({ is_duplicate: true })
    expect(again.body.order.order_hash).to.equal(hash)
  })

  it('when requests are pipelined, it answers them in order', async () => {
    const [first, second] = [signedBody(alice), signedBody(alice)]
    const place = ({ body }: typeof first) => request('POST', '/v0/orders', JSON.stringify(body))
    const last = request('POST', '/v0/orders/cancel/all', '{}', 'Connection: close')
    const answers = (await sendRaw(place(first) + place(second) + last)).split('HTTP/1.1 ').slice(1)
    expect(answers.map((answer) => answer.slice(0, 3))).to.deep.equal(['200', '200', '200'])
    expect(answers[0]).to.include(first.hash)
    expect(answers[1]).to.include(second.hash)
  })

  it('when a request has an unknown Expect header, it answers the request', async () => {
    const odd = await sendRaw(request('GET', '/v0/time', '', 'Expect: miracles', 'Connection: close'))
    expect(statusOf(odd), odd).to.equal(200)
  })

  it('when a request cannot be routed, the error has its request id', async () => {
    const answer = await sendRaw(request('GET', '/v0/orders/%ZZ', '', 'Connection: close'))
    expect(statusOf(answer)).to.equal(400)
    expect(answer).to.include(`x-request-id: ${bodyOf(answer).details.request_id}`)
  })
})
