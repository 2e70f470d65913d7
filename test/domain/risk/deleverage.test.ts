import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { exposureOf, isRatioNotWorse } from '../../../domain/positions/margin.ts'
import { FLAT, type Position } from '../../../domain/positions/position.ts'
import { closeAgainst, compareRanks, isDeleverageable, scoreOf } from '../../../domain/risk/deleverage.ts'
import { type Address, ONE, type Quote } from '../../../domain/units.ts'
import { anyMarketCase, worthOf } from '../../support/any-positions.ts'
import { e18, index, perpetual, price, quote, steps } from '../../support/markets.ts'

const NONE = index(0n)
const at = price('100')

const held = (size: number, entry: string, margin: string): Position => ({
  size: steps(size),
  entryNotional: quote(entry),
  foldedMargin: quote(margin),
  leverage: 10,
})

describe('isDeleverageable', () => {
  const isDeleverageableWith = (margin: string, backstop: Parameters<typeof isDeleverageable>[2]) =>
    isDeleverageable(perpetual, held(1000, '100', margin), backstop, NONE, at)
  const rich = { position: FLAT, cap: quote('1000'), free: quote('1000') }

  it('when equity is at most zero, it returns true, whatever the backstop could inherit', () => {
    expect(isDeleverageableWith('0', rich)).to.equal(true)
    expect(isDeleverageableWith('-1', rich)).to.equal(true)
    expect(isDeleverageableWith('-1', 'itself')).to.equal(true)
  })

  it('when the ratio is below MMR, it returns true only if the backstop cannot inherit the position', () => {
    expect(isDeleverageableWith('1', rich)).to.equal(false)
    expect(isDeleverageableWith('1', null)).to.equal(true)
    expect(isDeleverageableWith('1', { ...rich, cap: quote('99') })).to.equal(true)
    expect(isDeleverageableWith('1', { ...rich, free: quote('3') })).to.equal(true)
    expect(isDeleverageableWith('1', 'itself')).to.equal(false)
  })

  it('when the ratio equals MMR, it returns false', () => {
    expect(isDeleverageableWith('2.25', null)).to.equal(false)
  })
})

describe('scoreOf', () => {
  it('when a position is profitable, it is profit on entry times leverage', () => {
    // Short from 125: profit 25 on 125; notional 100 on equity 50.
    expect(scoreOf(perpetual, held(-1000, '125', '25'), NONE, at)).to.equal(e18('0.4'))
    // Long from 80: profit 20 on 80; notional 100 on equity 40.
    expect(scoreOf(perpetual, held(1000, '80', '20'), NONE, at)).to.equal(e18('0.625'))
  })

  it('when a position has no size, profit or equity, it is null', () => {
    expect(scoreOf(perpetual, FLAT, NONE, at)).to.equal(null)
    expect(scoreOf(perpetual, held(1000, '100', '20'), NONE, at)).to.equal(null)
    expect(scoreOf(perpetual, held(-1000, '99', '20'), NONE, at)).to.equal(null)
    expect(scoreOf(perpetual, held(1000, '80', '-20'), NONE, at)).to.equal(null)
  })

  it('when funding is pending, it is computed from profit before funding and equity after it', () => {
    const position = held(1000, '80', '20')
    expect(scoreOf(perpetual, position, index(10n ** 16n), at)).to.equal((e18('0.25') * 100n) / 30n)
  })
})

describe('compareRanks', () => {
  it('when ranks are sorted, the higher score comes first, then the lower address', () => {
    const of = (account: string, score: bigint) => ({ account: account as Address, score })
    const listed = [of('0xb', 1n), of('0xa', 1n), of('0xc', 2n)].sort(compareRanks)
    expect(listed.map(({ account }) => account)).to.deep.equal(['0xc', '0xa', '0xb'])
    expect(compareRanks(of('0xa', 1n), of('0xa', 1n))).to.equal(0)
  })
})

describe('closeAgainst', () => {
  const bankrupt = held(1000, '110', '5')
  const winner = held(-400, '50', '5')

  it('when a leg closes, the bankrupt account gets nothing and the counterparty the rest', () => {
    // Bankruptcy price 105: the counterparty sold 0.4 at 125 and buys it back for 42.
    const leg = closeAgainst(perpetual, bankrupt, winner, steps(1000), NONE, at)
    expect(leg).to.deep.equal({
      steps: 400,
      position: { ...bankrupt, size: 600, entryNotional: quote('66'), foldedMargin: quote('3') },
      counterparty: { ...FLAT, leverage: 10 },
      payout: quote('13'),
    })
  })

  it('when fewer steps are requested than available, it closes only the requested steps', () => {
    expect(closeAgainst(perpetual, bankrupt, winner, steps(100), NONE, at)?.steps).to.equal(100)
  })

  it('when the counterparty is on the same side, unprofitable, flat or could not pay, it returns null', () => {
    const refused = (other: Position) => closeAgainst(perpetual, bankrupt, other, steps(10), NONE, at)
    expect(refused(bankrupt)).to.equal(null)
    expect(refused(held(-400, '40', '5'))).to.equal(null)
    expect(refused(FLAT)).to.equal(null)
    // Sold at 101 with margin for 3 more: 105 exceeds both.
    expect(refused(held(-1000, '101', '3'))).to.equal(null)
    expect(closeAgainst(perpetual, FLAT, winner, steps(10), NONE, at)).to.equal(null)
  })

  it('when any leg closes, value is conserved to the wei at every price, and no ratio gets worse', () => {
    const seen = { closed: 0 }
    fc.assert(
      fc.property(
        anyMarketCase(2),
        fc.integer({ min: 1, max: 3_000_000 }),
        fc.bigInt({ min: 0n, max: 2n * ONE }),
        ({ spec, positions, index, oracle }, requested, any) => {
          const [a, b] = positions as [Position, Position]
          const leg = closeAgainst(spec, a, b, steps(requested), index, oracle)
          if (leg === null) return
          seen.closed++
          const after = [leg.position, leg.counterparty]
          const worth = worthOf(spec, after, index, any) + leg.payout * ONE
          expect(worth).to.equal(worthOf(spec, [a, b], index, any))
          expect(leg.payout >= 0n).to.equal(true)
          expect(leg.position.size + leg.counterparty.size).to.equal(a.size + b.size)
          expect(Math.abs(leg.position.size)).to.equal(Math.abs(a.size) - leg.steps)
          for (const [before, rest] of [
            [a, leg.position],
            [b, leg.counterparty],
          ] as const) {
            if (rest.size === 0) expect(rest).to.deep.equal({ ...FLAT, leverage: before.leverage })
            else {
              const exposures = [before, rest].map((each) => exposureOf(spec, each, index, oracle))
              expect(isRatioNotWorse(exposures[0]!, exposures[1]!)).to.equal(true)
            }
          }
        },
      ),
      { numRuns: 500 },
    )
    expect(seen.closed).to.be.greaterThan(20)
  })

  it('when any number of pieces closes, the account keeps nothing of the closed share and owes nothing for it', () => {
    const whole = closeAgainst(perpetual, bankrupt, held(-1000, '130', '5'), steps(1000), NONE, at)
    let [account, counterparty, paid] = [bankrupt, held(-1000, '130', '5'), 0n]
    for (const piece of [333, 1, 600, 66]) {
      const leg = closeAgainst(perpetual, account, counterparty, steps(piece), NONE, at)
      account = leg?.position as Position
      counterparty = leg?.counterparty as Position
      paid += leg?.payout as bigint
    }
    expect([account, counterparty]).to.deep.equal([whole?.position, whole?.counterparty])
    expect(paid).to.equal(whole?.payout as Quote)
  })
})
