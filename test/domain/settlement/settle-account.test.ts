import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { oneInTicks, priceOf } from '../../../domain/market/market.ts'
import {
  bankruptcyPrice,
  FLAT,
  openingBasis,
  type Position,
  type PositionFill,
} from '../../../domain/positions/position.ts'
import { settleAccount } from '../../../domain/settlement/settle-account.ts'
import { index, markets, perpetual, price, quote, rate, steps, ticks } from '../../support/markets.ts'

const terms = {
  fundingIndex: index(0n),
  makerFee: rate('0'),
  takerFee: rate('0.0005'),
  oracle: price('100'),
}
const fill = (side: 'LONG' | 'SHORT', at: number, count: number, leverage = 20): PositionFill => ({
  side,
  price: ticks(at),
  steps: steps(count),
  takerSteps: steps(count),
  leverage,
  basis: openingBasis(perpetual, { side, limit: ticks(at) }, ticks(at), terms.oracle),
})
const long: Position = {
  size: steps(1000),
  entryNotional: quote('100'),
  foldedMargin: quote('10'),
  leverage: 10,
}

describe('settleAccount', () => {
  it('when a part has several fills of an account, it adds them up', () => {
    const verdict = settleAccount(
      perpetual,
      long,
      [fill('SHORT', 1000, 600), fill('SHORT', 1000, 400)],
      terms,
    )
    if (!verdict.ok) throw new Error(verdict.refusal.code)
    expect(verdict.value.position.size).to.equal(0)
    expect(verdict.value.fee).to.equal(quote('0.05'))
    expect(verdict.value.freeDelta).to.equal(quote('9.95'))
    expect(verdict.value.results.map((result) => result.closed)).to.deep.equal([600, 400])
  })

  it('when an order opens beyond its opening bound, it refuses the account', () => {
    const verdict = settleAccount(perpetual, FLAT, [fill('LONG', 1006, 100)], terms)
    expect(verdict).to.deep.equal({ ok: false, refusal: { code: 'UNDER_MARGINED' } })
    expect(settleAccount(perpetual, FLAT, [fill('LONG', 1005, 100)], terms).ok).to.equal(true)
  })

  it('when a later fill restores the ratio that an earlier one lowered, it accepts, because it checks once at the end', () => {
    const fills = [fill('LONG', 1006, 100), { ...fill('LONG', 1006, 100), leverage: 2 }]
    expect(settleAccount(perpetual, FLAT, fills, terms).ok).to.equal(true)
  })

  it('when a fill is refused by the position, it returns the index of the fill', () => {
    const verdict = settleAccount(perpetual, long, [fill('SHORT', 1000, 1), fill('SHORT', 899, 999)], terms)
    expect(verdict).to.deep.include({ ok: false }).and.have.nested.property('refusal.fill', 1)
    expect(verdict).to.have.nested.property('refusal.code', 'NEGATIVE_PROCEEDS')
  })

  it('when a pure close is at the bankruptcy price or better, it settles at any ratio', () => {
    const anyPosition = fc.record({
      spec: fc.constantFrom(...markets),
      isLong: fc.boolean(),
      size: fc.integer({ min: 1, max: 10_000 }),
      entry: fc.integer({ min: 1, max: 999 }),
      dust: fc.bigInt({ min: 0n, max: 999n }),
      margin: fc.bigInt({ min: -(10n ** 17n), max: 10n ** 19n }),
      share: fc.integer({ min: 1, max: 100 }),
      oracle: fc.integer({ min: 1, max: 999 }),
    })
    fc.assert(
      fc.property(anyPosition, ({ spec, isLong, size, entry, dust, margin, share, oracle }) => {
        const tickValue = (spec.tick * spec.step) / 10n ** 18n
        const position = {
          size: steps(isLong ? size : -size),
          entryNotional: BigInt(size) * BigInt(entry) * tickValue + dust,
          foldedMargin: margin,
          leverage: 3,
        } as Position
        const bound = bankruptcyPrice(spec, position, index(0n))
        const highest = spec.kind === 'binary_future' ? oneInTicks(spec) - 1 : 10_000
        const at = isLong ? Math.max(bound, 1) : Math.min(bound, highest)
        if (at < 1 || at > highest) return
        const close = Math.max(1, Math.floor((size * share) / 100))
        const verdict = settleAccount(spec, position, [fill(isLong ? 'SHORT' : 'LONG', at, close)], {
          ...terms,
          oracle: priceOf(spec, ticks(oracle)),
        })
        expect(verdict.ok).to.equal(true)
      }),
      { numRuns: 300 },
    )
  })
})
