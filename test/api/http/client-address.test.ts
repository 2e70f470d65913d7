import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { readConfig } from '../../../api/config.ts'
import { ConfigError } from '../../../service/environment.ts'
import { apiEnv, type ExchangeFixture, startExchange, startSecondApi } from '../support/exchange-fixture.ts'

/** Requests of one address in one window. */
const LIMIT = 5

describe('the client address that rate limits use', () => {
  const limits = { RATE_LIMIT_ADDRESS: '1', RATE_LIMIT_READS: '1', RATE_LIMIT_WINDOW_SECONDS: `${LIMIT}` }
  let first: ExchangeFixture
  const opened: ExchangeFixture[] = []

  before(async () => {
    first = await startExchange(limits)
    opened.push(first)
  })
  after(async () => {
    for (const exchange of opened) await exchange.stop()
  })

  async function trusting(proxies: string): Promise<ExchangeFixture> {
    const exchange = await startSecondApi(first, { ...limits, TRUST_PROXY: proxies })
    opened.push(exchange)
    return exchange
  }

  /** Statuses of two requests more than one address may send; `forwardedFor` is called for each. */
  async function statuses(
    { api }: ExchangeFixture,
    remoteAddress: string,
    forwardedFor: (n: number) => string,
  ): Promise<number[]> {
    const found: number[] = []
    for (let n = 0; n < LIMIT + 2; n++) {
      const headers = { 'x-forwarded-for': forwardedFor(n) }
      found.push((await api.app.inject({ url: '/v0/time', remoteAddress, headers })).statusCode)
    }
    return found
  }

  const LIMITED = [...Array(LIMIT).fill(200), 429, 429]
  const UNLIMITED = Array(LIMIT + 2).fill(200)

  it('when no proxy is trusted, it ignores X-Forwarded-For', async () => {
    expect(await statuses(first, '203.0.113.1', (n) => `198.51.100.${n}`)).to.deep.equal(LIMITED)
  })

  it('when one hop is trusted, it counts the address that the proxy appended', async () => {
    const exchange = await trusting('1')
    expect(await statuses(exchange, '10.0.0.1', (n) => `198.51.100.${n}`)).to.deep.equal(UNLIMITED)
    expect(await statuses(exchange, '10.0.0.1', () => '198.51.100.77')).to.deep.equal(LIMITED)
  })

  it('when one hop is trusted and the client forges earlier entries, it ignores them', async () => {
    const exchange = await trusting('1')
    const forged = (n: number): string => `192.0.2.${n}, nonsense, 198.51.100.78`
    expect(await statuses(exchange, '10.0.0.1', forged)).to.deep.equal(LIMITED)
  })

  it('when two hops are trusted, it counts the address that the outer proxy appended', async () => {
    const exchange = await trusting('2')
    const forged = (n: number): string => `192.0.2.${n}, 198.51.100.79, 10.0.0.2`
    expect(await statuses(exchange, '10.0.0.1', forged)).to.deep.equal(LIMITED)
  })

  it('when networks are trusted, it counts the newest address outside of them', async () => {
    const exchange = await trusting('10.0.0.0/8, 192.168.0.1,fd00::/8')
    const forged = (n: number): string => `192.0.2.${n}, 198.51.100.80, 192.168.0.1, fd00::7`
    expect(await statuses(exchange, '::ffff:10.1.2.3', forged)).to.deep.equal(LIMITED)
    expect(await statuses(exchange, '10.1.2.3', (n) => `198.51.100.${n}, 10.9.9.9`)).to.deep.equal(UNLIMITED)
  })

  it('when networks are trusted and a client connects from outside of them, it ignores X-Forwarded-For', async () => {
    const exchange = await trusting('10.0.0.0/8')
    expect(await statuses(exchange, '203.0.113.2', (n) => `198.51.100.${n}`)).to.deep.equal(LIMITED)
  })

  for (const [value, problem] of [
    ['on', 'contains "on"'],
    ['true', 'contains "true"'],
    ['-1', 'contains "-1"'],
    ['1.5', 'contains "1.5"'],
    ['17', 'is "17"'],
    ['10.0.0.0/33', 'contains "10.0.0.0/33"'],
    ['10.0.0.0/0', 'contains "10.0.0.0/0"'],
    ['fd00::/129', 'contains "fd00::/129"'],
    ['10.0.0.1,proxy.internal', 'contains "proxy.internal"'],
    ['10.0.0.1,', 'contains ""'],
  ] as const) {
    it(`when TRUST_PROXY is ${value}, it is rejected by name with what is valid`, () => {
      expect(() => readConfig(apiEnv('postgres://here/db', { TRUST_PROXY: value }))).to.throw(
        ConfigError,
        `TRUST_PROXY ${problem}: expected the number of proxies in front of the api (0 to 16), or a comma-separated list of their ` +
          'addresses and networks, such as 10.0.0.0/8',
      )
    })
  }
})
