/** The result of a batch depends neither on the order of its records nor on its division into parts. */
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import {
  binaryExchange,
  chain,
  type Exchange,
  type FillInput,
  futureExchange,
  nextSecond,
  perpetualExchange,
  settle,
} from '../../support/exchange.ts'
import { randomOf } from '../../support/random.ts'
import { audit } from '../support/audit.ts'
import { pass } from '../support/risk.ts'

const ROUNDS = 4

type Random = (end: number) => number

const shuffled = <Item>(items: readonly Item[], random: Random): Item[] =>
  items
    .map((item) => ({ item, place: random(2 ** 31) }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item)

/** Pairs of a buyer and a seller of the same quantity, of which one is the taker: each pair is balanced. */
function drawPairs(users: readonly Wallet[], random: Random, leverage: number): FillInput[][] {
  return Array.from({ length: 3 + random(3) }, () => {
    const [buyer, seller] = shuffled(users, random) as [Wallet, Wallet]
    const fill = 1 + random(300)
    const taker = random(2) === 0 ? fill : 0
    const share = { fill, leverage: 1 + random(leverage) }
    return [
      { by: buyer, side: 'LONG', taker, ...share },
      { by: seller, side: 'SHORT', taker: fill - taker, ...share },
    ]
  })
}

/** The fills grouped by account, in the given order of accounts. */
const byAccount = (fills: readonly FillInput[], order: readonly Wallet[]): FillInput[] =>
  order.flatMap((user) => fills.filter(({ by }) => by === user))

/** Everything that a batch can change. */
async function stateOf({ trader, bank, spec, users }: Exchange): Promise<bigint[]> {
  const { pool, fees } = await bank.market(spec.trader)
  const held = await Promise.all(
    users.map(async ({ address }) => {
      const { size, entryNotional, margin, leverage } = await trader.position(address)
      return [size, entryNotional, margin, leverage, (await bank.account(address)).free]
    }),
  )
  return [pool, fees, ...held.flat()]
}

describe('a batch', () => {
  for (const [fixture, price] of [
    [perpetualExchange, 1_003],
    [futureExchange, 2_001],
    [binaryExchange, 333],
  ] as const) {
    it(`${fixture.name}: has the same result for any order of accounts and any division into parts`, async () => {
      const exchange = await (await chain()).networkHelpers.loadFixture(fixture)
      const { connection, users, spec } = exchange
      const random = randomOf(price)
      for (let round = 0; round < ROUNDS; round++) {
        await pass(exchange, 5)
        const ticks = price - 7 + random(15)
        const pairs = drawPairs(users, random, Math.min(3, spec.maxLeverage))
        const fills = pairs.flat()
        const asOf = ((await nextSecond(exchange)) * 1000) as never
        const snapshot = await connection.networkHelpers.takeSnapshot()

        await settle(exchange, { price: ticks, asOf, fills: byAccount(fills, users) })
        const whole = await stateOf(exchange)
        await snapshot.restore()

        await settle(exchange, { price: ticks, asOf, fills: byAccount(fills, shuffled(users, random)) })
        expect(await stateOf(exchange)).to.deep.equal(whole)
        await snapshot.restore()

        // One part per pair.
        for (const [index, pair] of pairs.entries()) {
          const { batchId } = await exchange.trader.clock()
          const part = {
            part: index + 1,
            parts: pairs.length,
            batchId: Number(batchId) + (index === 0 ? 1 : 0),
          }
          await settle(exchange, { price: ticks, asOf, fills: pair, observedAt: asOf, ...part })
        }
        expect(await stateOf(exchange)).to.deep.equal(whole)
        await audit(exchange)
      }
    }).timeout(60_000)
  }
})
