import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  type ClosingInput,
  type ClosingLevel,
  type ClosingRules,
  closingOrder,
} from '../../../domain/risk/backstop-closing.ts'
import type { Price } from '../../../domain/units.ts'
import { e18, price, steps, ticks } from '../../support/markets.ts'

const RULES: ClosingRules = { share: 100_000, depthShare: 250_000, bound: 5_000 }
/** Tick 0.1 at 100: the oracle price is 1,000 ticks, and the bound five of them. */
const market = { isBinary: false, tick: price('0.1'), minQuantity: steps(10), maxQuantity: steps(1_000_000) }
const level = (limit: number, quantity: number): ClosingLevel => ({
  limit: ticks(limit),
  steps: steps(quantity),
})
const orderOf = (size: number, levels: readonly ClosingLevel[], changes: Partial<ClosingInput> = {}) =>
  closingOrder({ market, size: steps(size), oracle: price('100'), levels, ...changes }, RULES)

describe('the closing order of the backstop', () => {
  it('when it has no position, there is none', () => {
    expect(orderOf(0, [level(1000, 500)])).to.equal(null)
  })

  it('when the book is deep, it closes a tenth of the position within the bound', () => {
    const deep = [level(999, 10_000), level(995, 10_000)]
    expect(orderOf(5_000, deep)).to.deep.equal({ side: 'SHORT', limit: 995, steps: 500 })
    expect(orderOf(-5_000, [level(1001, 20_000)])).to.deep.equal({ side: 'LONG', limit: 1005, steps: 500 })
  })

  it('when the book is thin, the order takes a quarter of the quantity within the bound', () => {
    expect(orderOf(5_000, [level(996, 800), level(994, 100_000)])).to.include({ limit: 995, steps: 200 })
  })

  it('when nothing lies within the bound, it rests at the oracle price', () => {
    expect(orderOf(5_000, [level(994, 100_000)])).to.deep.equal({ side: 'SHORT', limit: 1000, steps: 500 })
    expect(orderOf(-5_000, [])).to.deep.equal({ side: 'LONG', limit: 1000, steps: 500 })
    expect(orderOf(5_000, [], { oracle: price('100.01') })).to.include({ limit: 1001 })
    expect(orderOf(-5_000, [], { oracle: price('100.01') })).to.include({ limit: 1000 })
  })

  it('when the rest would be smaller than the smallest order, it closes all', () => {
    expect(orderOf(19, [level(1000, 5_000)])).to.include({ steps: 19 })
    expect(orderOf(7, [])).to.include({ steps: 7 })
    expect(orderOf(50, [level(1000, 5_000)])).to.include({ steps: 10 })
  })

  it('when a probability is near its ends, the bound is a share of the nearer one, and the limit a price of the market', () => {
    const binary = { ...market, isBinary: true, tick: price('0.001') }
    const at = (size: number, oracle: string, levels: readonly ClosingLevel[]) =>
      orderOf(size, levels, { market: binary, oracle: price(oracle) })
    expect(at(100, '0.4', [level(400, 50)])).to.include({ limit: 398 })
    expect(at(-100, '0.9', [level(900, 50)])).to.include({ limit: 900 })
    expect(at(100, '1', [])).to.include({ limit: 999 })
    expect(at(-100, '0.0001', [])).to.include({ limit: 1 })
  })

  it('when position, book and price are any, the order reduces the position, and keeps pace, depth and bound', () => {
    const anyLevel = fc.record({
      limit: fc.integer({ min: 1, max: 3_000 }),
      steps: fc.integer({ min: 1, max: 100_000 }),
    })
    fc.assert(
      fc.property(
        fc.integer({ min: -2_000_000, max: 2_000_000 }),
        fc.array(anyLevel, { maxLength: 20 }),
        fc.bigInt({ min: 1n, max: e18('300') }),
        (size, found, oracle) => {
          const levels = found.map(({ limit, steps: count }) => level(limit, count))
          const order = orderOf(size, levels, { oracle: oracle as Price })
          if (order === null) {
            expect(size).to.equal(0)
            return
          }
          const { side, limit, steps: closed } = order
          const whole = Math.abs(size)
          expect(side).to.equal(size > 0 ? 'SHORT' : 'LONG')
          expect(closed).to.be.within(1, whole)
          const rest = whole - closed
          expect(rest === 0 || rest >= market.minQuantity || closed === market.maxQuantity).to.equal(true)
          if (closed > market.minQuantity && rest > 0) expect(closed).to.be.at.most(Math.floor(whole / 10))
          const away = BigInt(limit) * market.tick - oracle
          const worse = side === 'SHORT' ? -away : away
          expect(worse * 1_000_000n <= oracle * 5_000n || limit === 1).to.equal(true)
        },
      ),
      { seed: 7, numRuns: 2_000 },
    )
  })
})
