import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { priceBand } from '../../../domain/market/band.ts'
import { notionalAt, quantityOf } from '../../../domain/market/market.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../../domain/market/price-protection.ts'
import { type AdmissionInput, admit } from '../../../domain/orders/admission.ts'
import { estimateFill, estimateOutcome, reachOf } from '../../../domain/orders/estimate.ts'
import { reservationPerStep, reservedPriceOf } from '../../../domain/orders/reservation.ts'
import {
  type Depth,
  maximumOf,
  type Sizing,
  sizeOf,
  stepsAt,
  stepsOfNotional,
  type UnsizedOrder,
} from '../../../domain/orders/sizing.ts'
import { FLAT, signOf } from '../../../domain/positions/position.ts'
import {
  ONE,
  type Price,
  type Quantity,
  type Quote,
  type Rate,
  type Steps,
  type Ticks,
} from '../../../domain/units.ts'
import { binary, future, index, perpetual, price, quote, steps, ticks } from '../../support/markets.ts'
import { type AnyAdmission, anyAdmission } from '../support/any-admission.ts'

const RUNS = { numRuns: 400 }

const asks = ({ order, facts }: AnyAdmission, count: number) =>
  admit({ ...order, quantity: count as Steps }, facts)

/** A reduce-only order is bounded by the position, although admission would accept more. */
const endsWithPosition = ({ order, facts }: AnyAdmission): boolean =>
  order.reduceOnly && facts.position.size * signOf(order.side) < 0

describe('maximumOf', () => {
  it('when the maximum is placed, it is accepted, and one step more is refused with the stated constraint', () => {
    let found = 0
    fc.assert(
      fc.property(anyAdmission, (moment) => {
        const { spec } = moment.facts
        const { steps: most, binding } = maximumOf(moment.order, moment.facts)
        if (most === 0) {
          const refused = asks(moment, spec.minQuantity)
          expect(refused).to.deep.equal({ ok: false, refusal: binding })
          return
        }
        found++
        expect(asks(moment, most), JSON.stringify(binding)).to.have.property('ok', true)
        if (most === spec.maxQuantity) return
        if (endsWithPosition(moment)) {
          expect(most).to.equal(Math.abs(moment.facts.position.size))
          expect(binding.code).to.equal('POSITION_SIZE')
        } else expect(asks(moment, most + 1)).to.deep.equal({ ok: false, refusal: binding })
      }),
      { numRuns: 3_000 },
    )
    expect(found).to.be.greaterThan(1_000)
  })

  it('when a quantity is at or below the maximum, it is accepted, and when above, it is refused', () => {
    fc.assert(
      fc.property(anyAdmission, fc.double({ min: 0, max: 1, noNaN: true }), (moment, share) => {
        const { spec } = moment.facts
        const { steps: most } = maximumOf(moment.order, moment.facts)
        const below = spec.minQuantity + Math.floor(share * (most - spec.minQuantity))
        if (most >= spec.minQuantity) expect(asks(moment, below)).to.have.property('ok', true)
        if (endsWithPosition(moment) || most === spec.maxQuantity) return
        const above =
          Math.max(most, spec.minQuantity - 1) + 1 + Math.floor(share * (spec.maxQuantity - most - 1))
        expect(asks(moment, Math.min(above, spec.maxQuantity))).to.have.property('ok', false)
      }),
      RUNS,
    )
  })

  it('when margin binds, the maximum is the steps that the balance covers plus the closing steps', () => {
    let bound = 0
    fc.assert(
      fc.property(anyAdmission, ({ order, facts }) => {
        const { spec, position, resting, available } = facts
        const { steps: most, binding } = maximumOf(order, facts)
        if (binding.code !== 'INSUFFICIENT_MARGIN' || most === 0) return
        bound++
        const reservedPrice = reservedPriceOf(spec, order, priceBand(spec, facts.oracle))
        const perStep = reservationPerStep(spec, { ...order, limit: order.price, reservedPrice })
        const isReducing = position.size * signOf(order.side) < 0
        const capacity = isReducing ? Math.max(0, Math.abs(position.size) - resting.reducing) : 0
        expect(most).to.equal(capacity + Number((available > 0n ? available : 0n) / perStep))
      }),
      { numRuns: 2_000 },
    )
    expect(bound).to.be.greaterThan(50)
  })

  const order = (changes: Partial<UnsizedOrder> = {}): UnsizedOrder =>
    ({
      ...{ marketId: 1, maker: `0x${'0a'.repeat(20)}`, side: 'LONG', type: 'LIMIT', price: 1000, trigger: 0 },
      ...{ leverage: 10, reduceOnly: false, expiration: 0, salt: 1n },
      ...changes,
    }) as UnsizedOrder
  const at = (changes: Partial<AdmissionInput> = {}): AdmissionInput => ({
    ...{ spec: perpetual, mode: 'open', oracle: price('100'), now: 1_000_000 as AdmissionInput['now'] },
    ...{ position: FLAT, fundingIndex: index(0n), available: quote('1000') },
    resting: {
      ...{ count: 0, reducing: steps(0), openable: steps(0) },
      ...{ openNotional: quote('0'), reserved: quote('0') },
    },
    ...changes,
  })
  const long = { size: steps(2_500), entryNotional: quote('250'), foldedMargin: quote('250'), leverage: 1 }

  it('when the order is reduce-only, it is the whole position, even below the minimum size', () => {
    const tiny = { ...long, size: steps(5), entryNotional: quote('0.5'), foldedMargin: quote('0.5') }
    const close = order({ side: 'SHORT', reduceOnly: true })
    expect(maximumOf(close, at({ position: long })).steps).to.equal(2_500)
    expect(maximumOf(close, at({ position: tiny })).steps).to.equal(5)
    expect(maximumOf(close, at()))
      .to.deep.include({ steps: 0 })
      .and.have.nested.property('binding.code', 'REDUCE_ONLY_NO_POSITION')
  })

  it('when no quantity is accepted, it returns the reason', () => {
    const why = (changes: Partial<UnsizedOrder>, facts: Partial<AdmissionInput>) => {
      const { steps: most, binding } = maximumOf(order(changes), at(facts))
      expect(most).to.equal(0)
      return binding.code
    }
    expect(why({}, { available: quote('0.01') })).to.equal('INSUFFICIENT_MARGIN')
    expect(why({ price: ticks(1100) }, {})).to.equal('PRICE_BAND')
    expect(why({}, { mode: 'halted' })).to.equal('MARKET_NOT_OPEN')
    expect(why({}, { oracle: null })).to.equal('ORACLE_STALE')
  })

  describe('sizeOf', () => {
    const size = (sizing: Sizing, changes: Partial<UnsizedOrder> = {}, facts: Partial<AdmissionInput> = {}) =>
      sizeOf(sizing, order(changes), at(facts), (notional) => stepsAt(at(facts), ticks(1000), notional))

    it('when the size is in units, it rounds down to the step, and above the largest order it is one step more than that', () => {
      expect(size({ intent: 'units', quantity: quote('1.2349') as bigint as Quantity })).to.equal(1_234)
      const much = quote('1000000000') as bigint as Quantity
      expect(size({ intent: 'units', quantity: much })).to.equal(perpetual.maxQuantity + 1)
    })

    it('when the size is a notional, it is the steps at the price', () => {
      expect(size({ intent: 'notional', notional: quote('123.456') })).to.equal(1_234)
    })

    it('when the size is a share of the available margin, the whole share is the maximum', () => {
      const half = size({ intent: 'available_margin', share: (ONE / 2n) as Rate })
      // 500 / (10 + 0.05 per unit at leverage 10 and 5 bps of 100 x 1.05)
      expect(half).to.equal(Math.floor(500 / (0.01 + 0.00005)))
      expect(size({ intent: 'available_margin', share: ONE as Rate })).to.equal(size({ intent: 'max' }))
      expect(
        size({ intent: 'available_margin', share: ONE as Rate }, {}, { available: quote('-1') }),
      ).to.equal(0)
    })

    it('when the size is a share of the position, it is that share of the position that the order reduces', () => {
      const closing = { side: 'SHORT', reduceOnly: true } as const
      const share = (percent: bigint): Sizing => ({
        intent: 'reduce_percentage',
        share: ((ONE * percent) / 100n) as Rate,
      })
      expect(size(share(25n), closing, { position: long })).to.equal(625)
      expect(size(share(100n), closing, { position: long })).to.equal(2_500)
      expect(size(share(50n), { ...closing, side: 'LONG' }, { position: long })).to.equal(0)
      expect(size(share(50n), closing)).to.equal(0)
    })
  })
})

const anyDepth = (side: 'LONG' | 'SHORT', middle: number): fc.Arbitrary<Depth> =>
  fc
    .uniqueArray(
      fc.record({ off: fc.integer({ min: 1, max: 30 }), steps: fc.integer({ min: 1, max: 500 }) }),
      {
        maxLength: 6,
        selector: ({ off }) => off,
      },
    )
    .map((levels) =>
      levels
        .sort((a, b) => a.off - b.off)
        .map(({ off, steps: count }) => ({
          price: (side === 'LONG' ? middle + off : middle - off) as Ticks,
          steps: count as Steps,
        })),
    )

describe('estimate', () => {
  const base = {
    position: FLAT,
    fundingIndex: index(0n),
    mode: 'open',
    now: 1_000_000,
    priceProtection: DEFAULT_PRICE_PROTECTION.perpetual,
    ownOrders: [],
  } as const
  const factsFor = (spec: typeof perpetual, oracle: Price, depth: Depth) => {
    const resting = {
      count: 0,
      reducing: steps(0),
      openable: steps(0),
      openNotional: quote('0'),
      reserved: quote('0'),
    }
    const facts = { ...base, now: base.now as AdmissionInput['now'], spec, oracle, depth, resting }
    return { ...facts, band: priceBand(spec, oracle), available: quote('1000000000') }
  }
  const marketOrder = (spec: typeof perpetual, side: 'LONG' | 'SHORT', quantity: Steps) => ({
    ...{ marketId: spec.marketId, maker: `0x${'0a'.repeat(20)}` as const, side, type: 'MARKET' as const },
    ...{
      price: ticks(0),
      trigger: ticks(0),
      leverage: 1,
      reduceOnly: false,
      expiration: 0,
      salt: 1n,
      quantity,
    },
  })

  it('when the size is a notional, it spends at most the notional at the price of the batch', () => {
    const specs = fc.constantFrom(
      { spec: perpetual, oracle: price('100'), middle: 1000 },
      { spec: future, oracle: price('50'), middle: 100 },
      { spec: binary, oracle: price('0.5'), middle: 500 },
    )
    const moment = specs.chain((market) =>
      fc.constantFrom('LONG' as const, 'SHORT' as const).chain((side) =>
        fc.record({
          market: fc.constant(market),
          side: fc.constant(side),
          depth: anyDepth(side, market.middle),
          share: fc.bigInt({ min: 1n, max: 3_000n }),
        }),
      ),
    )
    fc.assert(
      fc.property(moment, ({ market: { spec, oracle, middle }, side, depth, share }) => {
        const facts = factsFor(spec, oracle, depth)
        const notional = (notionalAt(spec, ticks(middle), steps(1)) * share) as Quote
        const reach = reachOf(marketOrder(spec, side, steps(1)) as never, facts)
        const facing = { side, depth, band: reach, fallback: ticks(middle) }
        const count = stepsOfNotional(facts, facing, notional)
        if (count < spec.minQuantity) return
        const order = marketOrder(spec, side, count) as never
        const verdict = admit(order, facts)
        if (!verdict.ok) throw new Error(verdict.refusal.code)
        const fill = estimateFill(order, verdict.value, facts)
        const spent = notionalAt(spec, fill.price, count)
        expect(spent <= notional, `${spent} of ${notional}`).to.equal(true)
        const { lo, hi } = reach
        const inReach = depth.filter((level) => level.price >= lo && level.price <= hi)
        const offered = inReach.reduce((sum, level) => sum + level.steps, 0)
        expect(fill.fillable).to.equal(Math.min(count, offered))
      }),
      RUNS,
    )
  })

  it('when the order is a market order, the price is that of the last level that it needs', () => {
    const depth = [
      { price: ticks(1001), steps: steps(100) },
      { price: ticks(1003), steps: steps(100) },
    ]
    const facts = factsFor(perpetual, price('100'), depth)
    const of = (count: number) => {
      const order = marketOrder(perpetual, 'LONG', steps(count)) as never
      const verdict = admit(order, facts)
      return verdict.ok ? estimateFill(order, verdict.value, facts) : null
    }
    expect(of(50)).to.include({ price: 1001, source: 'batch', fillable: 50, taker: 50 })
    expect(of(150)).to.include({ price: 1003, fillable: 150 })
    expect(of(500)).to.include({ price: 1003, fillable: 200 })
  })

  it('when an order rests, waits or meets no order, the price is its limit, its trigger or the oracle price', () => {
    const facts = factsFor(perpetual, price('100'), [])
    const of = (changes: object) => {
      const order = { ...marketOrder(perpetual, 'LONG', steps(50)), ...changes } as never
      const verdict = admit(order, facts)
      return verdict.ok ? estimateFill(order, verdict.value, facts) : null
    }
    expect(of({ type: 'LIMIT', price: 990 })).to.include({ price: 990, source: 'limit', fillable: 0 })
    expect(of({ type: 'STOP_MARKET', trigger: 1020 })).to.include({ price: 1020, source: 'trigger' })
    expect(of({ type: 'STOP_LIMIT', trigger: 1020, price: 1030 })).to.include({
      price: 1030,
      source: 'limit',
    })
    expect(of({})).to.include({ price: 1000, source: 'oracle', fillable: 0 })
  })

  it('when the order is estimated, it returns position, fee and liquidation price of the whole order', () => {
    const facts = factsFor(perpetual, price('100'), [{ price: ticks(1000), steps: steps(5_000) }])
    const order = { ...marketOrder(perpetual, 'LONG', steps(1_000)), leverage: 10 } as never
    const verdict = admit(order, facts)
    if (!verdict.ok) throw new Error(verdict.refusal.code)
    const outcome = estimateOutcome(order, estimateFill(order, verdict.value, facts), facts)
    expect(outcome).to.deep.include({ opened: 1_000, closed: 0, added: quote('10'), fee: quote('0.05') })
    // 90 / (1 - 0.0275): equity 2.75 % of notional
    expect(Number(outcome?.liquidationPrice) / 1e18).to.be.closeTo(92.5449, 0.0001)
    expect(quantityOf(perpetual, outcome?.position.size as Steps)).to.equal(quote('1'))
  })
})
