/** The api over TLS: requests, the live feed, the bound of connections, and what is no TLS. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { WebSocket } from 'ws'
import { skipBecause } from '../../e2e/support/guide.ts'
import { createAuthority, hasOpenssl, type TestAuthority } from '../../support/certificates.ts'
import { type ExchangeFixture, startExchange, startSecondApi } from '../support/exchange-fixture.ts'

const MOST = 3

describe('the api over TLS', function () {
  this.timeout(60_000)
  let first: ExchangeFixture
  let secured: ExchangeFixture
  let authority: TestAuthority
  let port: number
  const sockets: TLSSocket[] = []

  before(async function () {
    if (!hasOpenssl()) skipBecause(this, 'openssl is not installed')
    authority = createAuthority()
    const { certificate, key } = authority.issue('api')
    first = await startExchange()
    secured = await startSecondApi(first, {
      TLS_CERT_FILE: certificate,
      TLS_KEY_FILE: key,
      HTTP_CONNECTIONS_PER_ADDRESS: String(MOST),
    })
    await secured.api.app.listen({ port: 0, host: '127.0.0.1' })
    port = (secured.api.app.server.address() as AddressInfo).port
  })
  afterEach(async () => {
    for (const socket of sockets.splice(0)) {
      socket.destroy()
      if (!socket.closed) await once(socket, 'close')
    }
  })
  after(async () => {
    await secured?.stop()
    await first?.stop()
    authority?.remove()
  })

  async function open(): Promise<TLSSocket> {
    const socket = connectTls({ host: 'localhost', port, ca: readFileSync(authority.ca) })
    socket.on('error', () => {})
    sockets.push(socket)
    await once(socket, 'secureConnect')
    return socket
  }

  async function ask(socket: TLSSocket): Promise<string> {
    socket.write('GET /v0/time HTTP/1.1\r\nHost: x\r\n\r\n')
    const [data] = await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [''])])
    return String(data)
  }

  it('when a client opens more connections than an address may have, the further one is answered with 429', async () => {
    const own = []
    for (let at = 0; at < MOST; at++) own.push(await open())
    for (const socket of own) expect(await ask(socket)).to.match(/^HTTP\/1.1 200/)
    expect(await ask(await open())).to.match(/^HTTP\/1.1 429/)
    expect(await ask(own[0] as TLSSocket), 'connections within the limit go on').to.match(/^HTTP\/1.1 200/)
  })

  it('when connections become WebSockets, they no longer count as connections of the address', async () => {
    const feeds = []
    for (let at = 0; at <= MOST; at++) {
      const feed = new WebSocket(`wss://localhost:${port}/v0/ws`, { ca: readFileSync(authority.ca) })
      await once(feed, 'open')
      feeds.push(feed)
    }
    expect(await ask(await open())).to.match(/^HTTP\/1.1 200/)
    for (const feed of feeds) feed.terminate()
  })

  it('when a client speaks plain HTTP, it gets no answer of a route, and the server goes on', async () => {
    const plain = connect(port, '127.0.0.1').on('error', () => {})
    plain.write('GET /v0/time HTTP/1.1\r\nHost: x\r\n\r\n')
    plain.setEncoding('latin1')
    let received = ''
    plain.on('data', (data: string) => {
      received += data
    })
    await once(plain, 'close')
    expect(received).not.to.include('200 OK')
    expect(await ask(await open())).to.match(/^HTTP\/1.1 200/)
  })
})
