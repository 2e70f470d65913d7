import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { BenchMarket } from '../../bench/intake/orders.ts'
import { planRecorded } from '../../bench/mix/recorded.ts'
import type { Ticks } from '../../domain/units.ts'
import { perpetual } from '../support/markets.ts'

const MARKET: BenchMarket = { spec: perpetual, oracle: 50_000 as Ticks }
const LINES = [
  'time,type,order_id,size,price,direction',
  '34200.0,1,7,100,5000000,1',
  '34200.5,1,8,10,5010000,-1',
  '34201.0,4,7,40,5000000,1',
  '34202.0,3,8,10,5010000,-1',
  '34300.0,1,9,10,5000000,1',
]

describe('recorded flow of a measurement', () => {
  let dir: string
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'clearbatch-recorded-'))
    writeFileSync(join(dir, 'flow.csv'), LINES.join('\n'))
  })
  after(() => rmSync(dir, { recursive: true }))

  it('when a recording is planned, orders, cancels and prices keep its times at the speed, up to the end', async () => {
    const terms = { file: join(dir, 'flow.csv'), speed: 2, seconds: 10, accounts: 4 }
    const { orders, cancels, prices } = await planRecorded(MARKET, terms)
    expect(orders.map(({ kind, side, at, price }) => [kind, side, at, price])).to.deep.equal([
      ['resting', 'LONG', 0, 50_000],
      ['resting', 'SHORT', 250, 50_100],
      ['crossing', 'SHORT', 500, 50_000],
    ])
    // First the remainder of the aggressor, then the recorded cancel.
    expect(cancels.map(({ at, order }) => [at, order])).to.deep.equal([
      [2_000, 2],
      [1_000, 1],
    ])
    expect(prices.map(({ at }) => at)).to.deep.equal([500])
    expect(
      new Set(orders.map(({ account, side }) => (account % 2 === 0) === (side === 'LONG'))),
    ).to.deep.equal(new Set([true]))
  })
})
