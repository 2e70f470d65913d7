import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { applyFill, FLAT, foldMargin, marginOf, type Position } from '../../../domain/positions/position.ts'
import { type FundingIndex, ONE, type Price } from '../../../domain/units.ts'
import { index, markets, steps, ticks } from '../../support/markets.ts'
import { aFill, mustFill, terms } from '../support/fills.ts'

const anyMarket = fc.constantFrom(...markets)
const anySide = fc.constantFrom('LONG' as const, 'SHORT' as const)
const anyFill = fc.record({
  side: anySide,
  price: fc.integer({ min: 1, max: 999 }).map(ticks),
  steps: fc.integer({ min: 1, max: 100_000 }).map(steps),
  leverage: fc.integer({ min: 1, max: 20 }),
  takerShare: fc.integer({ min: 0, max: 100 }),
  funding: fc.bigInt({ min: -(10n ** 10n), max: 10n ** 10n }),
})

/** free + margin + size × price - entry, in wei × 1e18: the value of an account at a price. */
function worth(
  spec: MarketSpec,
  free: bigint,
  position: Position,
  fundingIndex: FundingIndex,
  at: Price,
): bigint {
  const entry = position.size > 0 ? position.entryNotional : -position.entryNotional
  return (free + marginOf(position, fundingIndex) - entry) * ONE + BigInt(position.size) * spec.step * at
}

describe('applyFill over random fills', () => {
  it('when any two sides fill, both and the fees are worth the same before and after, at any price', () => {
    fc.assert(
      fc.property(
        anyMarket,
        fc.array(anyFill, { maxLength: 30 }),
        fc.bigInt({ min: 1n, max: ONE }),
        (spec, fills, at) => {
          const books = [
            { free: 0n, position: FLAT },
            { free: 0n, position: FLAT },
          ]
          let fundingIndex = 0n
          let fees = 0n
          for (const fill of fills) {
            fundingIndex += fill.funding
            const sides = [fill.side, fill.side === 'LONG' ? ('SHORT' as const) : ('LONG' as const)]
            const verdicts = sides.map((side, at) => {
              const takerSteps = steps(Math.floor((fill.steps * fill.takerShare) / 100))
              const full = aFill(spec, {
                ...fill,
                side,
                takerSteps: at === 0 ? takerSteps : steps(fill.steps - takerSteps),
              })
              return applyFill(spec, books[at]!.position, full, terms(spec, index(fundingIndex)))
            })
            if (verdicts.some((verdict) => !verdict.ok)) continue
            verdicts.forEach((verdict, side) => {
              if (!verdict.ok) return
              books[side] = {
                free: books[side]!.free + verdict.value.freeDelta,
                position: verdict.value.position,
              }
              fees += verdict.value.fee
            })
          }
          const total = books.reduce(
            (sum, { free, position }) => sum + worth(spec, free, position, index(fundingIndex), at as Price),
            fees * ONE,
          )
          expect(total).to.equal(0n)
          expect(books[0]!.position.size + books[1]!.position.size).to.equal(0)
        },
      ),
    )
  })

  it('when any fills are applied, the entry notional is not negative, and a closed position is empty to the wei', () => {
    fc.assert(
      fc.property(anyMarket, fc.array(anyFill, { maxLength: 30 }), (spec, fills) => {
        let position: Position = FLAT
        for (const fill of fills) {
          const verdict = applyFill(spec, position, aFill(spec, fill), terms(spec))
          if (verdict.ok) position = verdict.value.position
          expect(position.entryNotional >= 0n).to.equal(true)
          if (position.size === 0)
            expect([position.entryNotional, position.foldedMargin]).to.deep.equal([0n, 0n])
        }
      }),
    )
  })

  it('when a fill is split, it never pays the trader more', () => {
    fc.assert(
      fc.property(
        anyMarket,
        anyFill,
        anyFill,
        fc.integer({ min: 1, max: 99 }),
        (spec, open, next, percent) => {
          const start = mustFill(spec, FLAT, { ...open, takerSteps: steps(0) }).position
          const first = Math.max(1, Math.floor((next.steps * percent) / 100))
          if (first >= next.steps) return
          const whole = applyFill(spec, start, aFill(spec, next), terms(spec))
          const one = applyFill(spec, start, aFill(spec, { ...next, steps: steps(first) }), terms(spec))
          if (!one.ok || !whole.ok) return
          const rest = aFill(spec, { ...next, steps: steps(next.steps - first) })
          const two = applyFill(spec, one.value.position, rest, terms(spec))
          if (!two.ok) return
          expect(one.value.freeDelta + two.value.freeDelta <= whole.value.freeDelta).to.equal(true)
          expect(two.value.position.size).to.equal(whole.value.position.size)
        },
      ),
    )
  })

  it('when margin is folded, unfolding at the same index returns it', () => {
    fc.assert(
      fc.property(fc.bigInt(), fc.integer(), fc.bigInt(), (margin, size, at) => {
        const position = {
          ...FLAT,
          size: steps(size),
          foldedMargin: foldMargin(margin, steps(size), index(at)),
        }
        expect(marginOf(position, index(at))).to.equal(margin)
      }),
    )
  })
})
