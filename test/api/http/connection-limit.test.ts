/** The bound of the connections of an address, over real sockets. */
import { EventEmitter, once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { createConnectionLimit } from '../../../api/http/connection-limit.ts'
import { networkOf } from '../../../api/http/network.ts'
import { LiveClient } from '../../support/live-client.ts'
import {
  createUser,
  type Env,
  type ExchangeFixture,
  signedBody,
  startExchange,
  startSecondApi,
} from '../support/exchange-fixture.ts'

const MOST = 5

describe('the connections of an address', () => {
  let first: ExchangeFixture
  const opened: ExchangeFixture[] = []
  const sockets: Socket[] = []

  before(async () => {
    first = await startExchange()
  })
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    for (const exchange of opened.splice(0)) await exchange.stop()
  })
  after(() => first.stop())

  async function listening(env: Env = {}): Promise<number> {
    const exchange = await startSecondApi(first, { HTTP_CONNECTIONS_PER_ADDRESS: String(MOST), ...env })
    opened.push(exchange)
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    return (exchange.api.app.server.address() as AddressInfo).port
  }

  async function open(port: number): Promise<Socket> {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    sockets.push(socket)
    await once(socket, 'connect')
    return socket
  }

  /** The text of the answer to one request on the connection; empty if it was closed. */
  async function ask(socket: Socket, headers = ''): Promise<string> {
    socket.write(`GET /v0/time HTTP/1.1\r\nHost: x\r\n${headers}\r\n`)
    const [data] = await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [''])])
    return String(data)
  }

  it('when an address has the maximum, a further connection is answered 429 and closed, and one that ends makes room', async () => {
    const port = await listening()
    const own = []
    for (let at = 0; at < MOST; at++) own.push(await open(port))
    for (const socket of own) expect(await ask(socket)).to.match(/^HTTP\/1.1 200/)
    const further = await open(port)
    const answer = await ask(further)
    expect(answer).to.match(/^HTTP\/1.1 429/)
    expect(answer.toLowerCase()).to.include('connection: close').and.to.include('retry-after: 1')
    const { details } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))
    expect(details).to.include({
      code: 'TOO_MANY_CONNECTIONS',
      scope: 'address',
      field: 'connections',
      expected: `at most ${MOST} connections`,
      received: MOST + 1,
      retryable: true,
    })
    expect(details, 'a read has no outcome').to.not.have.property('outcome')
    if (!further.closed) await once(further, 'close')
    expect(await ask(own[0] as Socket), 'connections within the limit go on').to.match(/^HTTP\/1.1 200/)
    own[1]?.destroy()
    // The server learns of the end a moment later.
    let answered = ''
    while (!/^HTTP\/1.1 200/.test(answered)) answered = await ask(await open(port))
  })

  it('when a command arrives on a connection beyond the limit, it is not read, and its outcome says so', async () => {
    const port = await listening()
    for (let at = 0; at < MOST; at++) await open(port)
    const alice = await createUser(first.db, 'commanding')
    const text = JSON.stringify(signedBody(alice).body)
    const further = await open(port)
    further.write(
      `POST /v0/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Key ${alice.apiKey}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
    )
    const [data] = await once(further, 'data')
    expect(String(data)).to.include('"code":"TOO_MANY_CONNECTIONS"').and.to.include('"outcome":"not_read"')
    const stored = await first.db
      .selectFrom('orders')
      .select('hash')
      .where('user_id', '=', alice.userId)
      .execute()
    expect(stored).to.deep.equal([])
  })

  it('when connections beyond the limit send nothing, they are closed', async () => {
    const port = await listening()
    for (let at = 0; at < MOST; at++) await open(port)
    const beyond = []
    for (let at = 0; at < 2 * MOST; at++) beyond.push(await open(port))
    await Promise.all(beyond.map((socket) => socket.closed || once(socket, 'close')))
  })

  it('when a connection has become a WebSocket, it does not count', async () => {
    const port = await listening()
    const clients = []
    for (let at = 0; at < MOST + 2; at++) clients.push(await LiveClient.open(`http://127.0.0.1:${port}`))
    expect(await ask(await open(port))).to.match(/^HTTP\/1.1 200/)
    await Promise.all(clients.map((client) => client.close()))
  })

  it('when connections come from a trusted proxy, their number is not limited', async () => {
    for (const TRUST_PROXY of ['1', '127.0.0.0/8']) {
      const port = await listening({ TRUST_PROXY })
      for (let at = 0; at < 3 * MOST; at++)
        expect(await ask(await open(port), 'X-Forwarded-For: 198.51.100.7\r\n')).to.match(/^HTTP\/1.1 200/)
    }
  })

  it('when a client behind a trusted proxy has the maximum of unanswered requests, further ones are answered 429', async () => {
    const port = await listening({ TRUST_PROXY: '1' })
    const alice = await createUser(first.db, 'alice')
    const { shard_id, shard_seq } = (await first.place(alice)).body.read_after
    const query = `read_after_shard_id=${shard_id}&read_after_shard_seq=${Number(shard_seq) + 1_000}`
    /** A read that waits for a write that does not happen. */
    const wait = async (ip: string): Promise<void> => {
      const socket = await open(port)
      const path = `/v0/orderbook/by-market/1?${query}`
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${ip}\r\n\r\n`)
    }
    for (let at = 0; at < MOST; at++) await wait('198.51.100.7')
    await new Promise((resolve) => setTimeout(resolve, 200))
    const askFrom = async (ip: string) => ask(await open(port), `X-Forwarded-For: ${ip}\r\n`)
    expect(await askFrom('198.51.100.7'))
      .to.match(/^HTTP\/1.1 429/)
      .and.to.include('TOO_MANY_CONNECTIONS')
    expect(await askFrom('198.51.100.8')).to.match(/^HTTP\/1.1 200/)
  })

  it('when a client behind a trusted proxy sends the maximum of orders whose bodies do not arrive, a further request is answered 429', async () => {
    const port = await listening({ TRUST_PROXY: '1' })
    const alice = await createUser(first.db, 'alice behind a proxy')
    const begin = (socket: Socket, length: number) =>
      socket.write(
        `POST /v0/orders HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 198.51.100.9\r\nAuthorization: Key ${alice.apiKey}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`,
      )
    // The framework answers the first order, and the order lane later ones.
    const placing = await open(port)
    for (let order = 0; order < 2; order++) {
      const text = JSON.stringify(signedBody(alice).body)
      begin(placing, text.length)
      placing.write(text)
      expect(String((await once(placing, 'data'))[0])).to.match(/^HTTP\/1.1 200/)
    }
    for (let at = 0; at < MOST; at++) begin(await open(port), 1_000)
    await new Promise((resolve) => setTimeout(resolve, 200))
    const further = await ask(await open(port), 'X-Forwarded-For: 198.51.100.9\r\n')
    expect(further)
      .to.match(/^HTTP\/1.1 429/)
      .and.to.include('TOO_MANY_CONNECTIONS')
  })

  it('when a proxy forwards addresses with their ports, the connections of one address count together', () => {
    for (const [one, other] of [
      ['198.51.100.7:1001', '198.51.100.7'],
      ['198.51.100.7:1001', '198.51.100.7:1002'],
      ['[2001:db8:1:2::1]:1001', '2001:db8:1:2:ffff::9'],
      ['[::ffff:198.51.100.7]:1001', '198.51.100.7:1002'],
    ] as const)
      expect(networkOf(one), one).to.equal(networkOf(other))
  })

  it('when addresses are of one /64 network of IPv6, they count together', () => {
    const server = new EventEmitter()
    const limit = createConnectionLimit({ perAddress: 1, trusts: () => false })
    limit.guard({ server, addHook: () => {} } as never)
    const isRefused = (remoteAddress: string): boolean => {
      const socket = Object.assign(new EventEmitter(), { remoteAddress, destroy() {} })
      server.emit('connection', socket)
      const refused = limit.isRefused({ socket } as never)
      if (refused) socket.emit('close')
      return refused
    }
    expect(isRefused('2001:db8:1:2::1')).to.equal(false)
    expect(isRefused('2001:db8:1:2:ffff::9')).to.equal(true)
    expect(isRefused('2001:db8:1:3::1')).to.equal(false)
    expect(isRefused('192.0.2.1')).to.equal(false)
    expect(isRefused('::ffff:192.0.2.1'), 'the same address').to.equal(true)
  })
})
