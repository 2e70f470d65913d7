import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { readConfig } from '../../../api/config.ts'
import { ConfigError } from '../../../service/environment.ts'
import { PATIENCE } from '../../support/patience.ts'
import { lockShard } from '../../support/rows/journal.ts'
import {
  apiEnv,
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { until } from '../support/wait.ts'

const REQUEST_TIMEOUT_MS = 400
/** The timeout, the interval at which the server checks it, and the load of the machine. */
const LATEST_MS = 4_000 * PATIENCE

/** Clients that stall, on a real server. */
describe('slow clients', function () {
  this.timeout(30_000)
  let exchange: ExchangeFixture
  let alice: User
  let port: number

  before(async () => {
    exchange = await startExchange({
      REQUEST_TIMEOUT_MS: `${REQUEST_TIMEOUT_MS}`,
      CONNECTION_IDLE_MS: '4500',
      COMMAND_TIMEOUT_MS: '4000',
      READ_AFTER_WAIT_MS: '1',
      FAUCET_WAIT_MS: '1',
      RELAY_WAIT_MS: '1',
      ADJUSTMENT_WAIT_MS: '1',
      HISTORY_WAIT_MS: '1',
    })
    alice = await createUser(exchange.db, 'alice')
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    port = (exchange.api.app.server.address() as AddressInfo).port
  })
  after(() => exchange.stop())

  interface Ended {
    readonly answer: string
    readonly afterMs: number
  }

  /** What the server sends until it ends the connection. `act` runs once the connection is open. */
  function untilEnded(act: (socket: Socket) => Promise<void> | void): Promise<Ended> {
    return new Promise((resolve, reject) => {
      const started = Date.now()
      let answer = ''
      const socket = connect(port, '127.0.0.1', () => void Promise.resolve(act(socket)).catch(reject))
      socket.setEncoding('utf8')
      socket.on('data', (text: string) => {
        answer += text
      })
      // A write after the end of the connection fails; the answer was received before.
      socket.on('error', () => {})
      socket.on('close', () => resolve({ answer, afterMs: Date.now() - started }))
    })
  }

  const head = (method: string, path: string, length: number): string =>
    [
      `${method} ${path} HTTP/1.1`,
      'Host: here',
      `Authorization: Key ${alice.apiKey}`,
      'Content-Type: application/json',
      `Content-Length: ${length}`,
      '',
      '',
    ].join('\r\n')

  function expectTimeout({ answer, afterMs }: Ended): void {
    expect(answer).to.match(/^HTTP\/1.1 408 Request Timeout\r\n/)
    expect(answer).to.match(/\r\nConnection: close\r\n/)
    const { message, details } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))
    expect(message).to.be.a('string')
    expect(details).to.include({ code: 'REQUEST_TIMEOUT', outcome: 'not_read', retryable: true })
    expect(answer).to.include(`X-Request-Id: ${details.request_id}`)
    expect(afterMs).to.be.within(REQUEST_TIMEOUT_MS - 50, LATEST_MS)
  }

  const connections = (): Promise<number> =>
    promisify(exchange.api.app.server.getConnections.bind(exchange.api.app.server))()

  it('when a connection sends nothing, it answers 408 and closes it', async () => {
    expectTimeout(await untilEnded(() => {}))
  })

  it('when the headers stall, it answers 408 and closes the connection', async () => {
    expectTimeout(
      await untilEnded((socket) => void socket.write('POST /v0/orders HTTP/1.1\r\nHost: here\r\nX-A')),
    )
  })

  it('when the headers arrive byte by byte, it answers 408 and closes the connection', async () => {
    const ended = await untilEnded(async (socket) => {
      socket.write('GET /v0/time HTTP/1.1\r\nHost: here\r\nX-Slow: ')
      while (!socket.destroyed && socket.writable) {
        socket.write('x')
        await sleep(50)
      }
    })
    expectTimeout(ended)
  })

  it('when the body of an order stalls, it answers 408 and places no order', async () => {
    const text = JSON.stringify(signedBody(alice).body)
    const before = await exchange.state()
    const ended = await untilEnded((socket) => {
      socket.write(head('POST', '/v0/orders', Buffer.byteLength(text)) + text.slice(0, -1))
    })
    expectTimeout(ended)
    expect(await exchange.state()).to.deep.equal(before)
  })

  /** Writes the text once the connection has an answer. Resolves with all that the server answers to both. */
  async function sendAfterAnswer(first: string, text: string): Promise<string> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.setEncoding('utf8').on('error', () => {})
    let answer = ''
    socket.on('data', (chunk: string) => {
      answer += chunk
    })
    socket.write(first)
    await until(async () => answer !== '')
    socket.write(text)
    await sleep(500)
    socket.destroy()
    return answer
  }

  it('when the rest of a request or a new request follows a 408, it places no order', async () => {
    const text = JSON.stringify(signedBody(alice).body)
    const request = head('POST', '/v0/orders', Buffer.byteLength(text)) + text
    const before = await exchange.state()
    for (const arrived of [request.slice(0, -1), request.slice(0, 30), '']) {
      const answer = await sendAfterAnswer(arrived, request.slice(arrived.length))
      expect(answer.match(/HTTP\/1.1 \d+/g)).to.deep.equal(['HTTP/1.1 408'])
      expect(await exchange.state()).to.deep.equal(before)
    }
  })

  it('when the client keeps its side open after a 408, the server releases the connection', async () => {
    await until(async () => (await connections()) === 0)
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.on('error', () => {})
    socket.resume()
    await until(async () => (await connections()) === 1)
    const deadline = Date.now() + LATEST_MS
    while ((await connections()) > 0 && Date.now() < deadline) await sleep(50)
    expect(await connections()).to.equal(0)
    socket.destroy()
  })

  it('when a client pauses between two requests of one connection, it answers both', async () => {
    const { answer } = await untilEnded(async (socket) => {
      socket.write('GET /v0/time HTTP/1.1\r\nHost: here\r\n\r\n')
      await sleep(REQUEST_TIMEOUT_MS + 1_500)
      socket.write('GET /v0/time HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n')
    })
    expect(answer.match(/HTTP\/1.1 200 OK/g)).to.have.length(2)
  })

  it('when an order takes longer than the bound of its arrival, it is answered', async () => {
    const { body, hash } = signedBody(alice)
    const text = JSON.stringify(body)
    const { answer } = await exchange.db
      .transaction()
      .execute(async (tx) => {
        await lockShard(tx, 'm1')
        const ended = untilEnded((socket) => {
          socket.write(
            head('POST', '/v0/orders', Buffer.byteLength(text)).replace('Host', 'Connection: close\r\nHost') +
              text,
          )
        })
        await sleep(REQUEST_TIMEOUT_MS + 1_500)
        return { ended }
      })
      .then(({ ended }) => ended)
    expect(answer).to.match(/^HTTP\/1.1 200 OK/)
    expect(answer).to.include(hash)
  })

  it('when a client does not read its answers, the server closes the connection', async () => {
    await until(async () => (await connections()) === 0)
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.pause()
    // More bytes than the buffers of both sides: the server cannot write on.
    const request = 'GET /v0/openapi.json HTTP/1.1\r\nHost: here\r\n\r\n'
    socket.write(request.repeat(400))
    await until(async () => (await connections()) === 1)
    const deadline = Date.now() + 20_000
    while ((await connections()) > 0 && Date.now() < deadline) await sleep(100)
    expect(await connections()).to.equal(0)
    socket.destroy()
  })

  it('when a request is answered, the header states that the idle connection stays open for 72 s', async () => {
    const { headers } = await fetch(`http://127.0.0.1:${port}/v0/time`)
    expect(headers.get('keep-alive')).to.equal('timeout=72')
  })

  it('when CONNECTION_IDLE_MS is not above the longest wait of a request, it is rejected by name', () => {
    expect(() => readConfig(apiEnv('postgres://here/db', { CONNECTION_IDLE_MS: '10000' }))).to.throw(
      ConfigError,
      'CONNECTION_IDLE_MS is "10000": expected more than 10000 ms, the longest wait of a request',
    )
  })
})
