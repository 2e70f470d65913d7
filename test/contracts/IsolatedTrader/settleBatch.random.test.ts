import { expect } from 'chai'
import { binaryExchange, chain, futureExchange, perpetualExchange, settle } from '../../support/exchange.ts'
import { randomOf } from '../../support/random.ts'
import { audit, rebuild } from '../support/audit.ts'
import { randomFills } from '../support/random-batch.ts'

const SEEDS = [1, 2, 3]
const cases = [
  { kind: 'perpetual', fixture: perpetualExchange, middle: 500_000, range: 4_000 },
  { kind: 'future', fixture: futureExchange, middle: 200, range: 6 },
  { kind: 'binary', fixture: binaryExchange, middle: 500, range: 20 },
]

describe('settleBatch: random batches', () => {
  for (const { kind, fixture, middle, range } of cases) {
    for (const seed of SEEDS) {
      it(`given a ${kind} and seed ${seed}, it conserves money and its events rebuild the state`, async () => {
        const exchange = await (await chain()).networkHelpers.loadFixture(fixture)
        const random = randomOf(seed)
        for (let batch = 1; batch <= 12; batch++) {
          const price = middle - range + random(2 * range)
          await settle(exchange, { price, fills: randomFills(exchange, price, batch, random) })
        }
        await audit(exchange)
        expect((await rebuild(exchange)).positions.size).to.be.greaterThan(3)
      })
    }
  }
})
