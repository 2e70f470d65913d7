/** However many orders the accounts around a liquidation have, each transaction about it changes a bounded number of them. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { MOST_ENDED_ORDERS } from '../../../domain/risk/deleveraging-legs.ts'
import { expectConsistent } from '../support/invariants.ts'
import { LiquidationRun } from '../support/liquidation-run.ts'
import { insertManyOrders } from '../support/many-orders.ts'
import { addressOf } from '../support/market-fixture.ts'
import { mineOldestPart } from '../support/mine-part.ts'

const PER_ACCOUNT = 450

describe('the orders that one transaction about a liquidation changes', () => {
  it('when counterparties have many reduce-only orders, a deleveraging takes as many of them in rank as their orders allow', async () => {
    const run = await LiquidationRun.open()
    const { fixture, alice, bob, carol } = run
    const shorts = [bob, carol, await fixture.trader('dave'), await fixture.trader('erin')]
    for (const short of shorts) {
      await run.deal(alice, short, 50, 20)
      await mineOldestPart(fixture)
    }
    await insertManyOrders(fixture, {
      ...{ count: shorts.length * PER_ACCOUNT, perAccount: PER_ACCOUNT, reduceOnly: true },
      accounts: shorts.map(({ account }) => account),
    })
    run.restart()
    await run.turn()
    await run.report(949)
    await run.turn()
    const { payload } = await fixture.db
      .selectFrom('actions')
      .selectAll()
      .where('kind', '=', 'deleverage')
      .executeTakeFirstOrThrow()
    const { legs } = payload as unknown as { legs: { counterparty: string; steps: number }[] }
    expect(legs.length * PER_ACCOUNT).to.be.at.most(MOST_ENDED_ORDERS)
    expect(legs.map(({ steps }) => steps)).to.deep.equal([50, 50])
    const ranked = shorts.map(({ wallet }) => addressOf(wallet)).sort()
    expect(
      legs.map(({ counterparty }) => counterparty),
      'equal scores: by address',
    ).to.deep.equal(ranked.slice(0, 2))
    await expectConsistent(fixture)
    await fixture.close()
  })
})
