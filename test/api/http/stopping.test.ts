import { type AddressInfo, connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readConfig } from '../../../api/config.ts'
import { ConfigError } from '../../../service/environment.ts'
import { apiEnv, createUser, startExchange } from '../support/exchange-fixture.ts'

describe('a stop of the api', function () {
  this.timeout(60_000)
  it('when a request arrives during it, it is rejected with an error of the catalogue', async () => {
    const exchange = await startExchange()
    const { app } = exchange.api
    await app.listen({ port: 0, host: '127.0.0.1' })
    const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
    socket.setEncoding('utf8')
    const answer = new Promise<string>((resolve) => {
      let received = ''
      socket.on('data', (text: string) => {
        received += text
      })
      socket.on('close', () => resolve(received))
    })
    const closing = new Promise((resolve) => app.server.once('close', resolve))
    // The connection is not idle, because half of a request has arrived.
    socket.write('POST /v0/orders HTTP/1.1\r\nHost: here\r\n')
    await new Promise((resolve) => app.server.once('connection', resolve))
    await new Promise((resolve) => setTimeout(resolve, 100))
    const stopped = exchange.stop()
    await new Promise((resolve) => setTimeout(resolve, 500))
    socket.write('Content-Length: 0\r\n\r\n')

    const text = await answer
    expect(text).to.match(/^HTTP\/1.1 503 Service Unavailable\r\n/)
    expect(text).to.match(/\r\nconnection: close\r\n/i)
    const { message, details } = JSON.parse(text.slice(text.indexOf('\r\n\r\n')))
    expect(message).to.be.a('string')
    expect(details).to.include({ code: 'SHUTTING_DOWN', outcome: 'not_read', retryable: true })
    await stopped
    await closing
  })

  it('when a request waits for an outcome for ten minutes, a drain ends the wait and the answer says pending', async () => {
    const exchange = await startExchange({ FAUCET_WAIT_MS: '600000' })
    const { app } = exchange.api
    const origin = await app.listen({ port: 0, host: '127.0.0.1' })
    const { apiKey } = await createUser(exchange.db, 'waiting')
    const answer = fetch(`${origin}/v0/faucet`, {
      method: 'POST',
      headers: { authorization: `Key ${apiKey}` },
    })
    const requested = () => exchange.db.selectFrom('faucet_requests').select('status').execute()
    while ((await requested()).length === 0) await sleep(20)
    const stopped = exchange.stop()
    const response = await answer
    const { details } = (await response.json()) as { details: object }
    expect(response.status).to.equal(408)
    expect(details).to.include({ code: 'FAUCET_PENDING', outcome: 'unknown', retryable: true })
    await stopped
  })

  it('when no request waits for an outcome, the default bound of a drain is ten seconds and longer than every other wait', () => {
    const url = 'postgres://localhost/x'
    expect(readConfig(apiEnv(url)).drainMs).to.equal(10_000)
    expect(readConfig(apiEnv(url, { FAUCET_WAIT_MS: '60000' })).drainMs).to.equal(10_000)
    expect(readConfig(apiEnv(url, { READ_AFTER_WAIT_MS: '12000' })).drainMs).to.be.greaterThan(12_000)
    expect(() => readConfig(apiEnv(url, { DRAIN_MS: '5000' }))).to.throw(ConfigError, 'DRAIN_MS')
    expect(() => readConfig(apiEnv(url, { COMMAND_TIMEOUT_MS: '18000' }))).to.throw(ConfigError, 'DRAIN_MS')
  })
})
