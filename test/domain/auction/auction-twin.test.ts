import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { clear } from '../../../domain/auction/auction.ts'
import { type AnyBatch, anyBatch, positionsOf, toInput } from '../support/any-auction.ts'
import { type SlowClearing, slowClear } from '../support/slow-auction.ts'

const slow = (batch: AnyBatch): SlowClearing => slowClear({ ...batch, positions: positionsOf(batch) })

/** The results of both in one form. */
function fast(batch: AnyBatch) {
  const { price, rule, volume, demand, supply, fills, pairs, cancels, protections } = clear(toInput(batch))
  return {
    price,
    rule,
    volume,
    demand,
    supply,
    fills: fills.map(({ seq, fill }) => [seq, fill]).sort(([a], [b]) => (a as number) - (b as number)),
    pairs: pairs.map(({ buySeq, sellSeq, steps, makerSeq }) => ({ buySeq, sellSeq, steps, makerSeq })),
    selfTrades: cancels.filter(({ reason }) => reason === 'SELF_TRADE').map(({ seq }) => seq),
    protected: cancels.filter(({ reason }) => reason === 'PRICE_PROTECTION').map(({ seq }) => seq),
    protections,
  }
}

function obvious(batch: AnyBatch) {
  const { price, rule, volume, demand, supply, fills, pairs, ...rest } = slow(batch)
  return {
    price,
    rule,
    volume,
    demand,
    supply,
    fills: [...fills].sort(([a], [b]) => a - b),
    pairs,
    selfTrades: rest.selfTrades,
    protected: rest.protected,
    protections: rest.protections,
  }
}

describe('clear and the slow auction', () => {
  it('when any batch is cleared by both, price, rule, fills, pairs and self-trades are equal', () => {
    fc.assert(
      fc.property(anyBatch(), (batch) => {
        expect(fast(batch)).to.deep.equal(obvious(batch))
      }),
      { numRuns: 1500 },
    )
  })
})
