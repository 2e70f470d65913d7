import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { notionalAt } from '../../../domain/market/market.ts'
import {
  applyFill,
  bankruptcyPrice,
  closingSteps,
  FLAT,
  marginOf,
  marginPerStep,
  openingBasis,
  type Position,
} from '../../../domain/positions/position.ts'
import type { Price, Quote } from '../../../domain/units.ts'
import { binary, index, perpetual, price, quote, rate, steps, ticks } from '../../support/markets.ts'
import { aFill, mustFill, NO_FUNDING, terms } from '../support/fills.ts'

/** 1 BTC at 100, leverage 10. */
const longOne = mustFill(perpetual, FLAT, {}).position
const shortOne = mustFill(perpetual, FLAT, { side: 'SHORT' }).position

describe('applyFill', () => {
  it('when the account is flat, it opens with margin at the leverage and the fee from the free balance', () => {
    const { position, opened, freeDelta, fee } = mustFill(perpetual, FLAT, {})
    expect(position).to.deep.equal({
      size: 1000,
      entryNotional: quote('100'),
      foldedMargin: quote('10'),
      leverage: 10,
    })
    expect([opened, fee, freeDelta]).to.deep.equal([1000, quote('0.05'), quote('-10.05')])
  })

  it('when the fill is a maker fill, the fee is at the maker rate', () => {
    expect(mustFill(perpetual, FLAT, { takerSteps: steps(0) }).fee).to.equal(0n)
    expect(mustFill(perpetual, FLAT, { takerSteps: steps(400) }).fee).to.equal(quote('0.02'))
  })

  it('when a long in profit closes, it pays margin and profit less the fee', () => {
    const { position, freeDelta, fee } = mustFill(perpetual, longOne, { side: 'SHORT', price: ticks(1100) })
    expect(position).to.deep.equal({ size: 0, entryNotional: 0n, foldedMargin: 0n, leverage: 10 })
    expect(fee).to.equal(quote('0.055'))
    expect(freeDelta).to.equal(quote('19.945'))
  })

  it('when a close returns less than its fee, the fee is capped at the proceeds', () => {
    const { freeDelta, fee } = mustFill(perpetual, longOne, { side: 'SHORT', price: ticks(900) })
    expect([fee, freeDelta]).to.deep.equal([0n, 0n])
    const spare = mustFill(
      perpetual,
      { ...longOne, foldedMargin: quote('10.01') },
      { side: 'SHORT', price: ticks(900) },
    )
    expect([spare.fee, spare.freeDelta]).to.deep.equal([quote('0.01'), 0n])
  })

  it('when a close is below bankruptcy, it refuses and returns the negative proceeds', () => {
    const fill = aFill(perpetual, { side: 'SHORT', price: ticks(899) })
    expect(applyFill(perpetual, longOne, fill, terms(perpetual))).to.deep.equal({
      ok: false,
      refusal: { code: 'NEGATIVE_PROCEEDS', proceeds: quote('-0.1') },
    })
  })

  it('when a fill flips the position, it closes first, then opens with its own margin and leverage', () => {
    const flip = { side: 'SHORT' as const, price: ticks(1100), steps: steps(1500), leverage: 5 }
    const { position, closed, opened, freeDelta, fee, closingFee } = mustFill(perpetual, longOne, flip)
    expect([closed, opened]).to.deep.equal([1000, 500])
    expect(position).to.deep.equal({
      size: -500,
      entryNotional: quote('55'),
      foldedMargin: quote('11'),
      leverage: 5,
    })
    expect([closingFee, fee]).to.deep.equal([quote('0.055'), quote('0.0825')])
    expect(freeDelta).to.equal(quote('8.9175'))
  })

  it('when a flip has taker steps, they apply to the closing steps first', () => {
    const flip = { side: 'SHORT' as const, steps: steps(1500), takerSteps: steps(1200) }
    const { fee, closingFee } = mustFill(perpetual, longOne, flip)
    expect([closingFee, fee]).to.deep.equal([quote('0.05'), quote('0.06')])
  })

  it("when a fill grows the position, the leverage becomes the order's, and when it closes in part, the leverage stays", () => {
    const grown = mustFill(perpetual, longOne, { leverage: 4 }).position
    expect(grown.leverage).to.equal(4)
    expect(grown.foldedMargin).to.equal(quote('35'))
    expect(
      mustFill(perpetual, grown, { side: 'SHORT', leverage: 20, steps: steps(1) }).position.leverage,
    ).to.equal(4)
  })

  it('when funding has accrued since the last fill, a long has paid the amount that a short has received', () => {
    const paid = index(10n ** 15n)
    expect(marginOf(longOne, paid)).to.equal(quote('9'))
    expect(marginOf(shortOne, paid)).to.equal(quote('11'))
    const { freeDelta } = mustFill(perpetual, longOne, { side: 'SHORT', takerSteps: steps(0) }, paid)
    expect(freeDelta).to.equal(quote('9'))
  })

  it('when a partial close does not divide evenly, margin rounds down and entry in favour of the rest', () => {
    const odd = { entryNotional: 1_000_000_001n as Quote, foldedMargin: 500_000_001n as Quote, leverage: 2 }
    const long = mustFill(
      perpetual,
      { ...odd, size: steps(3) },
      { side: 'SHORT', price: ticks(1), steps: steps(1) },
    )
    expect(long.released).to.equal(166_666_667n)
    expect(long.position.entryNotional).to.equal(666_666_667n)
    const cheap = { ...odd, size: steps(-3), entryNotional: (10n ** 15n + 1n) as Quote }
    const short = mustFill(perpetual, cheap, { price: ticks(1), steps: steps(1) })
    expect(short.position.entryNotional).to.equal(10n ** 15n + 1n - (10n ** 15n + 1n) / 3n)
  })

  it('when the position would not fit its slot, it refuses and returns the field', () => {
    const cases = [
      { position: { ...longOne, size: Number.MAX_SAFE_INTEGER as Position['size'] }, field: 'size' },
      { position: { ...longOne, entryNotional: ((1n << 92n) - 1n) as Quote }, field: 'entryNotional' },
      { position: { ...longOne, foldedMargin: ((1n << 91n) - 1n) as Quote }, field: 'foldedMargin' },
    ]
    for (const { position, field } of cases) {
      const verdict = applyFill(perpetual, position, aFill(perpetual, {}), terms(perpetual))
      expect(verdict).to.deep.equal({ ok: false, refusal: { code: 'OUT_OF_RANGE', field } })
    }
  })
})

describe('openingBasis', () => {
  const oracle = price('100')
  const table = [
    { name: 'buy', spec: perpetual, side: 'LONG', limit: 1100, clearing: 1010, basis: '101' },
    { name: 'limit sell', spec: perpetual, side: 'SHORT', limit: 990, clearing: 1010, basis: '99' },
    {
      name: 'market sell above the oracle',
      spec: perpetual,
      side: 'SHORT',
      limit: 0,
      clearing: 1010,
      basis: '100',
    },
    {
      name: 'market sell below the oracle',
      spec: perpetual,
      side: 'SHORT',
      limit: 0,
      clearing: 990,
      basis: '99',
    },
    { name: 'binary buy', spec: binary, side: 'LONG', limit: 400, clearing: 370, basis: '0.37' },
    { name: 'binary limit sell', spec: binary, side: 'SHORT', limit: 300, clearing: 370, basis: '0.63' },
    { name: 'binary market sell', spec: binary, side: 'SHORT', limit: 0, clearing: 370, basis: '0.63' },
  ] as const
  for (const { name, spec, side, limit, clearing, basis } of table) {
    it(`when the order is a ${name}, it is ${basis}`, () => {
      expect(openingBasis(spec, { side, limit: ticks(limit) }, ticks(clearing), oracle)).to.equal(
        price(basis),
      )
    })
  }

  it('when the margin per step is fractional, it rounds up', () => {
    expect(marginPerStep(perpetual, price('100'), 3)).to.equal(33_333_333_333_333_334n)
    expect(marginPerStep(perpetual, 1n as Price, 7)).to.equal(1n)
  })
})

describe('closingSteps', () => {
  it('when a fill exceeds the position or is on its side, it closes at most the position, and nothing on its own side', () => {
    expect(closingSteps(steps(10), 'SHORT', steps(4))).to.equal(4)
    expect(closingSteps(steps(10), 'SHORT', steps(40))).to.equal(10)
    expect(closingSteps(steps(10), 'LONG', steps(4))).to.equal(0)
    expect(closingSteps(steps(-10), 'LONG', steps(4))).to.equal(4)
    expect(closingSteps(steps(0), 'LONG', steps(4))).to.equal(0)
  })
})

describe('bankruptcyPrice', () => {
  it('when a position is open, it is the price of zero equity, rounded to the solvent side', () => {
    expect(bankruptcyPrice(perpetual, longOne, NO_FUNDING)).to.equal(900)
    expect(bankruptcyPrice(perpetual, shortOne, NO_FUNDING)).to.equal(1100)
    expect(bankruptcyPrice(perpetual, longOne, index(1n))).to.equal(901)
    expect(bankruptcyPrice(perpetual, shortOne, index(-1n))).to.equal(1099)
  })

  it('when a long has more margin than entry, it is 0', () => {
    expect(bankruptcyPrice(perpetual, { ...longOne, foldedMargin: quote('101') }, NO_FUNDING)).to.equal(0)
  })

  it('when no price is solvent for a short, it is negative', () => {
    expect(bankruptcyPrice(perpetual, { ...shortOne, foldedMargin: quote('-101') }, NO_FUNDING)).to.be.below(
      0,
    )
  })

  const anyPosition = fc.record({
    size: fc.integer({ min: 1, max: 1000 }),
    isLong: fc.boolean(),
    entryPerStep: fc.bigInt({ min: 10n ** 15n, max: 10n ** 17n }),
    margin: fc.bigInt({ min: -(10n ** 16n), max: 10n ** 18n }),
    dust: fc.bigInt({ min: 0n, max: 999n }),
  })

  it('when a position closes at it in any pieces, every close is accepted, and two ticks beyond the whole is insolvent', () => {
    fc.assert(
      fc.property(
        anyPosition,
        fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 8 }),
        (p, closes) => {
          let position: Position = {
            size: steps(p.isLong ? p.size : -p.size),
            entryNotional: (p.entryPerStep * BigInt(p.size) + p.dust) as Quote,
            foldedMargin: p.margin as Quote,
            leverage: 1,
          }
          const at = bankruptcyPrice(perpetual, position, NO_FUNDING)
          if (at < 0) return
          const side = p.isLong ? ('SHORT' as const) : ('LONG' as const)
          const beyond = p.isLong ? at - 2 : at + 2
          if (beyond >= 0) {
            const whole = notionalAt(perpetual, ticks(beyond), steps(p.size))
            const signed = p.isLong ? whole - position.entryNotional : position.entryNotional - whole
            expect(p.margin + signed < 0n).to.equal(true)
          }
          for (const close of closes) {
            const left = Math.abs(position.size)
            if (left === 0) break
            const fill = aFill(perpetual, { side, price: at, steps: steps(Math.min(close, left)) })
            const verdict = applyFill(perpetual, position, fill, terms(perpetual))
            expect(verdict.ok).to.equal(true)
            if (verdict.ok) position = verdict.value.position
          }
        },
      ),
      { numRuns: 300 },
    )
  })

  it('when a part of the position closes on the solvent side, later closes keep the bound', () => {
    fc.assert(
      fc.property(anyPosition, fc.integer({ min: 1, max: 999 }), (p, close) => {
        const position: Position = {
          size: steps(p.size),
          entryNotional: (p.entryPerStep * BigInt(p.size) + p.dust) as Quote,
          foldedMargin: p.margin as Quote,
          leverage: 1,
        }
        if (close >= p.size) return
        const at = bankruptcyPrice(perpetual, position, NO_FUNDING)
        const verdict = applyFill(
          perpetual,
          position,
          aFill(perpetual, { side: 'SHORT', price: ticks(at + 5), steps: steps(close) }),
          terms(perpetual),
        )
        if (!verdict.ok) throw new Error('solvent')
        expect(bankruptcyPrice(perpetual, verdict.value.position, NO_FUNDING)).to.be.at.most(at)
      }),
    )
  })

  it('when fees are on or off, a close never takes more than its proceeds', () => {
    fc.assert(
      fc.property(anyPosition, rateArbitrary(), (p, takerFee) => {
        const position = {
          ...longOne,
          size: steps(p.size),
          entryNotional: (p.entryPerStep * BigInt(p.size)) as Quote,
          foldedMargin: p.margin as Quote,
        }
        const at = ticks(bankruptcyPrice(perpetual, position, NO_FUNDING) + 1)
        const fill = aFill(perpetual, { side: 'SHORT', price: at, steps: steps(p.size) })
        const verdict = applyFill(perpetual, position, fill, { ...terms(perpetual), takerFee })
        expect(verdict.ok && verdict.value.freeDelta >= 0n).to.equal(true)
      }),
    )
  })
})

const rateArbitrary = () =>
  fc.integer({ min: 0, max: 50_000 }).map((ppm) => rate(`0.${String(ppm).padStart(6, '0')}`))
