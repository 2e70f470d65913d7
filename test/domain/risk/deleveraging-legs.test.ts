import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Position } from '../../../domain/positions/position.ts'
import { closedShare, FLAT, marginOf } from '../../../domain/positions/position.ts'
import {
  closeAgainst,
  compareRanks,
  isDeleverageable,
  reduced,
  scoreOf,
} from '../../../domain/risk/deleverage.ts'
import {
  byRank,
  type Counterparty,
  deleveragingLegs,
  type LegTerms,
  MAX_LEGS,
  MOST_ENDED_ORDERS,
  stepsToClose,
} from '../../../domain/risk/deleveraging-legs.ts'
import { type Backstop, inherit } from '../../../domain/risk/liquidation.ts'
import type { Address, Quote, Steps } from '../../../domain/units.ts'
import { anyMarketCase } from '../../support/any-positions.ts'
import { index, perpetual, price, quote, steps } from '../../support/markets.ts'

const PLENTY = quote('1000000000000')
const accountOf = (at: number): Address => `0x${at.toString(16).padStart(40, '0')}` as Address
const winner = (at: number, size: number, entry: bigint): Counterparty => ({
  account: accountOf(at),
  position: { size: steps(-size), entryNotional: entry, foldedMargin: quote('5'), leverage: 5 } as Position,
})
const bankrupt = (size: number): LegTerms => ({
  spec: perpetual,
  position: {
    size: steps(size),
    entryNotional: BigInt(size) * 10n ** 17n,
    foldedMargin: quote('0'),
    leverage: 10,
  } as Position,
  index: index(0n),
  oracle: price('99'),
  backstop: null,
  pool: PLENTY,
})

describe('byRank', () => {
  it("when any positions are ranked, only qualifying positions are returned, in the contract's order", () => {
    fc.assert(
      fc.property(anyMarketCase(30), ({ spec, positions, index, oracle }) => {
        const opposite = positions.map((position, at) => ({
          account: accountOf(at % 7 === 0 ? 99 - at : at),
          position,
        }))
        const ranked = [...byRank({ spec, index, oracle }, opposite)].map(({ account }) => account)
        const sorted = opposite
          .flatMap(({ account, position }) => {
            const score = scoreOf(spec, position, index, oracle)
            return score === null ? [] : [{ account, score }]
          })
          .sort(compareRanks)
        expect(ranked).to.deep.equal(sorted.map(({ account }) => account))
      }),
      { numRuns: 200, seed: 15 },
    )
  })
})

describe('deleveragingLegs', () => {
  it('when counterparties suffice, the legs close exactly the position, the last one in part', () => {
    const ranked = [
      winner(1, 400, 90n * 10n ** 18n),
      winner(2, 300, 50n * 10n ** 18n),
      winner(3, 900, 100n * 10n ** 18n),
    ]
    const legs = deleveragingLegs(bankrupt(1000), ranked)
    expect(legs.map(({ counterparty, steps }) => [counterparty, steps])).to.deep.equal([
      [accountOf(1), 400],
      [accountOf(2), 300],
      [accountOf(3), 300],
    ])
  })

  it('when there are more counterparties than an action closes, it stops at the limit', () => {
    const ranked = Array.from({ length: MAX_LEGS + 5 }, (_, at) => winner(at, 1, 10n ** 18n))
    expect(deleveragingLegs(bankrupt(1000), ranked).length).to.equal(MAX_LEGS)
  })

  it('when the orders that end with the counterparties are too many, the legs stop before them, but never before the first', () => {
    const ranked = [1, 2, 3, 4].map((at) => ({ ...winner(at, 100, 10n ** 19n), orders: 400 }))
    expect(deleveragingLegs(bankrupt(1000), ranked).map(({ counterparty }) => counterparty)).to.deep.equal([
      accountOf(1),
      accountOf(2),
    ])
    const [first, second] = ranked as [(typeof ranked)[0], (typeof ranked)[0]]
    const crowded = [{ ...first, orders: MOST_ENDED_ORDERS + 1 }, second]
    expect(deleveragingLegs(bankrupt(1000), crowded)).to.have.length(1)
  })

  it('when a counterparty cannot be closed, its orders do not count', () => {
    const loser = { account: accountOf(1), position: FLAT, orders: MOST_ENDED_ORDERS }
    const ranked = [loser, { ...winner(2, 400, 4n * 10n ** 19n), orders: 500 }]
    expect(deleveragingLegs(bankrupt(1000), ranked).map(({ steps }) => steps)).to.deep.equal([400])
  })

  it('when the pool is short, the legs pay no more than it has, by rank', () => {
    const ranked = [winner(1, 400, 90n * 10n ** 18n), winner(2, 900, 100n * 10n ** 18n)]
    const all = deleveragingLegs(bankrupt(1000), ranked)
    const paid = (legs: typeof all) => legs.reduce((sum, { payout }) => sum + payout, 0n)
    expect(all.map(({ steps }) => steps)).to.deep.equal([400, 600])
    const pool = ((all[0]?.payout ?? 0n) / 2n) as Quote
    const short = deleveragingLegs({ ...bankrupt(1000), pool }, ranked)
    expect(short.map(({ steps }) => steps)[0]).to.equal(200)
    expect(paid(short) <= pool).to.equal(true)
    expect(deleveragingLegs({ ...bankrupt(1000), pool: 0n as Quote }, ranked)).to.deep.equal([])
  })

  it('when a position is decided with any counterparties, each leg closes its steps in the order of ranks', () => {
    let seen = 0
    fc.assert(
      fc.property(anyMarketCase(12), ({ spec, positions, index, oracle }) => {
        const [position, ...others] = positions as [Position, ...Position[]]
        if (!isDeleverageable(spec, position, null, index, oracle)) return
        const opposite = others.map((each, at) => ({ account: accountOf(at), position: each }))
        const byAccount = new Map(opposite.map((each) => [each.account, each.position]))
        const terms = { spec, position, index, oracle, backstop: null, pool: PLENTY }
        const legs = deleveragingLegs(
          terms,
          byRank(
            terms,
            opposite.filter((each) => each.position.size * position.size < 0),
          ),
        )
        let rest = position
        for (const [at, leg] of legs.entries()) {
          seen++
          const other = byAccount.get(leg.counterparty) as Position
          const closed = closeAgainst(spec, rest, other, leg.steps, index, oracle)
          expect(closed?.steps).to.equal(leg.steps)
          expect(leg.score).to.equal(scoreOf(spec, other, index, oracle))
          rest = closed?.position as Position
          const next = legs[at + 1]
          if (next)
            expect(
              compareRanks({ account: leg.counterparty, ...leg }, { account: next.counterparty, ...next }),
            ).to.equal(-1)
        }
        // Steps are left only if no other counterparty could have closed them.
        const used = new Set(legs.map(({ counterparty }) => counterparty))
        if (rest.size !== 0)
          for (const { account, position: other } of opposite)
            if (!used.has(account))
              expect(closeAgainst(spec, rest, other, steps(1e9), index, oracle)).to.equal(null)
      }),
      { numRuns: 3_000, seed: 15 },
    )
    expect(seen).to.be.greaterThan(500)
  })
})

describe('stepsToClose', () => {
  it('when the backstop cannot inherit, one step less would leave a rest that it cannot inherit either', () => {
    let partial = 0
    fc.assert(
      fc.property(
        anyMarketCase(2),
        fc.bigInt({ min: 0n, max: 1_200n }),
        fc.bigInt({ min: 0n, max: 60n }),
        fc.boolean(),
        ({ spec, positions, index, oracle }, capShare, freeShare, isFlat) => {
          const [position, own] = positions as [Position, Position]
          const value = (BigInt(Math.abs(position.size)) * spec.step * oracle) / 10n ** 18n
          const backstop = {
            position: isFlat ? FLAT : own,
            cap: (value * capShare) / 1000n,
            free: (value * freeShare) / 1000n,
          } as Backstop
          const terms = { spec, position, index, oracle, backstop, pool: PLENTY }
          if (!isDeleverageable(spec, position, backstop, index, oracle)) return
          const needed = stepsToClose(terms)
          const all = Math.abs(position.size)
          expect(needed).to.be.within(1, all)
          const isRest = (closed: number): boolean => {
            const share = closedShare(position, marginOf(position, index), steps(closed))
            return inherit(spec, reduced(position, closed as Steps, share, index), backstop, index, oracle).ok
          }
          if (needed < all) {
            partial++
            expect(isRest(needed)).to.equal(true)
          }
          if (all > 60) return
          for (let fewer = 1; fewer < needed; fewer++)
            expect(isRest(fewer), `${fewer} of ${all}`).to.equal(
              // Without equity the whole position is closed, although the backstop could inherit it.
              marginAt(terms) <= 0n ? isRest(fewer) : false,
            )
        },
      ),
      { numRuns: 6_000, seed: 15 },
    )
    expect(partial).to.be.greaterThan(50)
  })
})

const marginAt = ({ spec, position, index, oracle }: LegTerms): bigint => {
  const value = BigInt(position.size) * spec.step * oracle
  const entry = position.size > 0 ? -position.entryNotional : position.entryNotional
  return (marginOf(position, index) + entry) * 10n ** 18n + value
}
