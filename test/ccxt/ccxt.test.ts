/** The CCXT class against its recorded requests and responses. It trades in `test/e2e/programs.test.ts`. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import {
  type CcxtClass,
  type CcxtExchange,
  ccxtErrors,
  hasCcxt,
  loadClass,
  MISSING_CCXT,
} from '../../ccxt/build.ts'
import { REQUESTS, RESPONSES, STATIC_CREDENTIALS } from '../../ccxt/cases.ts'
import { privateKeySigner } from '../../client/signers/private-key-signer.ts'
import { buildOrder, type OrderTerms, orderSigner } from '../../client/signing.ts'
import { skipBecause } from '../e2e/support/guide.ts'

interface Recorded {
  readonly description: string
  readonly method: string
  readonly input: readonly unknown[]
  readonly url: string
  readonly output: string | null
  readonly answers?: readonly unknown[]
  readonly httpResponse: unknown
  readonly parsedResponse: unknown
}
interface Fixtures {
  readonly skipKeys: readonly string[]
  readonly methods: Readonly<Record<string, readonly Recorded[]>>
}

const read = (kind: string) => JSON.parse(readFileSync(`ccxt/static/${kind}/clearbatch.json`, 'utf8'))
const entriesOf = ({ methods }: Fixtures): readonly Recorded[] => Object.values(methods).flat()
const nameOf = ({ method, description }: { method: string; description: string }): string =>
  `${method}: ${description}`
/** JSON has no undefined: a null among the arguments is one that is left out. */
const argumentsOf = (input: readonly unknown[]) => input.map((value) => value ?? undefined)
/** Functions and undefined fields have no JSON. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

function bodyOf(text: string | null | undefined, skipKeys: readonly string[]): unknown {
  if (text === null || text === undefined) return null
  return Object.fromEntries(Object.entries(JSON.parse(text)).filter(([key]) => !skipKeys.includes(key)))
}

describe('the CCXT class', function () {
  this.timeout(120_000)
  const markets = read('markets')
  const requests: Fixtures = read('request')
  const responses: Fixtures = read('response')
  let Clearbatch: CcxtClass
  before(async () => {
    if (!hasCcxt()) return
    Clearbatch = await loadClass()
  })

  const create = (): CcxtExchange => {
    const exchange = new Clearbatch(STATIC_CREDENTIALS)
    exchange.setMarkets(markets)
    return exchange
  }

  /** Requests that a call sends; the answer is `answer`, or an error without one. */
  async function run(
    { method, input, answers = [] }: Pick<Recorded, 'method' | 'input' | 'answers'>,
    answer?: unknown,
  ) {
    const left = [...answers]
    const exchange = create()
    const sent: { url?: string; body?: string | undefined } = {}
    exchange.fetch = async (url, _method, _headers, body) => {
      Object.assign(sent, { url, body })
      if (left.length > 0) return structuredClone(left.shift())
      if (answer === undefined) throw new Error('no answer')
      return structuredClone(answer)
    }
    const result = await exchange[method]?.(...argumentsOf(input)).catch((error: Error) => error)
    return { ...sent, result }
  }

  it('when the recorded methods are called, they send the recorded requests', async function () {
    if (!hasCcxt()) return skipBecause(this, MISSING_CCXT)
    const entries = entriesOf(requests)
    expect(entries.map(nameOf).toSorted()).to.deep.equal(REQUESTS.map(nameOf).toSorted())
    for (const entry of entries) {
      const { url, body } = await run(entry)
      expect([url, bodyOf(body, requests.skipKeys)], nameOf(entry)).to.deep.equal([
        entry.url,
        bodyOf(entry.output, requests.skipKeys),
      ])
    }
  })

  it('when the recorded responses arrive, they are parsed as recorded', async function () {
    if (!hasCcxt()) return skipBecause(this, MISSING_CCXT)
    const entries = entriesOf(responses)
    expect(entries.map(nameOf).toSorted()).to.deep.equal(RESPONSES.map(nameOf).toSorted())
    for (const entry of entries) {
      const { result } = await run(entry, entry.httpResponse)
      expect(plain(result), nameOf(entry)).to.deep.equal(entry.parsedResponse)
    }
  })

  it('when an order is signed, its signature is the one of the TypeScript client, and its price is never worse than asked for', async function () {
    if (!hasCcxt()) return skipBecause(this, MISSING_CCXT)
    const { info } = markets['BTC/USDM:USDM']
    const sign = orderSigner(info, info.chain_id)
    const placements = entriesOf(requests).filter(({ method }) => method === 'createOrder')
    expect(placements).to.have.length(9)
    for (const { input, output } of placements) {
      const body = JSON.parse(output ?? '')
      const [, , side, , wanted] = input as [string, string, 'buy' | 'sell', number, number | null]
      if (wanted !== null) {
        const gain = side === 'buy' ? wanted - Number(body.price) : Number(body.price) - wanted
        expect(gain).to.be.within(-1e-9, 0.1)
      }
      const terms: OrderTerms = {
        side: body.side,
        type: body.order_type,
        quantity: BigInt(body.quantity_e18_raw),
        leverage: body.leverage,
        reduceOnly: body.reduce_only,
        expiration: body.expiration_seconds,
        ...(body.price === undefined ? {} : { price: body.price as string }),
        ...(body.trigger_price === undefined ? {} : { trigger: body.trigger_price as string }),
      }
      const order = buildOrder({
        market: info,
        terms,
        maker: STATIC_CREDENTIALS.walletAddress,
        salt: BigInt(body.salt),
        now: 0,
      })
      const { signature } = await sign(order, privateKeySigner(STATIC_CREDENTIALS.privateKey))
      expect(body.signature).to.equal(signature)
    }
  })

  it('when the exchange refuses, programs catch the error classes of CCXT', async function () {
    if (!hasCcxt()) return skipBecause(this, MISSING_CCXT)
    const errors = await ccxtErrors()
    const exchange = create()
    const refusal = (code: string, outcome: string, status: number): string => {
      const response = { message: '', details: { code, outcome } }
      const call = exchange.handleErrors as unknown as (...args: unknown[]) => unknown
      try {
        call.call(exchange, status, '', '', 'POST', {}, JSON.stringify(response), response, {}, '')
        return 'none'
      } catch (error) {
        return (error as Error).constructor.name
      }
    }
    const cases = [
      ['TICK_SIZE', 'not_placed', 400, 'InvalidOrder'],
      ['INSUFFICIENT_MARGIN', 'not_placed', 400, 'InsufficientFunds'],
      ['API_KEY_UNKNOWN', 'not_placed', 401, 'AuthenticationError'],
      ['READ_ONLY_KEY', 'not_placed', 403, 'PermissionDenied'],
      ['ORDER_NOT_FOUND', 'not_placed', 404, 'OrderNotFound'],
      ['CLIENT_ORDER_ID_USED', 'not_placed', 409, 'DuplicateOrderId'],
      ['RATE_LIMITED', 'not_placed', 429, 'RateLimitExceeded'],
      ['MARKET_NOT_OPEN', 'not_placed', 503, 'MarketClosed'],
      ['OUTCOME_UNKNOWN', 'unknown', 408, 'RequestTimeout'],
      ['INTERNAL', 'unknown', 500, 'RequestTimeout'],
      ['A_LATER_CODE', 'not_placed', 503, 'ExchangeNotAvailable'],
      ['A_LATER_CODE', 'not_placed', 400, 'ExchangeError'],
    ] as const
    for (const [code, outcome, status, name] of cases) {
      expect(refusal(code, outcome, status), code).to.equal(name)
      expect(errors).to.have.property(name)
    }
  })

  it('when its capabilities are listed, every one that CCXT knows over REST is true or false, and it has what it claims', async function () {
    if (!hasCcxt()) return skipBecause(this, MISSING_CCXT)
    const { has, ...exchange } = create()
    const base = Object.getPrototypeOf(Clearbatch.prototype.constructor).prototype
    const known = Object.keys(base.describe.call(exchange).has)
    const open = known.filter((name) => has[name] === undefined && !/Ws$|^(un)?watch/i.test(name))
    expect(open).to.deep.equal([])
    const claimed = Object.keys(has).filter(
      (name) => has[name] && /^(fetch|cancel|create|close|add|reduce|set)/.test(name),
    )
    expect(claimed.length).to.be.above(30)
    const missing = claimed.filter((name) => typeof Clearbatch.prototype[name] !== 'function')
    expect(missing).to.deep.equal([])
  })
})
