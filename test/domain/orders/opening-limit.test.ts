import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { OpeningMargins } from '../../../domain/auction/opening-margin.ts'
import type { RestingOrder } from '../../../domain/book/book.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { highestPrice, type MarketSpec, priceOf } from '../../../domain/market/market.ts'
import { type AdmissionInput, admit } from '../../../domain/orders/admission.ts'
import { effectiveLimit, type LimitTerms } from '../../../domain/orders/opening-limit.ts'
import type { Order } from '../../../domain/orders/order.ts'
import { FLAT } from '../../../domain/positions/position.ts'
import type { Address, Millis, Price, Quote } from '../../../domain/units.ts'
import { isBelowRequirement } from '../../support/margin-requirement.ts'
import { future, index, markets, perpetual, price, quote, steps, ticks } from '../../support/markets.ts'

const nothing = {
  count: 0,
  reducing: steps(0),
  openable: steps(0),
  openNotional: quote('0'),
  reserved: quote('0'),
}
const orderOf = (spec: MarketSpec, { side, limit, leverage }: LimitTerms): Order => ({
  ...{ marketId: spec.marketId, maker: `0x${'0a'.repeat(20)}` as Address, side, type: 'LIMIT', price: limit },
  ...{ quantity: spec.minQuantity, trigger: ticks(0), leverage, reduceOnly: false, salt: 1n },
  expiration: 0 as Order['expiration'],
})
const inputOf = (spec: MarketSpec, oracle: Price): AdmissionInput => ({
  ...{ spec, mode: 'open', oracle, now: 0 as Millis, position: FLAT, fundingIndex: index(0n) },
  ...{ resting: nothing, available: (1n << 100n) as Quote },
})
const placed = (spec: MarketSpec, terms: LimitTerms, oracle: Price) =>
  admit(orderOf(spec, terms), inputOf(spec, oracle))

/** The opening limit of the order in a batch at this oracle price, if the band does not move it. */
function openingLimitInBatch(spec: MarketSpec, { side, limit, leverage }: LimitTerms, oracle: Price): number {
  const resting = { side, limit, leverage, type: 'LIMIT' } as RestingOrder
  const bound = new OpeningMargins(spec, oracle, priceBand(spec, oracle)).boundFor(resting)
  return side === 'LONG' ? Math.min(limit, bound) : Math.max(limit, bound)
}

interface Case {
  readonly spec: MarketSpec
  readonly terms: LimitTerms
  readonly oracle: Price
}

/** Limits that pass the check of the band, about half of them within 15 % of the oracle price. */
const anyCase = fc
  .record({
    spec: fc.constantFrom(...markets),
    side: fc.constantFrom('LONG' as const, 'SHORT' as const),
    leverageSeed: fc.nat(),
    oracle: fc.bigInt({ min: 20_000n, max: 980_000n }),
    near: fc.integer({ min: -150, max: 150 }),
    anywhere: fc.integer({ min: 1, max: 2000 }),
    isNear: fc.boolean(),
  })
  .map(({ spec, side, leverageSeed, oracle: millis, near, anywhere, isNear }): Case => {
    const oracle = ((millis * spec.tick) / 1000n) as Price
    const { lo, hi } = priceBand(spec, oracle)
    const middle = Number(oracle / spec.tick)
    const wanted = isNear ? middle + Math.round((middle * near) / 1000) : anywhere
    const most = side === 'LONG' ? hi : highestPrice(spec)
    const least = Math.max(side === 'LONG' ? 1 : lo, spec.minPrice)
    const limit = ticks(Math.max(least, Math.min(most, wanted)))
    return { spec, oracle, terms: { side, limit, leverage: 1 + (leverageSeed % spec.maxLeverage) } }
  })
  .filter(({ spec, oracle }) => priceBand(spec, oracle).hi >= spec.minPrice)

describe('limit orders below the margin requirement', () => {
  it('when any limit order is placed, it is accepted exactly if it opens at its own limit in a batch at the same oracle price', () => {
    const seen = { accepted: 0, refused: 0 }
    fc.assert(
      fc.property(anyCase, ({ spec, terms, oracle }) => {
        const verdict = placed(spec, terms, oracle)
        const isOwn = openingLimitInBatch(spec, terms, oracle) === terms.limit
        expect(verdict.ok ? 'accepted' : verdict.refusal.code).to.equal(
          isOwn ? 'accepted' : 'MARGIN_REQUIREMENT',
        )
        expect(isOwn).to.equal(!isBelowRequirement(spec, { ...terms, price: terms.limit }, oracle))
        seen[isOwn ? 'accepted' : 'refused']++
      }),
      { numRuns: 2000 },
    )
    expect(Math.min(seen.accepted, seen.refused), JSON.stringify(seen)).to.be.greaterThan(50)
  })

  it('when an order is refused, its nearest price and leverage are accepted, and one tick or one leverage more is refused', () => {
    const seen = { price: 0, leverage: 0 }
    fc.assert(
      fc.property(anyCase, ({ spec, terms, oracle }) => {
        const verdict = placed(spec, terms, oracle)
        if (verdict.ok) return
        const { nearestValid, nearestValidLeverage: leverage } = verdict.refusal
        if (nearestValid !== undefined) {
          seen.price++
          const nearest = Number(price(nearestValid) / spec.tick)
          const beyond = nearest + (terms.side === 'LONG' ? 1 : -1)
          expect(placed(spec, { ...terms, limit: ticks(nearest) }, oracle).ok, 'nearest price').to.equal(true)
          expect(placed(spec, { ...terms, limit: ticks(beyond) }, oracle).ok, 'one tick more').to.equal(false)
        }
        if (leverage !== undefined) {
          seen.leverage++
          expect(leverage).to.be.lessThan(terms.leverage)
          expect(placed(spec, { ...terms, leverage }, oracle).ok, 'nearest leverage').to.equal(true)
          expect(placed(spec, { ...terms, leverage: leverage + 1 }, oracle).ok, 'one more').to.equal(false)
        }
      }),
      { numRuns: 3000 },
    )
    expect(Math.min(seen.price, seen.leverage), JSON.stringify(seen)).to.be.greaterThan(50)
  })

  it('when a future is bought at 1.10 × the oracle price with leverage 5, it names price 102.5 and leverage 3', () => {
    // 100 × 0.82 / 0.8 = 102.5; at 110: leverage 3 is bounded at 123, leverage 4 at 109.33.
    const verdict = placed(future, { side: 'LONG', limit: ticks(220), leverage: 5 }, price('100'))
    expect(verdict).to.deep.equal({
      ok: false,
      refusal: {
        code: 'MARGIN_REQUIREMENT',
        field: 'price',
        expected: 'at most 102.5 at leverage 5, or a leverage of at most 3',
        received: '110',
        nearestValid: '102.5',
        nearestValidLeverage: 3,
      },
    })
  })

  it('when only the closing share of an order is executable, its limit is not judged', () => {
    const order = { ...orderOf(future, { side: 'LONG', limit: ticks(220), leverage: 5 }), reduceOnly: true }
    const position = { ...FLAT, size: steps(-100), entryNotional: quote('100'), foldedMargin: quote('30') }
    const input = { ...inputOf(future, price('100')), position }
    expect(admit({ ...order, leverage: 5 }, input).ok).to.equal(true)
    expect(admit({ ...order, reduceOnly: false, quantity: steps(100) }, input).ok).to.equal(true)
    expect(admit({ ...order, reduceOnly: false, quantity: steps(101) }, input)).to.have.nested.property(
      'refusal.code',
      'MARGIN_REQUIREMENT',
    )
  })
})

describe('effectiveLimit', () => {
  it('when an order is accepted, it is its own limit at the same oracle price', () => {
    fc.assert(
      fc.property(anyCase, ({ spec, terms, oracle }) => {
        if (!placed(spec, terms, oracle).ok) return
        expect(effectiveLimit(spec, { ...terms, opens: true }, oracle)).to.equal(terms.limit)
      }),
    )
  })

  it('when the oracle price has moved, it meets IMR, is in the band on the aggressive side, and is never more aggressive than the own limit', () => {
    fc.assert(
      fc.property(anyCase, fc.integer({ min: 700, max: 1300 }), ({ spec, terms, oracle: before }, move) => {
        const oracle = ((before * BigInt(move)) / 1000n) as Price
        if (spec.kind === 'binary_future' && oracle >= priceOf(spec, highestPrice(spec))) return
        const { lo, hi } = priceBand(spec, oracle)
        const limit = effectiveLimit(spec, { ...terms, opens: true }, oracle)
        const inBand = effectiveLimit(spec, { ...terms, opens: false }, oracle)
        if (terms.side === 'LONG') {
          expect(inBand).to.equal(Math.min(terms.limit, hi))
          expect(limit).to.equal(Math.min(inBand, openingLimitInBatch(spec, terms, oracle)))
        } else {
          expect(inBand).to.equal(Math.max(terms.limit, lo))
          expect(limit).to.equal(Math.max(inBand, openingLimitInBatch(spec, terms, oracle)))
        }
      }),
    )
  })

  it('when the oracle price is too low for a leveraged buy, the limit is the opening bound at that oracle price', () => {
    const buy = { side: 'LONG', limit: ticks(1000), leverage: 20 } as const
    // 96 × 0.955 / 0.95 = 96.505
    expect(effectiveLimit(perpetual, { ...buy, opens: true }, price('96'))).to.equal(965)
    expect(effectiveLimit(perpetual, { ...buy, opens: false }, price('96'))).to.equal(1000)
  })
})
