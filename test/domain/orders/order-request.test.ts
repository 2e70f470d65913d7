import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { priceOf, quantityOf } from '../../../domain/market/market.ts'
import { type OrderRequest, toOrder } from '../../../domain/orders/order-request.ts'
import type { Address, Quantity } from '../../../domain/units.ts'
import { binary, e18, markets, perpetual, price } from '../../support/markets.ts'

const maker = `0x${'0a'.repeat(20)}` as Address
const aRequest = (changes: Partial<OrderRequest> = {}): OrderRequest => ({
  marketId: perpetual.marketId,
  maker,
  side: 'LONG',
  type: 'LIMIT',
  price: price('100'),
  quantity: e18('1') as Quantity,
  trigger: price('0'),
  leverage: 10,
  reduceOnly: false,
  expiration: 0,
  salt: 7n,
  ...changes,
})

describe('toOrder', () => {
  it('when the request is on the grid, it returns ticks and steps and copies the other fields', () => {
    expect(toOrder(perpetual, aRequest())).to.deep.equal({
      ok: true,
      value: { ...aRequest(), price: 1000, quantity: 1000, trigger: 0 },
    })
  })

  it('when any order is converted to a request and back, it is the same order', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...markets),
        fc.integer({ min: 10, max: 999 }),
        fc.integer({ min: 1, max: 1e6 }),
        (spec, p, q) => {
          const request = {
            ...aRequest({ leverage: 1 }),
            price: priceOf(spec, p as never),
            quantity: quantityOf(spec, q as never),
          }
          const verdict = toOrder(spec, request)
          expect(verdict.ok && [verdict.value.price, verdict.value.quantity]).to.deep.equal([p, q])
        },
      ),
    )
  })

  const stop = { type: 'STOP_LIMIT' as const, trigger: price('101') }
  const table: readonly (readonly [string, Partial<OrderRequest>, string, string, string | undefined])[] = [
    ['leverage 0', { leverage: 0 }, 'LEVERAGE_CAP', 'leverage', '1'],
    ['leverage 21', { leverage: 21 }, 'LEVERAGE_CAP', 'leverage', '20'],
    ['leverage 2.5', { leverage: 2.5 }, 'LEVERAGE_CAP', 'leverage', '2'],
    ['leverage NaN', { leverage: Number.NaN }, 'LEVERAGE_CAP', 'leverage', '1'],
    ['salt 2^53', { salt: 2n ** 53n }, 'SALT_RANGE', 'salt', undefined],
    ['salt -1', { salt: -1n }, 'SALT_RANGE', 'salt', undefined],
    [
      'an expiration in milliseconds',
      { expiration: 1_900_000_000_000 },
      'EXPIRATION_RANGE',
      'expiration_seconds',
      undefined,
    ],
    ['an expiration of -1', { expiration: -1 }, 'EXPIRATION_RANGE', 'expiration_seconds', undefined],
    [
      'a take-profit that may open',
      { ...stop, type: 'TAKE_PROFIT_LIMIT' },
      'REDUCE_ONLY_REQUIRED',
      'reduce_only',
      'true',
    ],
    [
      'a stop-loss that may open',
      { ...stop, type: 'STOP_LOSS_LIMIT' },
      'REDUCE_ONLY_REQUIRED',
      'reduce_only',
      'true',
    ],
    ['a market order with a price', { type: 'MARKET' }, 'PRICE_NOT_ALLOWED', 'price', '0'],
    ['a stop-market order with a price', { ...stop, type: 'STOP_MARKET' }, 'PRICE_NOT_ALLOWED', 'price', '0'],
    ['a limit order without a price', { price: price('0') }, 'PRICE_REQUIRED', 'price', undefined],
    ['a price between ticks', { price: price('100.06') }, 'TICK_SIZE', 'price', '100.1'],
    ['a price half between ticks', { price: price('100.05') }, 'TICK_SIZE', 'price', '100'],
    ['a price below the minimum', { price: price('0.9') }, 'MIN_ORDER_PRICE', 'price', '1'],
    [
      'a price beyond 40 bits',
      { price: price('109951162777.6') },
      'MAX_ORDER_PRICE',
      'price',
      '109951162777.5',
    ],
    ['a trigger on a limit order', { trigger: price('1') }, 'TRIGGER_NOT_ALLOWED', 'trigger_price', '0'],
    ['a stop without a trigger', { type: 'STOP_LIMIT' }, 'TRIGGER_REQUIRED', 'trigger_price', undefined],
    ['a trigger between ticks', { ...stop, trigger: price('100.01') }, 'TICK_SIZE', 'trigger_price', '100'],
    ['no quantity', { quantity: 0n as Quantity }, 'QUANTITY_REQUIRED', 'quantity', '0.01'],
    ['a quantity between steps', { quantity: e18('1.0009') as Quantity }, 'STEP_SIZE', 'quantity', '1'],
    ['a quantity below a step', { quantity: 1n as Quantity }, 'STEP_SIZE', 'quantity', '0.01'],
    [
      'a quantity above the maximum',
      { quantity: e18('10000.001') as Quantity },
      'MAX_ORDER_SIZE',
      'quantity',
      '10000',
    ],
  ]
  for (const [name, changes, code, field, nearestValid] of table) {
    it(`when there is ${name}, it refuses with ${code}`, () => {
      const verdict = toOrder(perpetual, aRequest(changes))
      if (verdict.ok) throw new Error('accepted')
      expect(verdict.refusal).to.include({ code, field })
      expect(verdict.refusal.nearestValid).to.equal(nearestValid)
      expect(verdict.refusal.expected).to.be.a('string').and.not.equal('')
    })
  }

  it('when a binary price is 1, it refuses and suggests one tick below', () => {
    const verdict = toOrder(binary, { ...aRequest({ leverage: 1 }), price: price('1') })
    expect(verdict).to.have.nested.property('refusal.nearestValid', '0.999')
  })

  it('when a refusal suggests a valid value, that value is accepted', () => {
    const anyPrice = fc.bigInt({ min: 1n, max: e18('200') })
    fc.assert(
      fc.property(anyPrice, (p) => {
        const verdict = toOrder(perpetual, aRequest({ price: p as never }))
        if (verdict.ok) return
        const nearest = price(verdict.refusal.nearestValid as string)
        expect(toOrder(perpetual, aRequest({ price: nearest })).ok).to.equal(true)
      }),
    )
  })
})
