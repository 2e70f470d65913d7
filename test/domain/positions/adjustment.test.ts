import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { MarketSpec } from '../../../domain/market/market.ts'
import {
  type AdjustTerms,
  adjustLeverage,
  adjustMargin,
  type LeverageAdjustment,
  type MarginAdjustment,
  maxRemovable,
} from '../../../domain/positions/adjustment.ts'
import {
  equityOf,
  exposureOf,
  isFullyCollateralised,
  isLiquidatable,
  isRatioAtLeast,
} from '../../../domain/positions/margin.ts'
import {
  FLAT,
  FOLDED_MARGIN_END,
  foldMargin,
  marginOf,
  type Position,
} from '../../../domain/positions/position.ts'
import { ONE, type Price, type Quote, type Rate } from '../../../domain/units.ts'
import { binary, index, markets, perpetual, price, quote, steps } from '../../support/markets.ts'

const NO_FUNDING = index(0n)
const UNBOUNDED: Omit<LeverageAdjustment, 'leverage'> = {
  maxMarginIn: quote('1000000000'),
  minMarginOut: quote('0'),
}

const held = (size: number, entry: string, margin: string, leverage = 5): Position => ({
  size: steps(size),
  entryNotional: quote(entry),
  foldedMargin: quote(margin),
  leverage,
})
const at = (oracle: string): AdjustTerms => ({ oracle: price(oracle), fundingIndex: NO_FUNDING })
const wei = (amount: bigint): Quote => amount as Quote
const margin = (amount: bigint, change: Partial<MarginAdjustment> = {}): MarginAdjustment => ({
  amount: wei(amount),
  removeMode: 'exact',
  minAmount: wei(0n),
  ...change,
})
const upTo = (amount: bigint, minAmount = 0n): MarginAdjustment =>
  margin(amount, { removeMode: 'up_to', minAmount: wei(minAmount) })

const refusalOf = (verdict: { ok: true } | { ok: false; refusal: unknown }): unknown =>
  verdict.ok ? null : verdict.refusal
const movedOf = (verdict: ReturnType<typeof adjustMargin | typeof adjustLeverage>): bigint => {
  if (!verdict.ok) throw new Error(verdict.refusal.code)
  return verdict.value.moved
}

describe('maxRemovable', () => {
  it('when margin is removable, it leaves the larger of 1 / leverage and IMR', () => {
    // 1 unit at 100: 1 / 5 requires 20, IMR requires 4.5.
    expect(maxRemovable(perpetual, held(1000, '100', '30', 5), at('100'))).to.equal(quote('10'))
    expect(maxRemovable(perpetual, held(1000, '100', '30', 20), at('100'))).to.equal(quote('25'))
    const strict = { ...perpetual, imr: (10n ** 17n) as Rate }
    expect(maxRemovable(strict, held(1000, '100', '30', 20), at('100'))).to.equal(quote('20'))
  })

  it('when the position is below IMR or the account is flat, it is 0', () => {
    expect(maxRemovable(perpetual, held(1000, '100', '19', 5), at('100'))).to.equal(0n)
    expect(maxRemovable(perpetual, FLAT, at('100'))).to.equal(0n)
  })

  it('when there is unrealised profit, it is at most the margin', () => {
    expect(maxRemovable(perpetual, held(1000, '100', '20', 5), at('200'))).to.equal(quote('20'))
    expect(maxRemovable(perpetual, held(-1000, '100', '20', 5), at('10'))).to.equal(quote('20'))
    const fundedAway = { oracle: price('200'), fundingIndex: index(10n ** 18n) }
    expect(maxRemovable(perpetual, held(1000, '100', '20', 5), fundedAway)).to.equal(0n)
  })

  it('when a binary position is short, it is computed from its possible loss', () => {
    // 10 short at 0.6: 4 covers every loss; at 0.6, leverage 5 requires 0.8.
    expect(maxRemovable(binary, held(-10, '6', '3', 5), at('0.6'))).to.equal(quote('2.2'))
  })

  it('when a binary position is fully collateralised, it leaves it so', () => {
    expect(maxRemovable(binary, held(-10, '6', '4', 5), at('0.6'))).to.equal(0n)
    expect(maxRemovable(binary, held(-10, '6', '4.5', 5), at('0.6'))).to.equal(quote('0.5'))
    expect(maxRemovable(binary, held(10, '6', '7', 5), at('0.6'))).to.equal(quote('1'))
    expect(maxRemovable(binary, held(10, '6', '6', 1), at('0.9'))).to.equal(0n)
  })
})

describe('adjustMargin', () => {
  const position = held(1000, '100', '30', 5)

  it('when a margin amount is exact, it adds and removes that amount', () => {
    const added = adjustMargin(perpetual, position, margin(7n), at('100'))
    expect(added.ok && added.value).to.deep.equal({
      position: { ...position, foldedMargin: position.foldedMargin + 7n },
      moved: 7n,
    })
    expect(movedOf(adjustMargin(perpetual, position, margin(-quote('10')), at('100')))).to.equal(-quote('10'))
  })

  it('when the amount is one wei above the removable margin, it refuses', () => {
    const maxRemovable = quote('10')
    const received = maxRemovable + 1n
    const verdict = adjustMargin(perpetual, position, margin(-received), at('100'))
    expect(refusalOf(verdict)).to.deep.equal({ code: 'ABOVE_REMOVABLE', maxRemovable, received })
  })

  it('when the mode is up_to, it removes the removable margin if this reaches the minimum', () => {
    const much = quote('500')
    expect(movedOf(adjustMargin(perpetual, position, upTo(-much), at('100')))).to.equal(-quote('10'))
    expect(movedOf(adjustMargin(perpetual, position, upTo(-3n), at('100')))).to.equal(-3n)
    const verdict = adjustMargin(perpetual, position, upTo(-much, quote('11')), at('100'))
    expect(refusalOf(verdict)).to.deep.equal({
      code: 'BELOW_MINIMUM',
      minAmount: quote('11'),
      moves: quote('10'),
    })
  })

  it('when less than the minimum would move, it refuses in either direction', () => {
    const atLeast = { minAmount: wei(8n) }
    const expected = { code: 'BELOW_MINIMUM', minAmount: 8n, moves: 7n }
    expect(refusalOf(adjustMargin(perpetual, position, margin(7n, atLeast), at('100')))).to.deep.equal(
      expected,
    )
    expect(refusalOf(adjustMargin(perpetual, position, margin(-7n, atLeast), at('100')))).to.deep.equal(
      expected,
    )
  })

  it('when nothing would move or the account has no position, it refuses', () => {
    const nothing = { code: 'NOTHING_MOVES' }
    expect(refusalOf(adjustMargin(perpetual, position, margin(0n), at('100')))).to.deep.equal(nothing)
    const bound = held(1000, '100', '19', 5)
    expect(refusalOf(adjustMargin(perpetual, bound, upTo(-5n), at('100')))).to.deep.equal(nothing)
    const flat = { ...FLAT, leverage: 5 }
    expect(refusalOf(adjustMargin(perpetual, flat, margin(5n), at('100')))).to.deep.equal({
      code: 'NO_POSITION',
    })
    expect(refusalOf(adjustMargin(perpetual, position, upTo(5n), at('100')))).to.deep.equal({
      code: 'REMOVE_MODE',
    })
  })

  it('when the position can be liquidated, it accepts only an addition that reaches IMR', () => {
    // MMR 2.25 % plus the buffer: liquidatable below 2.75; IMR requires 4.5.
    const underMargined = held(1000, '100', '2.7', 20)
    const needed = quote('1.8')
    expect(movedOf(adjustMargin(perpetual, underMargined, margin(needed), at('100')))).to.equal(needed)
    const received = wei(needed - 1n)
    const expected = { code: 'ADDITION_INSUFFICIENT', needed, received }
    expect(refusalOf(adjustMargin(perpetual, underMargined, margin(received), at('100')))).to.deep.equal(
      expected,
    )
    const weak = held(1000, '100', '2.75', 20)
    expect(movedOf(adjustMargin(perpetual, weak, margin(1n), at('100')))).to.equal(1n)
  })

  it('when the position would not fit its slot, it refuses', () => {
    const verdict = adjustMargin(perpetual, position, margin(FOLDED_MARGIN_END), at('100'))
    expect(refusalOf(verdict)).to.deep.equal({ code: 'OUT_OF_RANGE', field: 'foldedMargin' })
  })
})

describe('adjustLeverage', () => {
  const position = held(1000, '100', '20', 5)
  const to = (leverage: number, change: Partial<LeverageAdjustment> = {}) => ({
    leverage,
    ...UNBOUNDED,
    ...change,
  })

  it('when the leverage changes, it moves the margin that the new leverage requires, in either direction', () => {
    const down = adjustLeverage(perpetual, position, to(2), at('100'))
    expect(down.ok && down.value).to.deep.equal({
      position: { ...position, leverage: 2, foldedMargin: quote('50') },
      moved: quote('30'),
    })
    expect(movedOf(adjustLeverage(perpetual, position, to(10), at('100')))).to.equal(-quote('10'))
  })

  it('when more or less would move than was signed, it refuses', () => {
    const [maxMarginIn, minMarginOut] = [quote('30'), quote('10')]
    expect(movedOf(adjustLeverage(perpetual, position, to(2, { maxMarginIn }), at('100')))).to.equal(
      maxMarginIn,
    )
    const less = wei(maxMarginIn - 1n)
    expect(
      refusalOf(adjustLeverage(perpetual, position, to(2, { maxMarginIn: less }), at('100'))),
    ).to.deep.equal({ code: 'MARGIN_IN_ABOVE_MAXIMUM', maxMarginIn: less, needed: maxMarginIn })
    expect(movedOf(adjustLeverage(perpetual, position, to(10, { minMarginOut }), at('100')))).to.equal(
      -minMarginOut,
    )
    const more = wei(minMarginOut + 1n)
    expect(
      refusalOf(adjustLeverage(perpetual, position, to(10, { minMarginOut: more }), at('100'))),
    ).to.deep.equal({ code: 'MARGIN_OUT_BELOW_MINIMUM', minMarginOut: more, available: minMarginOut })
    expect(
      refusalOf(adjustLeverage(perpetual, position, to(2, { minMarginOut: wei(1n) }), at('100'))),
    ).to.deep.equal({ code: 'MARGIN_OUT_BELOW_MINIMUM', minMarginOut: 1n, available: 0n })
  })

  it('when there is unrealised profit, it pays out only margin', () => {
    expect(movedOf(adjustLeverage(perpetual, position, to(20), at('1000')))).to.equal(-quote('20'))
    const eaten = { oracle: price('1000'), fundingIndex: index(quote('0.03')) }
    expect(movedOf(adjustLeverage(perpetual, position, to(20), eaten))).to.equal(0n)
  })

  it("when the leverage is not a whole number from 1 to the market's maximum, it refuses", () => {
    for (const leverage of [0, -1, 2.5, 21, Number.NaN]) {
      const expected = { code: 'LEVERAGE_OUT_OF_RANGE', maxLeverage: 20, received: leverage }
      expect(refusalOf(adjustLeverage(perpetual, position, to(leverage), at('100')))).to.deep.equal(expected)
    }
    for (const leverage of [1, 20]) {
      expect(adjustLeverage(perpetual, position, to(leverage), at('100')).ok).to.equal(true)
    }
  })

  it('when there is no position, it only sets the leverage', () => {
    const verdict = adjustLeverage(perpetual, FLAT, to(7), at('100'))
    expect(verdict.ok && verdict.value).to.deep.equal({ position: { ...FLAT, leverage: 7 }, moved: 0n })
  })

  it('when the position can be liquidated, it moves the margin that restores IMR', () => {
    const underMargined = held(1000, '100', '1', 20)
    expect(movedOf(adjustLeverage(perpetual, underMargined, to(20), at('100')))).to.equal(quote('4'))
  })

  it('when a binary position is fully collateralised, it may leave full collateral', () => {
    const full = held(10, '6', '6', 1)
    expect(movedOf(adjustLeverage(binary, full, to(5), at('0.6')))).to.equal(-quote('4.8'))
  })
})

// ---------------------------------------------------------------------- laws

/** Margin near the value of a position of this size, so that every case occurs often. */
const anyCase = fc
  .record({
    spec: fc.constantFrom(...markets),
    size: fc.integer({ min: -5000, max: 5000 }),
    percentEntry: fc.integer({ min: 40, max: 160 }),
    permilleMargin: fc.integer({ min: -50, max: 1500 }),
    dust: fc.bigInt({ min: 0n, max: 1000n }),
    fundingIndex: fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n }),
    tick: fc.integer({ min: 1, max: 999 }),
    leverage: fc.integer({ min: 1, max: 5 }),
  })
  .map(({ spec, tick, percentEntry, permilleMargin, dust, leverage, ...drawn }) => {
    const oracle = (BigInt(tick) * spec.tick + dust) as Price
    const size = steps(drawn.size)
    const value = (BigInt(Math.abs(size)) * oracle * spec.step) / ONE
    const entryNotional = wei((value * BigInt(percentEntry)) / 100n)
    const fundingIndex = index(drawn.fundingIndex)
    const marginHeld = (value * BigInt(permilleMargin)) / 1000n + dust
    const foldedMargin = size === 0 ? wei(0n) : foldMargin(marginHeld, size, fundingIndex)
    const position: Position = { size, entryNotional, foldedMargin, leverage }
    return { spec, position, terms: { oracle, fundingIndex } }
  })

const anyAmount = fc.bigInt({ min: -(10n ** 22n), max: 10n ** 22n })

/**
 * False if the account can be liquidated, unless an accepted adjustment has brought it to the requirement.
 */
const requirementMet = (
  spec: MarketSpec,
  position: Position,
  { fundingIndex, oracle }: AdjustTerms,
): boolean => isRatioAtLeast(exposureOf(spec, position, fundingIndex, oracle), spec.imr)

describe('adjustments of random positions', () => {
  it('when any adjustment is accepted, money moves only between free balance and margin', () => {
    fc.assert(
      fc.property(anyCase, anyAmount, fc.boolean(), ({ spec, position, terms }, amount, isUpTo) => {
        const adjustment = isUpTo && amount < 0n ? upTo(amount) : margin(amount)
        const verdict = adjustMargin(spec, position, adjustment, terms)
        if (!verdict.ok) return
        const { position: after, moved } = verdict.value
        expect(marginOf(after, terms.fundingIndex)).to.equal(marginOf(position, terms.fundingIndex) + moved)
        expect({ ...after, foldedMargin: position.foldedMargin }).to.deep.equal(position)
        if (!isUpTo) expect(moved).to.equal(amount)
      }),
    )
  })

  it('when any removal is accepted, it leaves IMR and 1 / leverage, pays no profit, and keeps full collateral', () => {
    let removals = 0
    fc.assert(
      fc.property(anyCase, anyAmount, ({ spec, position, terms }, amount) => {
        const verdict = adjustMargin(spec, position, upTo(amount < 0n ? amount : -amount), terms)
        if (!verdict.ok) return
        removals++
        const { position: after } = verdict.value
        const exposure = exposureOf(spec, after, terms.fundingIndex, terms.oracle)
        expect(requirementMet(spec, after, terms)).to.equal(true)
        expect(exposure.equity * BigInt(position.leverage) >= exposure.notional).to.equal(true)
        expect(marginOf(after, terms.fundingIndex) >= 0n).to.equal(true)
        if (isFullyCollateralised(spec, position, terms.fundingIndex)) {
          expect(isFullyCollateralised(spec, after, terms.fundingIndex)).to.equal(true)
        }
      }),
      { numRuns: 500 },
    )
    expect(removals).to.be.greaterThan(100)
  })

  it('when the mode is up_to, it pays the largest exact amount, and one wei more is refused', () => {
    fc.assert(
      fc.property(anyCase, ({ spec, position, terms }) => {
        const most = maxRemovable(spec, position, terms)
        const everything = adjustMargin(spec, position, upTo(-(10n ** 30n)), terms)
        if (most > 0n) {
          expect(movedOf(everything)).to.equal(-most)
          expect(movedOf(adjustMargin(spec, position, margin(-most), terms))).to.equal(-most)
        } else expect(everything.ok).to.equal(false)
        if (position.size === 0) return
        const verdict = adjustMargin(spec, position, margin(-most - 1n), terms)
        expect(refusalOf(verdict)).to.include({ code: 'ABOVE_REMOVABLE', maxRemovable: most })
      }),
      { numRuns: 500 },
    )
  })

  it('when an addition is accepted, no ratio gets worse, and the position cannot be liquidated', () => {
    fc.assert(
      fc.property(anyCase, fc.bigInt({ min: 1n, max: 10n ** 21n }), ({ spec, position, terms }, amount) => {
        const { oracle, fundingIndex } = terms
        const verdict = adjustMargin(spec, position, margin(amount), terms)
        if (!verdict.ok) {
          if (position.size === 0) return
          expect(refusalOf(verdict)).to.include({ code: 'ADDITION_INSUFFICIENT' })
          expect(isLiquidatable(spec, position, fundingIndex, oracle)).to.equal(true)
          const { needed } = refusalOf(verdict) as { needed: bigint }
          const enough = adjustMargin(spec, position, margin(needed), terms)
          expect(enough.ok && requirementMet(spec, enough.value.position, terms)).to.equal(true)
          return
        }
        const { position: after } = verdict.value
        expect(isLiquidatable(spec, after, fundingIndex, oracle)).to.equal(false)
        expect(equityOf(spec, after, fundingIndex, oracle)).to.equal(
          equityOf(spec, position, fundingIndex, oracle) + amount,
        )
        expect(maxRemovable(spec, after, terms) <= maxRemovable(spec, position, terms) + amount).to.equal(
          true,
        )
      }),
      { numRuns: 500 },
    )
  })

  it('when the leverage changes, equity reaches its target to the wei, as far as there is margin', () => {
    fc.assert(
      fc.property(anyCase, fc.integer({ min: 1, max: 5 }), ({ spec, position, terms }, leverage) => {
        const verdict = adjustLeverage(spec, position, { leverage, ...UNBOUNDED }, terms)
        if (!verdict.ok) throw new Error(verdict.refusal.code)
        const { position: after, moved } = verdict.value
        expect(after.leverage).to.equal(leverage)
        const { equity, notional } = exposureOf(spec, after, terms.fundingIndex, terms.oracle)
        const times = BigInt(leverage)
        expect(equity * times >= notional).to.equal(true)
        expect(requirementMet(spec, after, terms)).to.equal(true)
        const left = marginOf(after, terms.fundingIndex)
        expect(left).to.equal(marginOf(position, terms.fundingIndex) + moved)
        // One wei less would miss the target, unless all margin has left and profit covers the rest.
        if (moved >= 0n && moved < 1n) return
        if (left > 0n || moved > 0n) expect((equity - ONE) * times < notional).to.equal(true)
      }),
      { numRuns: 500 },
    )
  })

  it('when the same leverage is set twice, the second adjustment moves nothing', () => {
    fc.assert(
      fc.property(anyCase, fc.integer({ min: 1, max: 5 }), ({ spec, position, terms }, leverage) => {
        const first = adjustLeverage(spec, position, { leverage, ...UNBOUNDED }, terms)
        if (!first.ok) throw new Error(first.refusal.code)
        const second = adjustLeverage(spec, first.value.position, { leverage, ...UNBOUNDED }, terms)
        expect(movedOf(second)).to.equal(0n)
      }),
    )
  })
})
