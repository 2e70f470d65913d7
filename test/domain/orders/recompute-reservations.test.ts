import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  type RecomputedReservations,
  recomputeReservations,
} from '../../../domain/orders/recompute-reservations.ts'
import { reservationPerStep, reservationsOf } from '../../../domain/orders/reservation.ts'
import type { Quote, Steps } from '../../../domain/units.ts'
import { anyBatch } from '../support/any-auction.ts'
import { orders, roundMarket } from '../support/resting.ts'

const spec = roundMarket
const perStep = (limit: number): bigint => {
  const [order] = orders(`A buy ${limit} x1`).all
  return reservationPerStep(spec, order as never)
}

interface Terms {
  readonly size?: number
  readonly free: bigint
  /** Reserved for these orders, and for those of other markets. */
  readonly before?: bigint
  readonly elsewhere?: bigint
}

const weigh = (
  table: string,
  { size = 0, free, before = 0n, elsewhere = 0n }: Terms,
): RecomputedReservations =>
  recomputeReservations(spec, size as Steps, orders(table).all, {
    funds: { free: free as Quote, reserved: (before + elsewhere) as Quote },
    before: before as Quote,
  })

const openables = ({ reservations }: RecomputedReservations) =>
  [...reservations.values()].map(({ openable }) => openable)
const cancelled = ({ cancels }: RecomputedReservations) => cancels.map(({ seq }) => seq)

describe('recomputeReservations', () => {
  const three = 'A buy 100 x10\nB buy 100 x10\nC buy 100 x10'

  it('when the account can just pay for its orders, it cancels none', () => {
    const done = weigh(three, { free: perStep(100) * 30n })
    expect([openables(done), cancelled(done)]).to.deep.equal([[10, 10, 10], []])
  })

  it('when the account is one wei short, it cancels the newest order', () => {
    expect(cancelled(weigh(three, { free: perStep(100) * 30n - 1n }))).to.deep.equal([3])
  })

  it('when the account has nothing, it cancels all orders that reserve, the newest first', () => {
    expect(cancelled(weigh(three, { free: 0n }))).to.deep.equal([3, 2, 1])
  })

  it('when the budget is computed, amounts reserved for these orders count as free, unlike amounts for other orders', () => {
    const before = perStep(100) * 25n
    expect(cancelled(weigh(three, { free: perStep(100) * 30n, before }))).to.deep.equal([])
    expect(cancelled(weigh(three, { free: perStep(100) * 30n, before, elsewhere: 1n }))).to.deep.equal([3])
  })

  it('when the position shrinks, its closing goes to the oldest orders, and orders that reserve nothing stay', () => {
    const table = 'A sell 100 x6 by 1\nB sell 100 x6 by 1\nC sell 100 x6 reduce-only by 1'
    expect(openables(weigh(table, { size: 10, free: 10n ** 30n }))).to.deep.equal([0, 2, 0])
    expect(cancelled(weigh(table, { size: 10, free: 0n }))).to.deep.equal([2])
  })

  it('when any orders are recomputed, the rest is affordable, and no order is cancelled needlessly', () => {
    const seen = { none: 0, some: 0 }
    fc.assert(
      fc.property(
        anyBatch({ accounts: 1, maxOrders: 10 }),
        fc.integer({ min: 0, max: 110 }),
        fc.bigInt({ min: 0n, max: 10n ** 20n }),
        ({ spec: market, orders: all, openPositions }, percent, others) => {
          const size = [...openPositions.values()][0]?.size as Steps
          const needed = reservationsOf(market, size, all).reduce((sum, { amount }) => sum + amount, 0n)
          const budget = (needed * BigInt(percent)) / 100n
          const before = needed / 3n
          const funds = { free: (budget + others) as Quote, reserved: (before + others) as Quote }
          const { reservations, cancels } = recomputeReservations(market, size, all, {
            funds,
            before: before as Quote,
          })

          const gone = cancels.map(({ seq }) => seq)
          const amountOf = (seq: number) => reservations.get(seq as never)?.amount ?? 0n
          const left = [...reservations.keys()]
            .filter((seq) => !gone.includes(seq))
            .reduce((sum, seq) => sum + amountOf(seq), 0n)
          expect(left <= budget).to.equal(true)
          expect(gone).to.deep.equal([...gone].sort((a, b) => b - a))
          const last = gone.at(-1)
          if (last !== undefined) expect(left + amountOf(last) > budget).to.equal(true)
          gone.length > 0 ? seen.some++ : seen.none++
        },
      ),
      { numRuns: 300 },
    )
    expect(Math.min(seen.none, seen.some), JSON.stringify(seen)).to.be.greaterThan(20)
  })
})
