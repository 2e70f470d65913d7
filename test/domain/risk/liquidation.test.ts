import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { exposureOf, isRatioAtLeast, mayOpen } from '../../../domain/positions/margin.ts'
import { FLAT, marginOf, type Position } from '../../../domain/positions/position.ts'
import { emptied, inherit, isInheritable, marginShortfall, merge } from '../../../domain/risk/liquidation.ts'
import { ONE, type Quote } from '../../../domain/units.ts'
import { anyScene, worthOf } from '../../support/held.ts'
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
  it('holds below the maintenance requirement and not at it', () => {
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

  it('never holds for an account without a position', () => {
    expect(isInheritable(perpetual, { ...FLAT, foldedMargin: quote('-1') }, NONE, at)).to.equal(false)
  })
})

describe('merge', () => {
  it('adds up what agrees', () => {
    expect(merge(held(1000, '5'), held(500, '1'), NONE)).to.deep.equal(held(1500, '6'))
  })

  it('nets what opposes: entries of the closed shares become margin', () => {
    const short: Position = { ...held(-400, '1'), entryNotional: quote('44') }
    // 0.4 bought at 100 and sold at 110: 4 of profit.
    expect(merge(held(1000, '5'), short, NONE)).to.deep.equal(held(600, '10'))
    expect(merge(short, held(1000, '5'), NONE)).to.deep.equal(held(600, '10'))
  })

  it('turns the backstop around where it held less', () => {
    expect(merge(held(400, '1'), held(-1000, '5'), NONE)).to.deep.equal(held(-600, '6'))
  })

  it('keeps its own leverage, or takes the first it sees', () => {
    expect(merge({ ...FLAT, leverage: 3 }, held(10, '1'), NONE).leverage).to.equal(3)
    expect(merge(FLAT, held(10, '1'), NONE).leverage).to.equal(10)
  })

  it('is worth at every price what the two were worth apart', () => {
    fc.assert(
      fc.property(anyScene(2), fc.bigInt({ min: 0n, max: 2n * ONE }), ({ spec, positions, index }, any) => {
        const [a, b] = positions as [Position, Position]
        expect(worthOf(spec, [merge(a, b, index)], index, any)).to.equal(worthOf(spec, [a, b], index, any))
        expect(merge(a, b, index).size).to.equal(a.size + b.size)
        expect(merge(a, b, index).entryNotional >= 0n).to.equal(true)
      }),
    )
  })
})

describe('missingMargin', () => {
  it('brings a position to the initial requirement, and one wei less does not', () => {
    fc.assert(
      fc.property(anyScene(1), ({ spec, positions, index, oracle }) => {
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
  const given = (backstop: Parameters<typeof inherit>[2]) => inherit(perpetual, bankrupt, backstop, NONE, at)

  it('tops the backstop up to the initial requirement', () => {
    // 4.5 are required, 1 came with the position.
    const verdict = given(rich(FLAT))
    expect(verdict).to.deep.equal({
      ok: true,
      value: { position: held(1000, '4.5'), freeDelta: quote('-3.5') },
    })
  })

  it('takes nothing from a backstop that has enough in its position', () => {
    const verdict = given(rich(held(1000, '50')))
    expect(verdict.ok && verdict.value.freeDelta).to.equal(0n)
  })

  it('pays out what is left where the two positions cancel out, and collects what is missing', () => {
    const verdict = given(rich(held(-1000, '2')))
    expect(verdict).to.deep.equal({
      ok: true,
      value: { position: { ...FLAT, leverage: 10 }, freeDelta: quote('3') },
    })
    const owing = inherit(perpetual, held(1000, '-5'), rich(held(-1000, '2')), NONE, at)
    expect(owing.ok && owing.value.freeDelta).to.equal(quote('-3'))
  })

  it('refuses without a backstop', () => {
    expect(given(null)).to.deep.equal({ ok: false, refusal: { code: 'NO_BACKSTOP' } })
  })

  it('takes up to the cap, and not a wei beyond', () => {
    const capped = (cap: bigint) => given({ ...rich(FLAT), cap: cap as Quote })
    expect(capped(e18('100')).ok).to.equal(true)
    expect(capped(e18('100') - 1n)).to.deep.equal({
      ok: false,
      refusal: { code: 'CAP_EXCEEDED', needed: quote('100'), available: e18('100') - 1n },
    })
  })

  it('takes what makes it smaller, whatever the cap', () => {
    expect(given({ ...rich(held(-3000, '50')), cap: quote('1') }).ok).to.equal(true)
    expect(given({ ...rich(held(-500, '50')), cap: quote('1') }).ok).to.equal(true)
    expect(given({ ...rich(held(-499, '50')), cap: quote('1') }).ok).to.equal(false)
  })

  it('takes what its free balance covers, and not a wei less', () => {
    const with_ = (free: bigint) => given({ ...rich(FLAT), free: free as Quote })
    expect(with_(e18('3.5')).ok).to.equal(true)
    expect(with_(e18('3.5') - 1n)).to.deep.equal({
      ok: false,
      refusal: { code: 'FREE_BALANCE_SHORT', needed: quote('3.5'), available: e18('3.5') - 1n },
    })
  })

  it('moves value between backstop and account only: nothing is made or lost, and the backstop ends healthy', () => {
    fc.assert(
      fc.property(
        anyScene(2),
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
