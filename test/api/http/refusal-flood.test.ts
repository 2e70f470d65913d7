/** An address that goes on after its limit has rejected it, over real connections. */
import { Agent, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'

/** Requests of the address in a window. */
const LIMIT = 20
const FLOODERS = 4

describe('an address that floods', () => {
  let exchange: ExchangeFixture
  let port: number
  const agent = new Agent({ keepAlive: true, maxSockets: FLOODERS })

  before(async () => {
    const env = { RATE_LIMIT_ADDRESS: '1', RATE_LIMIT_WINDOW_SECONDS: String(LIMIT), TRUST_PROXY: '1' }
    exchange = await startExchange(env)
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    port = (exchange.api.app.server.address() as AddressInfo).port
  })
  after(async () => {
    agent.destroy()
    await exchange.stop()
  })

  /** Status, error details and the time until the answer. */
  const ask = (path: string, { method = 'GET', ip = '198.51.100.7' } = {}) =>
    new Promise<{ status: number | undefined; details: Record<string, unknown>; ms: number }>(
      (resolve, reject) => {
        const start = performance.now()
        const headers = { 'x-forwarded-for': ip }
        const sent = request({ port, path, method, agent, headers }, (response) => {
          let text = ''
          response.on('data', (data) => {
            text += data
          })
          response.on('end', () => {
            const { details = {} } = text === '' ? {} : JSON.parse(text)
            resolve({ status: response.statusCode, details, ms: performance.now() - start })
          })
        })
        sent.on('error', reject)
        sent.end()
      },
    )

  it('when it was rejected as often as its limit allows requests, each further answer is delayed', async () => {
    for (let at = 0; at < LIMIT; at++) expect((await ask('/v0/time')).status).to.equal(200)
    for (let at = 0; at < LIMIT; at++) expect((await ask('/v0/time')).status).to.equal(429)
    const start = performance.now()
    const answers = await Promise.all(Array.from({ length: 3 * FLOODERS }, () => ask('/v0/time')))
    // Each connection has one answer per pause.
    expect(performance.now() - start).to.be.above(3 * 190)
    for (const { status, details } of answers) {
      expect(status).to.equal(429)
      expect(details).to.include({ code: 'RATE_LIMITED', scope: 'address', retryable: true })
      expect(details).to.not.have.property('outcome')
    }
    const command = await ask('/v0/orders', { method: 'POST' })
    expect(command.details).to.include({ code: 'RATE_LIMITED', outcome: 'not_read' })
  })

  it('when an address floods, its cancels, probes and other addresses are answered as before', async () => {
    expect((await ask('/v0/orders/cancel/all', { method: 'POST' })).status).to.equal(401)
    expect((await ask('/health/live')).status).to.equal(200)
    expect((await ask('/v0/time', { ip: '198.51.100.8' })).status).to.equal(200)
  })
})
