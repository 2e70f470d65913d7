import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { BenchMarket } from '../../bench/intake/orders.ts'
import { type PlannedOrder, planMix } from '../../bench/mix/flow.ts'
import type { Ticks } from '../../domain/units.ts'
import { perpetual } from '../support/markets.ts'

const TERMS = { rate: 100, seconds: 60, accounts: 10, seed: 1 }
const MARKETS: readonly BenchMarket[] = [{ spec: perpetual, oracle: 50_000 as Ticks }]

describe('planned flow of a measurement', () => {
  const { orders, cancels } = planMix(MARKETS, TERMS)
  const shareOf = (kind: PlannedOrder['kind']): number =>
    orders.filter((order) => order.kind === kind).length / orders.length

  it('when a flow is planned, it has the rate and the recorded shares of each kind', () => {
    expect(orders.length / TERMS.seconds).to.be.closeTo(TERMS.rate, 3)
    expect(shareOf('crossing')).to.be.closeTo(0.0685, 0.01)
    expect(shareOf('conditional')).to.be.closeTo(0.02, 0.005)
    // The recording has 0.927 cancels per resting order; here the last ones would end after the flow.
    expect(cancels.length / orders.length).to.be.within(0.7, 0.87)
  })

  it('when an account trades, it only buys or only sells', () => {
    const sides = Map.groupBy(orders, ({ account }) => account)
    expect([...sides.keys()].sort((a, b) => a - b)).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    for (const [account, own] of sides)
      expect(new Set(own.map(({ side }) => side))).to.deep.equal(
        new Set([account % 2 === 0 ? 'LONG' : 'SHORT']),
      )
  })

  it('when orders rest or wait for a trigger, they do not cross the first price', () => {
    for (const { kind, side, price, trigger } of orders) {
      if (kind === 'resting') expect(side === 'LONG' ? price < 50_000 : price > 50_000).to.equal(true)
      if (kind === 'conditional') expect(side === 'LONG' ? trigger > 50_000 : trigger < 50_000).to.equal(true)
    }
  })

  it('when the seed is the same, it plans the same flow', () => {
    expect(planMix(MARKETS, TERMS)).to.deep.equal({ orders, cancels })
    expect(planMix(MARKETS, { ...TERMS, seed: 2 }).orders).to.not.deep.equal(orders)
  })
})
