import { expect } from 'chai'
import { TypedDataEncoder } from 'ethers'
import fc from 'fast-check'
import { after, before, describe, it } from 'mocha'
import { ORDER_TYPES } from '../../../domain/orders/order.ts'
import { binary, e18, future, perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import {
  createUser,
  type ExchangeFixture,
  type OrderTerms,
  setOracle,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'

describe('POST /v0/orders/validate', () => {
  let exchange: ExchangeFixture
  let alice: User
  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
  })
  after(() => exchange.stop())

  const validate = (user: User | null, body: unknown) =>
    exchange.send(user, 'POST', '/v0/orders/validate', body)

  it('when an order is valid, it returns its reservation and status and stores nothing', async () => {
    const { body, hash } = signedBody(alice, { price: '101', quantity: '2', leverage: 5 })
    const traces = await exchange.state()
    const { status, body: answer } = await validate(alice, body)
    expect(status, JSON.stringify(answer)).to.equal(200)
    expect(await exchange.state()).to.deep.equal(traces)
    expect(answer).to.include({
      valid: true,
      order_hash: hash,
      digest: hash,
      signer: alice.address,
      is_duplicate: false,
      status: 'OPEN',
      side: 'LONG',
      opening_quantity: 2,
      closing_quantity: 0,
      reserved_price: 101,
      margin: 40.4,
      fee_allowance: 0.101,
      fee_allowance_price: 101,
      reserved_margin: 40.501,
    })
    expect(answer.price_band).to.include({ lowest: 95, highest: 105, oracle_price: 100 })
    expect(answer.nearest_valid).to.include({
      lowest_price: 1,
      highest_price: 105,
      tick_size: 0.1,
      step_size: 0.001,
    })
    expect(answer.balance.reserved).to.equal(40.501)
    const placed = await exchange.send(alice, 'POST', '/v0/orders', body)
    expect(placed.body.balance).to.deep.equal(answer.balance)
    expect(placed.body.order).to.include({ order_hash: hash, reserved_margin: 40.501, status: 'OPEN' })
    expect((await validate(alice, body)).body).to.include({ is_duplicate: true, reserved_margin: 40.501 })
  })

  it('when the signature is omitted, it returns the digest and typed data to sign', async () => {
    const { body, hash } = signedBody(alice, {
      type: 'STOP_LIMIT',
      trigger: '110',
      price: '111',
      expiration: 2_000_000_000,
    })
    const { signature: _, signature_type: __, ...unsigned } = body
    const { status, body: answer } = await validate(alice, unsigned)
    expect(status, JSON.stringify(answer)).to.equal(200)
    expect(answer).to.include({ signer: null, digest: hash, status: 'PENDING_TRIGGER' })
    expect(answer.nearest_valid).to.include({ highest_price: 115.5 })
    const { domain, types, message } = answer.typed_data
    expect(TypedDataEncoder.hash(domain, types, message)).to.equal(hash)
  })

  it('when an order closes and opens a position, it returns both quantities', async () => {
    const bob = await createUser(exchange.db, 'bob')
    const matched = {
      matched_entry_notional: e18('100'),
      matched_folded_margin: e18('100'),
      matched_leverage: 1,
    }
    await withMirror(exchange.db)
      .insertInto('positions')
      .values({ user_id: bob.userId, market_id: 1, matched_size: 1000, ...matched })
      .execute()
    const { body } = await validate(bob, signedBody(bob, { side: 'SHORT', quantity: '1.5' }).body)
    expect(body).to.include({ opening_quantity: 0.5, closing_quantity: 1 })
    expect(body.nearest_valid).to.include({ lowest_price: 95 })
  })

  const allTerms = fc.record({
    market: fc.constantFrom(perpetual, future, binary),
    type: fc.constantFrom(...ORDER_TYPES),
    side: fc.constantFrom('LONG' as const, 'SHORT' as const),
    level: fc.integer({ min: 80, max: 120 }),
    trigger: fc.option(fc.integer({ min: 80, max: 120 }), { freq: 6 }),
    hundredths: fc.integer({ min: 0, max: 3000 }),
    leverage: fc.integer({ min: 0, max: 12 }),
    reduceOnly: fc.boolean(),
    expiration: fc.constantFrom(0, 0, 0, 1, 2_000_000_000),
  })
  const center = (market: typeof perpetual): bigint =>
    market === perpetual ? 100n : market === future ? 50n : 0n
  const human = (wei: bigint): string =>
    `${wei / 10n ** 18n}.${(wei % 10n ** 18n).toString().padStart(18, '0')}`.replace(/\.?0+$/, '') || '0'
  const priceAt = (market: typeof perpetual, level: number): string =>
    human(((market === binary ? e18('0.5') : center(market) * 10n ** 18n) * BigInt(level)) / 100n)

  it('when any order is validated and then placed, both answers agree', async () => {
    const carol = await createUser(exchange.db, 'carol', '400')
    const comparable = ({
      status,
      body,
    }: {
      status: number
      body: { details?: Record<string, unknown> }
    }) => {
      const { request_id: _, outcome: _outcome, ...details } = body.details ?? {}
      // `expected` is the current time, which differs between the two requests.
      if (details.code === 'ORDER_EXPIRED') delete details.expected
      return { status, ...details }
    }
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(allTerms, async ({ market, level, trigger, hundredths, ...rest }) => {
        const isMarket = rest.type.endsWith('MARKET')
        const terms: OrderTerms = {
          market,
          ...rest,
          price: isMarket ? '0' : priceAt(market, level),
          ...(trigger === null ? {} : { trigger: priceAt(market, trigger) }),
          quantity: human((e18('1') * BigInt(hundredths)) / 100n),
        }
        const { body } = signedBody(carol, terms)
        const traces = await exchange.state()
        const tried = await validate(carol, body)
        expect(await exchange.state()).to.deep.equal(traces)
        const placed = await exchange.send(carol, 'POST', '/v0/orders', body)
        // Only a command has an outcome; a dry run has no effect.
        expect(tried.body.details ?? {}).to.not.have.property('outcome')
        if (placed.status !== 200) expect(placed.body.details.outcome).to.equal('not_placed')
        expect(comparable(tried)).to.deep.equal(comparable(placed))
        seen.add(placed.body.details?.code ?? placed.body.order.status)
        if (placed.status !== 200) return
        expect(tried.body).to.include({
          order_hash: placed.body.order.order_hash,
          status: placed.body.order.status,
          reserved_margin_e18_raw: placed.body.order.reserved_margin_e18_raw,
        })
        expect(tried.body.balance).to.deep.equal(placed.body.balance)
        expect(BigInt(tried.body.margin_e18_raw) + BigInt(tried.body.fee_allowance_e18_raw)).to.equal(
          BigInt(tried.body.reserved_margin_e18_raw),
        )
      }),
      { seed: 7, numRuns: 120 },
    )
    for (const outcome of ['OPEN', 'PENDING_TRIGGER', 'PRICE_BAND', 'INSUFFICIENT_MARGIN', 'LEVERAGE_CAP'])
      expect([...seen]).to.include(outcome)
  }).timeout(60_000)

  it('when signature, fields or market state are invalid, it returns the error of a placement', async () => {
    const wrong = { ...signedBody(alice).body, price: '99' }
    expect((await validate(alice, wrong)).body.details).to.include({
      code: 'SIGNATURE_MISMATCH',
      field: 'signature',
    })
    expect(
      (await validate(alice, { ...signedBody(alice).body, sizing_intent: 'max' })).body.details,
    ).to.include({ code: 'UNKNOWN_FIELD', field: 'sizing_intent' })
    expect((await validate(alice, { market_id: 1 })).body.details).to.include({ code: 'MISSING_FIELD' })
    await setOracle(exchange.db, perpetual, '100', 1)
    expect((await validate(alice, signedBody(alice).body)).body.details.code).to.equal('ORACLE_STALE')
    await setOracle(exchange.db, perpetual, '100')
    expect((await validate(null, signedBody(alice).body)).status).to.equal(401)
  })
})
