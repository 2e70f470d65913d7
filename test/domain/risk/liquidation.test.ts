import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { exposureOf, isRatioAtLeast, mayOpen } from '../../../domain/positions/margin.ts'
import { FLAT, marginOf, type Position } from '../../../domain/positions/position.ts'
import { emptied, inherit, isInheritable, marginShortfall, merge } from '../../../domain/risk/liquidation.ts'
import { ONE, type Quote } from '../../../domain/units.ts'
import { anyMarketCase, worthOf } from '../../support/any-positions.ts'
import { e18, index, perpetual, price, quote, steps } from '../../support/markets.ts'

const NONE = index(0n)
const at = price('100')

/** `size` steps of 0.001 entered at 100. */
const held = (size: number, margin: string): Position => ({
  size: steps(size),
  entryNotional: (BigInt(Math.abs(size)) * e18('0.1')) as Quote,
  foldedMargin: quote(margin),
  leverage: 10,
})
const rich = (position: Position) => ({ position, cap: quote('1000000'), free: quote('1000000') })

describe('isInheritable', () => {
  it('when the ratio is below MMR, it returns true, and when it equals MMR, it returns false', () => {
    // 1 unit at 100: the requirement is 2.25.
    expect(isInheritable(perpetual, held(1000, '2.25'), NONE, at)).to.equal(false)
    expect(
      isInheritable(
        perpetual,
        { ...held(1000, '2.25'), foldedMargin: (e18('2.25') - 1n) as Quote },
        NONE,
        at,
      ),
    ).to.equal(true)
  })

  it('when the account has no position, it returns false', () => {
    expect(isInheritable(perpetual, { ...FLAT, foldedMargin: quote('-1') }, NONE, at)).to.equal(false)
  })
})

describe('merge', () => {
  it('when the sides agree, it adds the positions up', () => {
    expect(merge(held(1000, '5'), held(500, '1'), NONE)).to.deep.equal(held(1500, '6'))
  })

  it('when the sides oppose, it nets them, and the entries of the closed shares become margin', () => {
    const short: Position = { ...held(-400, '1'), entryNotional: quote('44') }
    // 0.4 bought at 100 and sold at 110: 4 of profit.
    expect(merge(held(1000, '5'), short, NONE)).to.deep.equal(held(600, '10'))
    expect(merge(short, held(1000, '5'), NONE)).to.deep.equal(held(600, '10'))
  })

  it("when the backstop's position is the smaller one, the result is on the other side", () => {
    expect(merge(held(400, '1'), held(-1000, '5'), NONE)).to.deep.equal(held(-600, '6'))
  })

  it('when the backstop has a leverage, it keeps it, otherwise it takes that of the position', () => {
    expect(merge({ ...FLAT, leverage: 3 }, held(10, '1'), NONE).leverage).to.equal(3)
    expect(merge(FLAT, held(10, '1'), NONE).leverage).to.equal(10)
  })

  it('when any positions are merged, the result is worth their sum at every price', () => {
    fc.assert(
      fc.property(
        anyMarketCase(2),
        fc.bigInt({ min: 0n, max: 2n * ONE }),
        ({ spec, positions, index }, any) => {
          const [a, b] = positions as [Position, Position]
          expect(worthOf(spec, [merge(a, b, index)], index, any)).to.equal(worthOf(spec, [a, b], index, any))
          expect(merge(a, b, index).size).to.equal(a.size + b.size)
          expect(merge(a, b, index).entryNotional >= 0n).to.equal(true)
        },
      ),
    )
  })
})

describe('marginShortfall', () => {
  it('when the shortfall is added, the position meets IMR, and one wei less does not', () => {
    fc.assert(
      fc.property(anyMarketCase(1), ({ spec, positions, index, oracle }) => {
        const [position] = positions as [Position]
        const missing = marginShortfall(spec, exposureOf(spec, position, index, oracle))
        const withMargin = (wei: bigint) => {
          const { equity, notional } = exposureOf(spec, position, index, oracle)
          return isRatioAtLeast({ equity: equity + wei * ONE, notional }, spec.imr)
        }
        expect(withMargin(missing)).to.equal(true)
        if (missing > 0n) expect(withMargin(missing - 1n)).to.equal(false)
      }),
    )
  })
})

describe('inherit', () => {
  const bankrupt = held(1000, '1')
  const inheritWith = (backstop: Parameters<typeof inherit>[2]) =>
    inherit(perpetual, bankrupt, backstop, NONE, at)

  it('when the backstop lacks margin, its position is raised to IMR from its free balance', () => {
    // 4.5 are required, 1 came with the position.
    const verdict = inheritWith(rich(FLAT))
    expect(verdict).to.deep.equal({
      ok: true,
      value: { position: held(1000, '4.5'), freeDelta: quote('-3.5') },
    })
  })

  it("when the backstop's position has enough margin, its free balance is unchanged", () => {
    const verdict = inheritWith(rich(held(1000, '50')))
    expect(verdict.ok && verdict.value.freeDelta).to.equal(0n)
  })

  it('when the positions cancel out, it pays out the remaining margin, or collects the missing margin', () => {
    const verdict = inheritWith(rich(held(-1000, '2')))
    expect(verdict).to.deep.equal({
      ok: true,
      value: { position: { ...FLAT, leverage: 10 }, freeDelta: quote('3') },
    })
    const owing = inherit(perpetual, held(1000, '-5'), rich(held(-1000, '2')), NONE, at)
    expect(owing.ok && owing.value.freeDelta).to.equal(quote('-3'))
  })

  it('when there is no backstop, it refuses', () => {
    expect(inheritWith(null)).to.deep.equal({ ok: false, refusal: { code: 'NO_BACKSTOP' } })
  })

  it('when the notional equals the cap, it accepts, and one wei above it refuses', () => {
    const capped = (cap: bigint) => inheritWith({ ...rich(FLAT), cap: cap as Quote })
    expect(capped(e18('100')).ok).to.equal(true)
    expect(capped(e18('100') - 1n)).to.deep.equal({
      ok: false,
      refusal: { code: 'CAP_EXCEEDED', needed: quote('100'), available: e18('100') - 1n },
    })
  })

  it("when the backstop's position shrinks, it accepts at any cap", () => {
    expect(inheritWith({ ...rich(held(-3000, '50')), cap: quote('1') }).ok).to.equal(true)
    expect(inheritWith({ ...rich(held(-500, '50')), cap: quote('1') }).ok).to.equal(true)
    expect(inheritWith({ ...rich(held(-499, '50')), cap: quote('1') }).ok).to.equal(false)
  })

  it('when the free balance just covers the shortfall, it accepts, and one wei less it refuses', () => {
    const withFree = (free: bigint) => inheritWith({ ...rich(FLAT), free: free as Quote })
    expect(withFree(e18('3.5')).ok).to.equal(true)
    expect(withFree(e18('3.5') - 1n)).to.deep.equal({
      ok: false,
      refusal: { code: 'FREE_BALANCE_SHORT', needed: quote('3.5'), available: e18('3.5') - 1n },
    })
  })

  it('when any position is inherited, value moves only between backstop and account, and the backstop ends at or above IMR', () => {
    fc.assert(
      fc.property(
        anyMarketCase(2),
        fc.bigInt({ min: 0n, max: 2n * ONE }),
        ({ spec, positions, index, oracle }, any) => {
          const [position, own] = positions as [Position, Position]
          fc.pre(position.size !== 0)
          const verdict = inherit(spec, position, rich(own), index, oracle)
          if (!verdict.ok) return
          const { position: after, freeDelta } = verdict.value
          const worth = worthOf(spec, [after, emptied(position)], index, any) + freeDelta * ONE
          expect(worth).to.equal(worthOf(spec, [position, own], index, any))
          expect(mayOpen(spec, after, index, oracle)).to.equal(true)
          if (after.size === 0) expect(marginOf(after, index)).to.equal(0n)
        },
      ),
    )
  })
})
