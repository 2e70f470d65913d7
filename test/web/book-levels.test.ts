import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Level } from '../../client/responses.ts'
import { grouped } from '../../web/trade/book-levels.ts'

const E18 = 10n ** 18n

const level = (side: 'LONG' | 'SHORT', price: string, quantity: string): Level => ({
  side,
  price: Number(price),
  price_e18_raw: String(
    (BigInt(price.replace('.', '')) * E18) / 10n ** BigInt(price.split('.')[1]?.length ?? 0),
  ),
  quantity: Number(quantity),
  quantity_e18_raw: String(BigInt(quantity) * E18),
  order_count: 1,
})

describe('web/trade/book-levels', () => {
  it('when buys are grouped, prices round down, and totals add up from the best', () => {
    const levels = [level('LONG', '100.9', '1'), level('LONG', '100.1', '2'), level('LONG', '99.9', '4')]
    expect(grouped(levels, 'LONG', E18, 10)).to.deep.equal([
      { price: 100n * E18, quantity: 3n * E18, total: 3n * E18, orders: 2 },
      { price: 99n * E18, quantity: 4n * E18, total: 7n * E18, orders: 1 },
    ])
  })

  it('when sells are grouped, prices round up, and a price on the grid stays', () => {
    const levels = [level('SHORT', '101', '1'), level('SHORT', '101.1', '2'), level('SHORT', '102', '3')]
    expect(grouped(levels, 'SHORT', E18, 10).map(({ price, total }) => [price, total])).to.deep.equal([
      [101n * E18, 1n * E18],
      [102n * E18, 6n * E18],
    ])
  })

  it('when there are more rows than fit, the last one is still complete', () => {
    const levels = [level('SHORT', '101', '1'), level('SHORT', '102', '2'), level('SHORT', '102.5', '3')]
    const rows = grouped(levels, 'SHORT', E18, 2)
    expect(rows).to.have.length(2)
    expect(rows.at(-1)?.total).to.equal(3n * E18)
  })
})
