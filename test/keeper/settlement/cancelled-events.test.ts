/** The events of an order that its trader cancelled after a fill, when the block of the fill leaves the chain. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import { projectAll } from '../../../indexer/project/project-shards.ts'
import { replaceFrom } from '../../support/chain-faults.ts'
import { perpetual } from '../../support/markets.ts'
import { type ChainFixture, useChain } from '../support/chain-fixture.ts'
import type { Auction } from '../support/engine-turns.ts'
import { expectConsistent, expectSameReadModel } from '../support/invariants.ts'
import type { Trader } from '../support/market-fixture.ts'
import { openTrading } from '../support/trading.ts'

describe('the events of an order with a mined fill and a cancelled rest', function () {
  this.timeout(60_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  let auction: Auction
  let settling: Fence
  let alice: Trader
  let bob: Trader

  beforeEach(async () => {
    ;({ fixture, auction, settling, alice, bob } = await openTrading(chain()))
  })

  afterEach(async () => {
    await expectConsistent(fixture)
    await expectSameReadModel(fixture)
    await fixture.close()
  })

  const project = () => projectAll(fixture.db, { limit: 500, killPoint() {} })

  async function eventsOf(orderId: string): Promise<string> {
    const events = await fixture.db
      .selectFrom('read.order_events')
      .select('kind')
      .where('order_id', '=', orderId)
      .orderBy('arrival')
      .execute()
    return events.map(({ kind }) => kind).join()
  }

  for (const [when, projectBetween] of [
    ['rows are projected one step after another', project],
    ['all rows are projected at once', async () => {}],
  ] as const) {
    it(`when the fill is rolled back and mined again and ${when}, the order has one end`, async () => {
      const orderId = await fixture.place({ by: alice, side: 'LONG', steps: 30, limit: 1000 })
      await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 1000 })
      const kept = await chain().provider.getBlockNumber()
      await auction.run()
      await fixture.settle(settling)
      await fixture.cancel(orderId)
      await projectBetween()

      await replaceFrom(chain().provider, kept + 1)
      await fixture.follow()
      expect((await fixture.orderOf(orderId)).status).to.equal('CANCEL_PENDING_FINALIZE')
      await projectBetween()
      if (projectBetween === project) expect(await eventsOf(orderId)).to.equal('CREATED')
      await fixture.settle(settling)
      await project()
      expect(await eventsOf(orderId)).to.equal('CREATED,PARTIALLY_FILLED,CANCELLED')
      expect(await fixture.orderOf(orderId)).to.include({
        status: 'CANCELLED',
        statusReason: 'USER_CANCELLED',
      })
    })
  }
})
