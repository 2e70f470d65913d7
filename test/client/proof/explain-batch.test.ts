/** The explanation of a batch finds the price's interval again, by a walk over ranges that shares no code with the auction. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { fromE18, toE18 } from '../../../client/decimals.ts'
import { batchPicture } from '../../../client/proof/batch-picture.ts'
import { explainBatch } from '../../../client/proof/explain-batch.ts'
import { clear } from '../../../domain/auction/auction.ts'
import type { Cleared } from '../../../domain/auction/clearing.ts'
import { statementFrom } from '../../../domain/proof/wire.ts'
import { anyBatch, isCleared, toInput } from '../../domain/support/any-auction.ts'
import { bigBatch } from '../../domain/support/big-batch.ts'
import { provenBatch } from '../../domain/support/proven.ts'

const explained = (clearing: Cleared) => {
  const statement = statementFrom(provenBatch(clearing).proof.statement)
  return { statement, explanation: explainBatch(statement) }
}
const big = (seed: number) =>
  explained(clear(toInput(bigBatch({ seed, orders: 60, accounts: 30, holders: 10 }))) as Cleared)

const anyCleared: fc.Arbitrary<Cleared> = anyBatch({ minOrders: 5 })
  .map((batch) => clear(toInput(batch)))
  .filter(isCleared)

describe('client/proof/explain-batch', () => {
  it('when any batch is explained, its ranges cover the band, and the rule agrees with the intervals', () => {
    fc.assert(
      fc.property(anyCleared, (clearing) => {
        const { explanation, statement } = explained(clearing)
        const { ranges, band, largest_volume, smallest_surplus, price, rule, volume } = explanation
        const { tick, step } = statement.market
        const [first, last] = [ranges[0], ranges.at(-1)]
        expect([first?.from, last?.to]).to.deep.equal(band)
        for (const [at, { from }] of ranges.entries())
          if (at > 0) expect(toE18(from)).to.equal(toE18(ranges[at - 1]?.to as string) + tick)
        const clearingRanges = ranges.filter((range) => range.clearing)
        expect(clearingRanges).to.have.length(1)
        const { demand, supply } = statement.result
        expect(clearingRanges[0]).to.include({
          demand: fromE18(BigInt(demand) * step),
          supply: fromE18(BigInt(supply) * step),
          volume,
        })
        const within = ([lowest, highest]: readonly [string, string]): boolean =>
          toE18(lowest) <= toE18(price as string) && toE18(price as string) <= toE18(highest)
        expect([largest_volume, smallest_surplus].every((ends) => ends !== null && within(ends))).to.equal(
          true,
        )
        const isOne = (ends: readonly [string, string] | null): boolean => ends?.[0] === ends?.[1]
        expect(rule === 'volume').to.equal(isOne(largest_volume))
        expect(rule === 'volume' || rule === 'surplus').to.equal(isOne(smallest_surplus))
      }),
      { numRuns: 300 },
    )
  })

  it('when an order fills or ends, its row has quantity, rate, fee and reason, and the rows sum to the volume', () => {
    const { explanation, statement } = big(5)
    const { orders, volume } = explanation
    const bought = orders.filter(({ side }) => side === 'LONG')
    const filled = bought.reduce((sum, order) => sum + toE18(order.filled), 0n)
    expect(fromE18(filled)).to.equal(volume)
    const fees = orders.reduce((sum, order) => sum + toE18(order.fee), 0n)
    expect(fees).to.equal(statement.result.fills.reduce((sum, { fee }) => sum + fee, 0n))
    const ended = orders.filter(({ ended: reason }) => reason !== null)
    expect(ended).to.have.length(statement.result.cancels.length)
    expect(ended.length).to.be.above(0)
  })

  it('when one side is left over, the allocation names it with its share', () => {
    const { explanation, statement } = big(5)
    const { demand, supply } = statement.result
    expect(demand).not.to.equal(supply)
    const left = demand > supply ? 'Buys' : 'Sells'
    const eligible = fromE18(BigInt(Math.max(demand, supply)) * statement.market.step)
    expect(explanation.allocation).to.match(
      new RegExp(`^${left} are left over: each fills .+ / ${eligible} of`),
    )
  })

  it('when nothing crosses, there is no price, and every range has the volume that it has', () => {
    const { statement } = big(5)
    const result = { ...statement.result, price: null, rule: null, volume: 0, tranches: [], fills: [] }
    const bare = { ...statement, result: { ...result, cancels: [], pairs: [], parts: [] } } as never
    const explanation = explainBatch(bare)
    expect(explanation).to.include({ price: null, rule: null, largest_volume: null, smallest_surplus: null })
    expect(explanation.ranges).to.have.length(1)
    expect(explanation.allocation).to.equal('Nothing was traded.')
    expect(batchPicture(bare, 'none')).to.not.match(/NaN|Infinity/)
  })

  it('when a batch is drawn, the picture has both curves, the price and an escaped title', () => {
    const { statement } = big(5)
    const picture = batchPicture(statement, 'a < b & c')
    expect(picture).to.include('a &lt; b &amp; c').and.to.include('class="demand"').and.to.include('<circle')
    expect(picture).to.not.match(/NaN|Infinity|undefined/)
  })
})
