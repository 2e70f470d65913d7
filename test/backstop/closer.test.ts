/** One turn of the backstop's process against answers of the exchange that a test sets; `test/e2e/backstop.test.ts` has the real ones. */
import { expect } from 'chai'
import { getBytes, id } from 'ethers'
import { beforeEach, describe, it } from 'mocha'
import { closePositions } from '../../backstop/closer.ts'
import { orderSignerOf } from '../../backstop/compose.ts'
import { readConfig } from '../../backstop/config.ts'
import { Client } from '../../client/client.ts'
import { sessionSigner } from '../../client/signers/session-key-signer.ts'
import type { Millis } from '../../domain/units.ts'
import { ConfigError } from '../../service/environment.ts'
import { SILENT_LOGGER } from '../keeper/support/market-fixture.ts'

const ACCOUNT = `0x${'ab'.repeat(20)}`
const NOW = 1_800_000_000_000 as Millis
const raw = (amount: number): string => (BigInt(Math.round(amount * 1_000)) * 10n ** 15n).toString()

interface Body {
  readonly market_id: number
  readonly [field: string]: unknown
}

describe('a turn of the backstop', () => {
  let markets: ReturnType<typeof marketOf>[]
  let sizes: Map<number, number>
  let live: { market_id: number; order_hash: string; forced: boolean }[]
  /** Placed and cancelled, in order. */
  let log: string[]
  let placed: Body[]
  /** Markets whose orderbook fails. */
  let broken: Set<number>

  const marketOf = (marketId: number, changes: Record<string, unknown> = {}) => ({
    ...{
      market_id: marketId,
      symbol: `M${marketId}`,
      type: 'perpetual',
      trading_enabled: true,
      chain_id: 6343,
    },
    trader_address: `0x${'11'.repeat(20)}`,
    ...{ tick_size_e18_raw: raw(0.1), step_size_e18_raw: raw(0.001) },
    ...{ min_order_size_e18_raw: raw(0.01), max_order_size_e18_raw: raw(1_000) },
    ...{ oracle_price_e18_raw: raw(100), oracle: { status: 'live' } },
    ...changes,
  })

  beforeEach(() => {
    markets = [marketOf(1), marketOf(2)]
    sizes = new Map([
      [1, 10],
      [2, -5],
    ])
    live = []
    log = []
    placed = []
    broken = new Set()
  })

  const level = (price: number, quantity: number) => ({
    ...{ price_e18_raw: raw(price), quantity_e18_raw: raw(quantity) },
  })

  function answer(path: string, body: Body): unknown {
    const [route = ''] = path.split('?')
    const market = Number(route.split('/').at(-1))
    if (route === '/v0/markets') return markets
    if (route.startsWith('/v0/markets/')) return markets.find(({ market_id }) => market_id === market)
    if (route.startsWith('/v0/users/')) return { user_id: 7 }
    if (route.startsWith('/v0/positions/'))
      return {
        positions: [...sizes].map(([market_id, size]) => ({
          ...{ market_id, size_e18_raw: raw(size), pending_size_e18_raw: raw(0) },
        })),
      }
    if (route.startsWith('/v0/orders/by-user/')) return { orders: live }
    if (route.startsWith('/v0/orderbook/') && !broken.has(market))
      return { long_levels: [level(99.9, 50)], short_levels: [level(100.1, 2)] }
    if (route.startsWith('/v0/orders/cancel/')) {
      log.push(`cancel ${route.split('/').at(-1)}`)
      return { cancelled: true }
    }
    if (route !== '/v0/orders') return null
    log.push(`place in ${body.market_id}`)
    placed.push(body)
    return { order: { order_hash: '0x01' } }
  }

  async function turn(): Promise<string | null> {
    const fetchAnswer = async (url: unknown, init?: { body?: unknown }): Promise<Response> => {
      const { pathname, search } = new URL(String(url))
      const found = answer(pathname + search, JSON.parse(String(init?.body ?? '{}')))
      return found === null || found === undefined
        ? Response.json({ message: 'gone', details: { code: 'GONE' } }, { status: 404 })
        : Response.json(found)
    }
    const client = new Client({
      ...{ baseUrl: 'http://exchange.test', apiKey: 'cb_key', address: ACCOUNT },
      orderSigner: sessionSigner(id('session key')),
      http: { fetch: fetchAnswer as typeof fetch, budgetMs: 100 },
    })
    const rules = { share: 100_000, depthShare: 250_000, bound: 5_000 }
    const ports = { client, rules, intervalMs: 5_000, clock: { now: () => NOW }, logger: SILENT_LOGGER }
    return closePositions({ ...ports, onOrder: () => {} }).then(
      () => null,
      (error: Error) => error.message,
    )
  }

  it('when it has positions in two markets, one reduce-only order each is placed, which expires after three intervals', async () => {
    expect(await turn()).to.equal(null)
    const terms = { order_type: 'LIMIT', reduce_only: true, expiration_seconds: NOW / 1_000 + 15 }
    expect(placed).to.have.length(2)
    expect(placed[0]).to.include({ ...terms, market_id: 1, side: 'SHORT', quantity_e18_raw: raw(1) })
    expect(placed[1]).to.include({ ...terms, market_id: 2, side: 'LONG', quantity_e18_raw: raw(0.5) })
    expect(placed.map(({ price }) => Number(price))).to.deep.equal([99.5, 100.5])
  })

  it('when an order of the last turn is live, it is cancelled first; a forced order of a liquidation is not', async () => {
    live = [
      { market_id: 1, order_hash: '0xold', forced: false },
      { market_id: 1, order_hash: '0xforced', forced: true },
    ]
    expect(await turn()).to.equal(null)
    expect(log).to.deep.equal(['cancel 0xold', 'place in 1', 'place in 2'])
  })

  for (const [what, changes] of [
    ['does not trade', { trading_enabled: false }],
    ['has a halted price', { oracle: { status: 'halted' } }],
    ['has a stale price', { oracle: { status: 'stale' } }],
    ['has no price', { oracle: null, oracle_price_e18_raw: null }],
  ] as const) {
    it(`when a market ${what}, what is left there is cancelled, and only the other market gets an order`, async () => {
      markets = [marketOf(1, changes), marketOf(2)]
      live = [{ market_id: 1, order_hash: '0xold', forced: false }]
      expect(await turn()).to.equal(null)
      expect(log).to.deep.equal(['cancel 0xold', 'place in 2'])
    })
  }

  it('when one market fails, all other markets have their turn, and the turn fails', async () => {
    broken = new Set([1])
    expect(await turn()).to.include('gone')
    expect(log).to.deep.equal(['place in 2'])
  })

  it('when it is flat, nothing is placed', async () => {
    sizes = new Map([[1, 0]])
    expect(await turn()).to.equal(null)
    expect(log).to.deep.equal([])
  })
})

describe('the environment of the backstop', () => {
  const env = (changes: Record<string, string> = {}) => ({
    ...{ BASE_URL: 'http://127.0.0.1:8080', ADDRESS_BACKSTOP: ACCOUNT, BACKSTOP_API_KEY: 'cb_key' },
    BACKSTOP_SESSION_KEY: id('session key'),
    ...changes,
  })

  it('when everything is set, the rules have their defaults', () => {
    const { rules, intervalMs, account } = readConfig(env())
    expect(rules).to.deep.equal({ share: 100_000, depthShare: 250_000, bound: 5_000 })
    expect([intervalMs, account]).to.deep.equal([5_000, ACCOUNT])
  })

  it('when its session key signs an order, the signature is that of the client with this key', async () => {
    const { sessionKey } = readConfig(env())
    const digest = getBytes(id('digest'))
    expect(await orderSignerOf(sessionKey).signDigest(digest)).to.equal(
      sessionSigner(id('session key')).signDigest(digest),
    )
  })

  it('when a variable is missing or invalid, the error names it and never the key', () => {
    for (const [name, value] of [
      ['BASE_URL', 'ftp://x'],
      ['ADDRESS_BACKSTOP', '0x1'],
      ['BACKSTOP_SESSION_KEY', '0x1234'],
      ['BACKSTOP_SESSION_KEY_FILE', '/nowhere/key'],
      ['BACKSTOP_API_KEY', ''],
      ['CLOSE_SHARE', '0'],
      ['CLOSE_BOUND', '1000001'],
    ] as const)
      expect(() => readConfig(env({ [name]: value })), name)
        .to.throw(ConfigError, name)
        .with.property('message')
        .that.does.not.include('1234')
  })
})
