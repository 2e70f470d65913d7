import { expect } from 'chai'
import { describe, it } from 'mocha'
import { priceOf } from '../../../domain/market/market.ts'
import {
  type AdmissionInput,
  admit,
  MAX_OPEN_ORDERS,
  type RestingTotals,
  restingTotals,
} from '../../../domain/orders/admission.ts'
import type { Order } from '../../../domain/orders/order.ts'
import { reservationsOf } from '../../../domain/orders/reservation.ts'
import { applyFill, FLAT, openingBasis, type Position } from '../../../domain/positions/position.ts'
import type { Address, Millis, Quote, Seq } from '../../../domain/units.ts'
import { binary, index, perpetual, price, quote, rate, steps, ticks } from '../../support/markets.ts'

const nothing: RestingTotals = {
  count: 0,
  reducing: steps(0),
  openable: steps(0),
  openNotional: quote('0'),
  reserved: quote('0'),
}
const at = (changes: Partial<AdmissionInput> = {}): AdmissionInput => ({
  spec: perpetual,
  mode: 'open',
  oracle: price('100'),
  now: 1_000_000 as Millis,
  position: FLAT,
  fundingIndex: index(0n),
  resting: nothing,
  available: quote('1000'),
  ...changes,
})
const anOrder = (changes: object = {}): Order =>
  ({
    marketId: perpetual.marketId,
    maker: `0x${'0a'.repeat(20)}` as Address,
    side: 'LONG',
    type: 'LIMIT',
    price: 1000,
    quantity: 1000,
    trigger: 0,
    leverage: 10,
    reduceOnly: false,
    expiration: 0,
    salt: 1n,
    ...changes,
  }) as Order
const position = (size: number, margin = '10'): Position => ({
  size: steps(size),
  entryNotional: ((BigInt(Math.abs(size)) * quote('100')) / 1000n) as Quote,
  foldedMargin: quote(margin),
  leverage: 10,
})

describe('admit', () => {
  it('when the order is a limit order, it is OPEN and reserves margin and fee allowance at the limit', () => {
    expect(admit(anOrder(), at())).to.deep.equal({
      ok: true,
      value: { status: 'OPEN', openable: 1000, reservedPrice: 1000, reserved: quote('10.05') },
    })
  })

  it('when the order is a market order, it reserves at the upper edge of the band', () => {
    const verdict = admit(anOrder({ type: 'MARKET', price: 0 }), at())
    expect(verdict).to.have.nested.property('value.reserved', quote('10.5525'))
  })

  it('when the order is conditional, it is PENDING_TRIGGER and reserves its margin', () => {
    const verdict = admit(anOrder({ type: 'STOP_MARKET', price: 0, trigger: 1200 }), at())
    expect(verdict).to.deep.include({ ok: true }).and.have.nested.property('value.status', 'PENDING_TRIGGER')
    expect(verdict).to.have.nested.property('value.reserved', quote('12.663'))
  })

  it('when the order only reduces, it reserves nothing, whatever balance is available', () => {
    const verdict = admit(
      anOrder({ side: 'SHORT' }),
      at({ position: position(1000), available: quote('-5') }),
    )
    expect(verdict).to.have.nested.property('value.reserved', 0n)
  })

  it('when the order flips the position, it reserves for the steps that open', () => {
    const verdict = admit(anOrder({ side: 'SHORT', quantity: 1500 }), at({ position: position(1000) }))
    expect(verdict).to.have.nested.property('value.openable', 500)
  })

  it('when resting orders have fullyUsed the capacity, it reserves for the whole order', () => {
    const fullyUsed = { ...nothing, reducing: steps(1000) }
    const verdict = admit(anOrder({ side: 'SHORT' }), at({ position: position(1000), resting: fullyUsed }))
    expect(verdict).to.have.nested.property('value.openable', 1000)
  })

  const long = position(1000)
  const table: readonly (readonly [string, object, Partial<AdmissionInput>, string, string | undefined])[] = [
    ['a cancel-only market', {}, { mode: 'cancel_only' }, 'MARKET_NOT_OPEN', undefined],
    ['a halted market', {}, { mode: 'halted' }, 'MARKET_NOT_OPEN', undefined],
    ['a settled market', {}, { mode: 'settled' }, 'MARKET_ENDED', undefined],
    ['no fresh oracle price', {}, { oracle: null }, 'ORACLE_STALE', undefined],
    ['an expiration in the past', { expiration: 999 }, {}, 'ORDER_EXPIRED', undefined],
    ['a quantity below the minimum', { quantity: 9 }, {}, 'MIN_ORDER_SIZE', '0.01'],
    [
      'a reduce-only below it that is not the whole',
      { quantity: 5, side: 'SHORT', reduceOnly: true },
      { position: position(6) },
      'MIN_ORDER_SIZE',
      '0.01',
    ],
    [
      'a plain close below it',
      { quantity: 5, side: 'SHORT' },
      { position: position(5) },
      'MIN_ORDER_SIZE',
      '0.01',
    ],
    [
      'a full close of nothing',
      { quantity: 5, side: 'SHORT', reduceOnly: true },
      {},
      'MIN_ORDER_SIZE',
      '0.01',
    ],
    ['a buy above the band', { price: 1051 }, {}, 'PRICE_BAND', '105'],
    ['a sell below the band', { side: 'SHORT', price: 949 }, {}, 'PRICE_BAND', '95'],
    [
      'a stop-limit beyond the band at its trigger',
      { type: 'STOP_LIMIT', trigger: 1200, price: 1261 },
      {},
      'PRICE_BAND',
      '126',
    ],
    ['reduce-only without a position', { reduceOnly: true }, {}, 'REDUCE_ONLY_NO_POSITION', undefined],
    [
      'reduce-only on the position’s side',
      { reduceOnly: true },
      { position: long },
      'REDUCE_ONLY_NO_POSITION',
      undefined,
    ],
    [
      'too many open orders',
      {},
      { resting: { ...nothing, count: MAX_OPEN_ORDERS } },
      'OPEN_ORDER_LIMIT',
      undefined,
    ],
    ['a position below IMR', {}, { position: position(1000, '4.4') }, 'MARGIN_REQUIREMENT', undefined],
    [
      'a flip of a position below IMR',
      { side: 'SHORT', quantity: 1001 },
      { position: position(1000, '4.4') },
      'MARGIN_REQUIREMENT',
      undefined,
    ],
    [
      'more notional than a slot holds',
      { quantity: 9_000_000 },
      { resting: { ...nothing, openNotional: quote('2475880000') } },
      'POSITION_LIMIT',
      undefined,
    ],
    [
      'more steps than a slot holds',
      {},
      { resting: { ...nothing, openable: steps(2 ** 52) } },
      'POSITION_LIMIT',
      undefined,
    ],
    [
      'more margin than a slot holds',
      {},
      { resting: { ...nothing, reserved: quote('1237940039') } },
      'POSITION_LIMIT',
      undefined,
    ],
    ['too little margin', {}, { available: quote('10.04') }, 'INSUFFICIENT_MARGIN', '0.999'],
    ['no margin', {}, { available: quote('0') }, 'INSUFFICIENT_MARGIN', undefined],
    [
      'too little margin for what opens',
      { side: 'SHORT', quantity: 1500 },
      { position: long, available: quote('0') },
      'INSUFFICIENT_MARGIN',
      '1',
    ],
  ]
  for (const [name, order, context, code, nearestValid] of table) {
    it(`when there is ${name}, it refuses with ${code}`, () => {
      const verdict = admit(anOrder(order), at(context))
      if (verdict.ok) throw new Error('accepted')
      expect(verdict.refusal).to.include({ code })
      expect(verdict.refusal.nearestValid).to.equal(nearestValid)
    })
  }

  const accepted: readonly (readonly [string, object, Partial<AdmissionInput>])[] = [
    ['a buy far below the band', { price: 10 }, {}],
    ['a sell far above the band', { side: 'SHORT', price: 5000 }, {}],
    ['the edges of the band', { price: 1050, leverage: 1 }, {}],
    [
      'an exact reduce-only full close below the minimum',
      { quantity: 5, side: 'SHORT', reduceOnly: true },
      { position: position(5, '1') },
    ],
    ['a stop-limit inside the band at its trigger', { type: 'STOP_LIMIT', trigger: 1200, price: 1260 }, {}],
    [
      'a stop-loss before the position is there',
      { type: 'STOP_LOSS_MARKET', price: 0, trigger: 900, side: 'SHORT', reduceOnly: true },
      {},
    ],
    ['an expiration in this second', { expiration: 1000 }, {}],
    ['a close of a position below IMR', { side: 'SHORT' }, { position: position(1000, '1') }],
    ['the available balance to the wei', {}, { available: quote('10.05') }],
  ]
  for (const [name, order, context] of accepted) {
    it(`when there is ${name}, it accepts`, () =>
      expect(admit(anOrder(order), at(context)).ok).to.equal(true))
  }

  it("when no price of the band meets IMR at the order's leverage, it refuses", () => {
    // This market could not be listed: IMR × leverage is 1.2.
    const spec = { ...perpetual, imr: rate('0.12'), maxLeverage: 10 }
    const narrow = { ...spec, mtbLong: rate('0.001'), mtbShort: rate('0.001') }
    const verdict = admit(anOrder({ type: 'MARKET', price: 0 }), at({ spec: narrow }))
    expect(verdict).to.have.nested.property('refusal.code', 'MARGIN_REQUIREMENT')
  })

  it('when the order is a binary sell, it reserves 1 - p and the fee at 0.50', () => {
    const verdict = admit(
      anOrder({ side: 'SHORT', price: 400, quantity: 10, leverage: 1 }),
      at({ spec: binary, oracle: price('0.4') }),
    )
    expect(verdict).to.have.nested.property('value.reserved', quote('6.05'))
  })
})

describe('restingTotals', () => {
  it('when orders are live, it sums up the results of reservationsOf', () => {
    const reservable = (seq: number, remaining: number, reduceOnly: boolean) => ({
      seq: seq as Seq,
      side: 'SHORT' as const,
      remaining: steps(remaining),
      limit: ticks(1000),
      leverage: 10,
      reservedPrice: ticks(1050),
      reduceOnly,
    })
    const orders = [reservable(1, 600, false), reservable(2, 600, false), reservable(3, 600, true)]
    const reservations = reservationsOf(perpetual, steps(1000), orders)
    const reserved = orders.map((order, at) => ({
      ...order,
      openable: reservations[at]!.openable,
      reserved: reservations[at]!.amount,
    }))
    expect(restingTotals(perpetual, steps(1000), reserved)).to.deep.equal({
      count: 3,
      reducing: 1000,
      openable: 200,
      openNotional: quote('21'),
      reserved: reservations[1]!.amount,
    })
  })

  it('when an admitted order fills, the fill costs no more than was reserved', () => {
    const order = anOrder({ side: 'SHORT' })
    const verdict = admit(order, at())
    if (!verdict.ok) throw new Error(verdict.refusal.code)
    for (const clearing of [1000, 1020, 1050]) {
      const fill = applyFill(
        perpetual,
        FLAT,
        {
          side: 'SHORT',
          price: ticks(clearing),
          steps: steps(1000),
          takerSteps: steps(1000),
          leverage: 10,
          basis: openingBasis(
            perpetual,
            { side: 'SHORT', limit: order.price },
            ticks(clearing),
            priceOf(perpetual, ticks(1000)),
          ),
        },
        { fundingIndex: index(0n), makerFee: perpetual.makerFee, takerFee: perpetual.takerFee },
      )
      expect(fill.ok && -fill.value.freeDelta <= verdict.value.reserved).to.equal(true)
    }
  })
})
