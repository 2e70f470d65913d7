import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { priceBand } from '../../../domain/market/band.ts'
import { exposureOf, isLiquidatable, isRatioAtLeast } from '../../../domain/positions/margin.ts'
import { bankruptcyPrice, FLAT, type Position } from '../../../domain/positions/position.ts'
import { graceEndsAt, isPastGrace } from '../../../domain/risk/bank-pause.ts'
import { isDeleverageable } from '../../../domain/risk/deleverage.ts'
import { byRank } from '../../../domain/risk/deleveraging-legs.ts'
import { type LadderInput, NOT_STARTED, needsCounterparties, nextStep } from '../../../domain/risk/ladder.ts'
import { type Backstop, inherit, isInheritable } from '../../../domain/risk/liquidation.ts'
import type { Address, Millis, Rate, Seconds } from '../../../domain/units.ts'
import { anyMarketCase } from '../../support/any-positions.ts'
import { binary, index, perpetual, price, quote, steps } from '../../support/markets.ts'

const held = (size: number, entry: string, margin: string): Position => ({
  size: steps(size),
  entryNotional: quote(entry),
  foldedMargin: quote(margin),
  leverage: 10,
})

const rich: Backstop = { position: FLAT, cap: quote('1000000'), free: quote('1000000') }
/** Sold 1.0 at 150: has a profit at 100, and could pay a bankruptcy price of 130. */
const winner = { account: '0x01' as Address, position: held(-1000, '150', '10') }

/** A long of 1.0 from 100 with this margin, at an oracle price of 100. */
const long = (margin: string, more: Partial<LadderInput> = {}): LadderInput => ({
  spec: perpetual,
  position: held(1000, '100', margin),
  index: index(0n),
  oracle: price('100'),
  asOf: 10_000_000 as Millis,
  pauseEndsAt: 0 as Seconds,
  backstop: rich,
  pool: quote('1000000'),
  counterparties: () => [winner],
  progress: NOT_STARTED,
  ...more,
})

describe('nextStep', () => {
  it('when the position is flat or at the threshold, it ends', () => {
    expect(nextStep(long('9', { position: FLAT }))).to.deep.equal({ kind: 'end', reason: 'closed' })
    expect(nextStep(long('2.75'))).to.deep.equal({ kind: 'end', reason: 'healthy' })
  })

  it('when the ratio is below the threshold, it forces the whole of a small position', () => {
    expect(nextStep(long('2.749999999999999999'))).to.deep.equal({ kind: 'force', steps: 1000 })
    expect(nextStep(long('1.5'))).to.deep.equal({ kind: 'force', steps: 1000 })
  })

  it('when its forced order rests, it stays', () => {
    const progress = { ...NOT_STARTED, resting: steps(300) }
    expect(nextStep(long('2', { progress }))).to.deep.equal({ kind: 'rest' })
  })

  it('when the notional is above 100,000 USDM, it forces a fifth of the size at the start, rounded up', () => {
    const forced = (size: number, start: number) => {
      const value = BigInt(size) * 10n ** 17n
      const position = {
        ...held(size, '0', '0'),
        entryNotional: value,
        foldedMargin: value / 50n,
      } as Position
      const progress = { ...NOT_STARTED, startSteps: steps(start) }
      return nextStep(long('0', { position, progress }))
    }
    expect(forced(1_000_000, 0)).to.deep.equal({ kind: 'force', steps: 1_000_000 })
    expect(forced(1_000_001, 0)).to.deep.equal({ kind: 'force', steps: 200_001 })
    expect(forced(1_600_000, 2_000_002)).to.deep.equal({ kind: 'force', steps: 400_001 })
    expect(forced(1_200_000, 9_000_000)).to.deep.equal({ kind: 'force', steps: 1_200_000 })
    expect(forced(900_000, 9_000_000)).to.deep.equal({ kind: 'force', steps: 900_000 })
  })

  it('when the ratio is below two thirds of MMR, the backstop inherits', () => {
    expect(nextStep(long('1.499999999999999999'))).to.deep.equal({ kind: 'inherit' })
    expect(nextStep(long('1', { progress: { ...NOT_STARTED, resting: steps(5) } }))).to.deep.equal({
      kind: 'inherit',
    })
  })

  it('when five batches filled nothing, the backstop inherits below MMR, and the forced order rests above', () => {
    const progress = { startSteps: steps(1000), resting: steps(1000), unfilled: 5 }
    expect(nextStep(long('2.2', { progress }))).to.deep.equal({ kind: 'inherit' })
    expect(nextStep(long('2.25', { progress }))).to.deep.equal({ kind: 'rest' })
    expect(nextStep(long('2.2', { progress: { ...progress, unfilled: 4 } }))).to.deep.equal({ kind: 'rest' })
  })

  it('when the backstop cannot inherit, it deleverages as many steps as leave a rest that the backstop can', () => {
    const legs = (backstop: LadderInput['backstop']) => {
      const step = nextStep(long('1', { backstop }))
      return step.kind === 'deleverage' ? step.legs.map(({ payout: _, ...leg }) => leg) : step.kind
    }
    const leg = { counterparty: winner.account, score: 555_555_555_555_555_554n }
    expect(legs(null)).to.deep.equal([{ ...leg, steps: 1000 }])
    expect(legs({ ...rich, cap: quote('70') })).to.deep.equal([{ ...leg, steps: 300 }])
    // The rest is missing 3.5 per 100 of notional to IMR.
    expect(legs({ ...rich, free: quote('0.7') })).to.deep.equal([{ ...leg, steps: 800 }])
    expect(legs({ ...rich, cap: quote('0') })).to.deep.equal([{ ...leg, steps: 1000 }])
    expect(legs('itself')).to.equal('force')
  })

  it('when no equity is left, it deleverages the whole position, whatever the backstop could inherit', () => {
    const step = nextStep(long('0', { progress: { ...NOT_STARTED, resting: steps(9) } }))
    expect(step.kind === 'deleverage' && step.legs.map((leg) => leg.steps)).to.deep.equal([1000])
    const rest = nextStep(
      long('-1', { counterparties: () => [{ ...winner, position: held(-40, '8', '1') }] }),
    )
    expect(rest.kind === 'deleverage' && rest.legs.map((leg) => leg.steps)).to.deep.equal([40])
  })

  it('when no counterparty qualifies, the backstop inherits a position without equity, or else the book may close it', () => {
    const none = { counterparties: () => [] }
    expect(nextStep(long('-1', none))).to.deep.equal({ kind: 'inherit' })
    expect(nextStep(long('-1', { ...none, backstop: null }))).to.deep.equal({ kind: 'force', steps: 1000 })
    expect(nextStep(long('-5.1', { ...none, backstop: null }))).to.deep.equal({ kind: 'uncovered' })
  })

  it('when a pause has just ended, it waits while the account has equity', () => {
    const pause = { pauseEndsAt: 10_000 as Seconds, asOf: (graceEndsAt(10_000 as Seconds) - 1) as Millis }
    expect(nextStep(long('2', pause))).to.deep.equal({ kind: 'grace' })
    expect(nextStep(long('1', pause))).to.deep.equal({ kind: 'grace' })
    expect(nextStep(long('0', pause)).kind).to.equal('deleverage')
    expect(nextStep(long('2', { ...pause, asOf: graceEndsAt(10_000 as Seconds) })).kind).to.equal('force')
    expect(nextStep(long('3', pause))).to.deep.equal({ kind: 'end', reason: 'healthy' })
  })

  it('when a binary position is fully collateralised, it ends at every price', () => {
    const paid = { spec: binary, position: held(10, '6', '6'), oracle: price('0.000000000000000001') }
    expect(nextStep(long('0', paid))).to.deep.equal({ kind: 'end', reason: 'healthy' })
    const short = { spec: binary, position: held(-10, '6', '4'), oracle: price('0.999999999999999999') }
    expect(nextStep(long('0', short))).to.deep.equal({ kind: 'end', reason: 'healthy' })
  })
})

describe('the ladder as a whole', () => {
  const anyCase = fc.record({
    market: anyMarketCase(8),
    cap: fc.bigInt({ min: 0n, max: 10n ** 25n }),
    free: fc.bigInt({ min: 0n, max: 10n ** 24n }),
    backstop: fc.constantFrom('none', 'itself', 'flat', 'position'),
    unfilled: fc.integer({ min: 0, max: 6 }),
    resting: fc.nat(3),
    pauseEndsAt: fc.constantFrom(0, 9_500),
  })

  type Case = typeof anyCase extends fc.Arbitrary<infer Drawn> ? Drawn : never

  const inputOf = ({ market, cap, free, backstop, ...rest }: Case): LadderInput => {
    const { spec, index, oracle, positions } = market
    const [position, own, ...others] = positions as [Position, Position, ...Position[]]
    const opposite = others
      .map((each, at) => ({ account: `0x0${at}` as Address, position: each }))
      .filter((each) => each.position.size * position.size < 0)
    const capital: Backstop = {
      position: backstop === 'position' ? own : FLAT,
      cap: cap as Backstop['cap'],
      free: free as Backstop['free'],
    }
    return {
      ...{
        spec,
        position,
        index,
        oracle,
        asOf: 10_000_000 as Millis,
        pauseEndsAt: rest.pauseEndsAt as Seconds,
      },
      backstop: backstop === 'none' ? null : backstop === 'itself' ? 'itself' : capital,
      pool: quote('1000000000000'),
      counterparties: () => byRank({ spec, index, oracle }, opposite),
      progress: { startSteps: steps(0), resting: steps(rest.resting), unfilled: rest.unfilled },
    }
  }

  it('when any position is decided, the contract would accept the step, and nothing healthy is liquidated', () => {
    const seen = new Map<string, number>()
    fc.assert(
      fc.property(anyCase, (drawn) => {
        const input = inputOf(drawn)
        const { spec, position, index, oracle, backstop, progress } = input
        let isRead = false
        const counterparties = () => {
          isRead = true
          return input.counterparties()
        }
        const step = nextStep({ ...input, counterparties })
        if (isRead) expect(needsCounterparties(input)).to.equal(true)
        seen.set(step.kind, (seen.get(step.kind) ?? 0) + 1)
        const exposure = exposureOf(spec, position, index, oracle)
        const isPast = isPastGrace(input.pauseEndsAt, input.asOf, exposure.equity)
        expect(step.kind === 'end').to.equal(!isLiquidatable(spec, position, index, oracle))
        if (step.kind !== 'end') expect(step.kind === 'grace').to.equal(!isPast)
        if (step.kind === 'force' || step.kind === 'rest') {
          const { lo, hi } = priceBand(spec, oracle)
          const bankruptcy = bankruptcyPrice(spec, position, index)
          expect(position.size > 0 ? bankruptcy <= hi : bankruptcy >= lo).to.equal(true)
          expect(step.kind === 'rest').to.equal(progress.resting > 0)
        }
        if (step.kind === 'force') {
          expect(step.steps).to.be.within(1, Math.abs(position.size))
          // A position that may be deleveraged still waits for its fifth batch, or has no counterparty.
          if (exposure.equity > 0n && isDeleverageable(spec, position, backstop, index, oracle))
            expect(progress.unfilled < 5 || [...input.counterparties()].length === 0).to.equal(true)
        }
        if (step.kind === 'inherit') {
          expect(isInheritable(spec, position, index, oracle)).to.equal(true)
          expect(inherit(spec, position, backstop as Backstop, index, oracle).ok).to.equal(true)
        }
        if (step.kind === 'deleverage') {
          expect(isDeleverageable(spec, position, backstop, index, oracle)).to.equal(true)
          const closed = step.legs.reduce((sum, leg) => sum + leg.steps, 0)
          expect(closed).to.be.within(1, Math.abs(position.size))
        }
        if (step.kind === 'uncovered') expect(isRatioAtLeast(exposure, spec.mmr as Rate)).to.equal(false)
      }),
      { numRuns: 4_000, seed: 15 },
    )
    for (const kind of ['end', 'grace', 'rest', 'force', 'inherit', 'deleverage', 'uncovered'])
      expect(seen.get(kind) ?? 0, kind).to.be.greaterThan(5)
  })
})
