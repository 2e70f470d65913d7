import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { priceBand } from '../../../domain/market/band.ts'
import { type MarketSpec, priceOf } from '../../../domain/market/market.ts'
import type { OrderType, Side } from '../../../domain/orders/order.ts'
import {
  coveredSteps,
  newestToCancel,
  type Reservable,
  reducingCapacity,
  reservationPerStep,
  reservationsOf,
  reservedPriceOf,
} from '../../../domain/orders/reservation.ts'
import { applyFill, FLAT, openingBasis } from '../../../domain/positions/position.ts'
import type { Price, Seq } from '../../../domain/units.ts'
import { binary, index, markets, perpetual, price, quote, steps, ticks } from '../../support/markets.ts'

const band = priceBand(perpetual, price('100'))
const anOrder = (
  seq: number,
  side: Side,
  remaining: number,
  changes: Partial<Reservable> = {},
): Reservable => ({
  seq: seq as Seq,
  side,
  remaining: steps(remaining),
  limit: ticks(1000),
  leverage: 10,
  reservedPrice: ticks(1000),
  reduceOnly: false,
  ...changes,
})

describe('reservedPriceOf', () => {
  const binaryBand = priceBand(binary, price('0.5'))
  const table = [
    { name: 'a limit buy', spec: perpetual, side: 'LONG', type: 'LIMIT', limit: 990, at: 990 },
    { name: 'a market buy', spec: perpetual, side: 'LONG', type: 'MARKET', limit: 0, at: 1050 },
    {
      name: 'a limit sell in the band',
      spec: perpetual,
      side: 'SHORT',
      type: 'LIMIT',
      limit: 990,
      at: 1103,
    },
    {
      name: 'a limit sell above the band',
      spec: perpetual,
      side: 'SHORT',
      type: 'LIMIT',
      limit: 1200,
      at: 1260,
    },
    { name: 'a market sell', spec: perpetual, side: 'SHORT', type: 'MARKET', limit: 0, at: 1050 },
    {
      name: 'a stop buy, reserved at 5 % above its trigger',
      spec: perpetual,
      side: 'LONG',
      type: 'STOP_MARKET',
      limit: 0,
      at: 1260,
    },
    {
      name: 'a stop sell, reserved at 5 % above its trigger',
      spec: perpetual,
      side: 'SHORT',
      type: 'STOP_MARKET',
      limit: 0,
      at: 1260,
    },
    { name: 'a stop-limit sell', spec: perpetual, side: 'SHORT', type: 'STOP_LIMIT', limit: 1100, at: 1323 },
    {
      name: 'a binary limit sell',
      spec: binary,
      side: 'SHORT',
      type: 'LIMIT',
      limit: 420,
      at: 420,
    },
    { name: 'a binary market sell', spec: binary, side: 'SHORT', type: 'MARKET', limit: 0, at: 400 },
    { name: 'a binary market buy', spec: binary, side: 'LONG', type: 'MARKET', limit: 0, at: 600 },
    {
      name: 'a binary stop sell, reserved at 20 % below its trigger',
      spec: binary,
      side: 'SHORT',
      type: 'STOP_MARKET',
      limit: 0,
      at: 960,
    },
    {
      name: 'a binary stop buy, reserved below 1',
      spec: binary,
      side: 'LONG',
      type: 'STOP_MARKET',
      limit: 0,
      at: 999,
    },
  ] as const
  for (const { name, spec, side, type, limit, at } of table) {
    it(`when the order is ${name}, it is ${at} ticks`, () => {
      const order = { side, type: type as OrderType, price: ticks(limit), trigger: ticks(1200) }
      const bandOf = spec.kind === 'binary_future' ? binaryBand : band
      expect(reservedPriceOf(spec, order, bandOf)).to.equal(at)
    })
  }
})

describe('reservationPerStep', () => {
  it('when the order is a buy, it is margin and taker fee at the reserved price', () => {
    expect(reservationPerStep(perpetual, anOrder(1, 'LONG', 1))).to.equal(quote('0.01') + quote('0.00005'))
  })

  it('when the order is a limit sell, it is margin at the limit and the fee at the reserved price', () => {
    const sell = anOrder(1, 'SHORT', 1, { reservedPrice: ticks(1050) })
    expect(reservationPerStep(perpetual, sell)).to.equal(quote('0.01') + quote('0.0000525'))
  })

  it('when the order is a market sell, it is margin and taker fee at the reserved price', () => {
    const sell = anOrder(1, 'SHORT', 1, { limit: ticks(0), reservedPrice: ticks(1050) })
    expect(reservationPerStep(perpetual, sell)).to.equal(quote('0.0105') + quote('0.0000525'))
  })

  it('when the order is a binary sell, it is (1 - p)/L and the fee at 0.50', () => {
    const sell = anOrder(1, 'SHORT', 1, { limit: ticks(370), reservedPrice: ticks(370), leverage: 1 })
    expect(reservationPerStep(binary, sell)).to.equal(quote('0.63') + quote('0.005'))
  })
})

describe('reservationsOf', () => {
  const openable = (size: number, orders: readonly Reservable[]) =>
    reservationsOf(perpetual, steps(size), orders).map((reservation) => reservation.openable)

  it('when plain orders are given in any sequence, it assigns the reducing capacity by seq', () => {
    const orders = [anOrder(3, 'SHORT', 50), anOrder(1, 'SHORT', 60), anOrder(2, 'SHORT', 60)]
    expect(openable(100, orders)).to.deep.equal([0, 20, 50])
  })

  it('when orders are reduce-only, they take no capacity and reserve nothing', () => {
    const orders = [anOrder(1, 'SHORT', 100, { reduceOnly: true }), anOrder(2, 'SHORT', 100)]
    expect(openable(100, orders)).to.deep.equal([0, 0])
  })

  it("when the account is flat or the order is on the position's own side, all steps open", () => {
    expect(openable(0, [anOrder(1, 'SHORT', 5), anOrder(2, 'LONG', 6)])).to.deep.equal([5, 6])
    expect(openable(-10, [anOrder(1, 'SHORT', 5), anOrder(2, 'LONG', 6)])).to.deep.equal([5, 0])
  })

  it('when steps open, it reserves their number times the amount per step', () => {
    const [only] = reservationsOf(perpetual, steps(0), [anOrder(1, 'LONG', 7)])
    expect(only?.amount).to.equal(7n * reservationPerStep(perpetual, anOrder(1, 'LONG', 1)))
  })

  it('when a newer order is placed, it closes the capacity that older orders left and opens the rest', () => {
    const anyOrder = fc.record({
      side: fc.constantFrom('LONG' as const, 'SHORT' as const),
      remaining: fc.integer({ min: 1, max: 100 }),
      reduceOnly: fc.boolean(),
    })
    fc.assert(
      fc.property(
        fc.integer({ min: -300, max: 300 }),
        fc.array(anyOrder),
        anyOrder,
        (size, older, newest) => {
          const orders = older.map((order, at) =>
            anOrder(at, order.side, order.remaining, { reduceOnly: order.reduceOnly }),
          )
          const last = anOrder(older.length, newest.side, newest.remaining)
          const all = reservationsOf(perpetual, steps(size), [...orders, last])
          const closes = size * (newest.side === 'LONG' ? 1 : -1) < 0
          const capacity = closes ? reducingCapacity(steps(size), orders) : 0
          expect(all.at(-1)?.openable).to.equal(Math.max(0, newest.remaining - capacity))
          const closing = orders
            .concat(last)
            .reduce((sum, order, at) => sum + order.remaining - all[at]!.openable, 0)
          expect(
            closing - orders.filter((o) => o.reduceOnly).reduce((sum, o) => sum + o.remaining, 0),
          ).to.be.at.most(Math.abs(size))
        },
      ),
    )
  })
})

describe('newestToCancel', () => {
  const held = [
    { seq: 1 as Seq, openable: steps(1), amount: quote('10') },
    { seq: 2 as Seq, openable: steps(0), amount: quote('0') },
    { seq: 3 as Seq, openable: steps(1), amount: quote('5') },
    { seq: 4 as Seq, openable: steps(1), amount: quote('1') },
  ]
  const table = [
    { budget: '16', cancelled: [] },
    { budget: '15', cancelled: [4] },
    { budget: '14', cancelled: [4, 3] },
    { budget: '9', cancelled: [4, 3, 1] },
    { budget: '-1', cancelled: [4, 3, 1] },
  ]
  for (const { budget, cancelled } of table) {
    it(`when the budget is ${budget}, it cancels [${cancelled}]`, () => {
      expect(newestToCancel(held, quote(budget))).to.deep.equal(cancelled)
    })
  }
})

const anyCase = fc.record({
  spec: fc.constantFrom(...markets),
  side: fc.constantFrom('LONG' as const, 'SHORT' as const),
  isMarket: fc.boolean(),
  limit: fc.integer({ min: 1, max: 999 }),
  leverageSeed: fc.nat(),
  accepted: fc.integer({ min: 50, max: 950 }),
  cleared: fc.integer({ min: 50, max: 950 }),
  fills: fc.array(fc.record({ steps: fc.integer({ min: 1, max: 500 }), p: fc.nat(), taker: fc.nat() }), {
    minLength: 1,
    maxLength: 10,
  }),
})

const oracleAt = (spec: MarketSpec, count: number): Price => priceOf(spec, ticks(count))

describe('reservation', () => {
  it("when any series of fills stays within the order's bounds, it covers their debits in any batch", () => {
    fc.assert(
      fc.property(
        anyCase,
        ({ spec, side, isMarket, limit: anyLimit, leverageSeed, accepted, cleared, fills }) => {
          const limit = ticks(isMarket ? 0 : anyLimit)
          const leverage = 1 + (leverageSeed % spec.maxLeverage)
          const order = {
            side,
            type: isMarket ? ('MARKET' as const) : ('LIMIT' as const),
            price: limit,
            trigger: ticks(0),
          }
          const reservedPrice = reservedPriceOf(spec, order, priceBand(spec, oracleAt(spec, accepted)))
          const terms = { side, limit, leverage, reservedPrice }
          const total = steps(fills.reduce((sum, fill) => sum + fill.steps, 0))
          const held = reservationPerStep(spec, terms) * BigInt(total)

          const oracle = oracleAt(spec, cleared)
          const now = priceBand(spec, oracle)
          const isBinary = spec.kind === 'binary_future'
          const lowest = side === 'LONG' ? now.lo : Math.max(now.lo, limit, isBinary ? reservedPrice : 1)
          const highest = side === 'LONG' ? Math.min(now.hi, reservedPrice) : now.hi
          if (lowest > highest) return

          let left: number = coveredSteps(spec, { ...terms, openable: total }, now, oracle)
          let spent = 0n
          let position = FLAT
          for (const fill of fills) {
            const count = Math.min(left, fill.steps)
            if (count === 0) break
            left -= count
            const at = ticks(lowest + (fill.p % (highest - lowest + 1)))
            const verdict = applyFill(
              spec,
              position,
              {
                side,
                price: at,
                steps: steps(count),
                takerSteps: steps(fill.taker % (count + 1)),
                leverage,
                basis: openingBasis(spec, { side, limit }, at, oracle),
              },
              { fundingIndex: index(0n), makerFee: spec.makerFee, takerFee: spec.takerFee },
            )
            if (!verdict.ok) throw new Error(verdict.refusal.code)
            position = verdict.value.position
            spent -= verdict.value.freeDelta
          }
          expect(spent <= held).to.equal(true)
        },
      ),
      { numRuns: 500 },
    )
  })

  it('when the band has not risen, it covers the whole order', () => {
    fc.assert(
      fc.property(anyCase, ({ spec, side, limit, leverageSeed, accepted, isMarket }) => {
        const oracle = oracleAt(spec, accepted)
        const now = priceBand(spec, oracle)
        const order = {
          side,
          type: isMarket ? ('MARKET' as const) : ('LIMIT' as const),
          price: ticks(isMarket ? 0 : limit),
          trigger: ticks(0),
        }
        const terms = {
          side,
          limit: order.price,
          leverage: 1 + (leverageSeed % spec.maxLeverage),
          reservedPrice: reservedPriceOf(spec, order, now),
        }
        expect(coveredSteps(spec, { ...terms, openable: steps(1000) }, now, oracle)).to.equal(1000)
      }),
    )
  })

  it('when the oracle price has risen at most to the limit or to the upper edge of the band at acceptance, it covers a sell to its last step', () => {
    const anySell = fc.record({
      spec: fc.constantFrom(...markets.filter(({ kind }) => kind !== 'binary_future')),
      limit: fc.integer({ min: 1, max: 5000 }),
      leverage: fc.integer({ min: 1, max: 5 }),
      openable: fc.integer({ min: 1, max: 1000 }),
      accepted: fc.integer({ min: 50, max: 950 }),
      cleared: fc.oneof(fc.integer({ min: 50, max: 5000 }), fc.constantFrom('limit', 'edge')),
    })
    fc.assert(
      fc.property(anySell, ({ spec, limit, leverage, openable, accepted, cleared: drawn }) => {
        const before = priceBand(spec, oracleAt(spec, accepted))
        const cleared = drawn === 'limit' ? limit : drawn === 'edge' ? before.hi : (drawn as number)
        const oracle = oracleAt(spec, cleared)
        const now = priceBand(spec, oracle)
        const order = { side: 'SHORT', type: 'LIMIT', price: ticks(limit), trigger: ticks(0) } as const
        const reservedPrice = reservedPriceOf(spec, order, before)
        const terms = { side: order.side, limit: order.price, leverage, reservedPrice }
        const covered = coveredSteps(spec, { ...terms, openable: steps(openable) }, now, oracle)
        const isCovered = cleared <= Math.max(limit, before.hi)
        if (isCovered) expect(covered).to.equal(openable)
        else expect(covered).to.be.at.most(openable)
        // The highest chargeable price is no larger than the band allows at that oracle price, up to one tick.
        const highest = priceBand(spec, oracleAt(spec, Math.max(limit, before.hi))).hi
        expect(reservedPrice).to.be.within(highest, highest + 1)
      }),
    )
  })

  it("when the band has risen beyond a sell's allowance, it covers fewer steps instead of overdrawing", () => {
    const risen = priceBand(perpetual, price('101'))
    const sell = { ...anOrder(1, 'SHORT', 0, { reservedPrice: ticks(1050) }), openable: steps(10_000) }
    expect(coveredSteps(perpetual, sell, risen, price('101'))).to.equal(9_999)
  })
})
