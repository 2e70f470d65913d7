/** A fork of the chain and a post-only order: a fill that had ended an earlier order leaves the chain, and that order returns before it. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { takeRefusal } from '../../../domain/exchange/decide/orders/post-only.ts'
import type { Order } from '../../../domain/orders/order.ts'
import type { Ticks } from '../../../domain/units.ts'
import { createVoids } from '../../../keeper/settlement/store.ts'
import { voidFrom } from '../../../keeper/settlement/void-batches.ts'
import { perpetual } from '../../support/markets.ts'
import { createAuction, createMarketMemory } from '../support/engine-turns.ts'
import { expectConsistent } from '../support/invariants.ts'
import { MarketFixture, RULES, SILENT_LOGGER, type Trader } from '../support/market-fixture.ts'
import { matchedFills } from '../support/matched-fills.ts'
import { unminePart } from '../support/mine-block.ts'
import { mineOldestPart } from '../support/mine-part.ts'

describe('a post-only order and a fork', () => {
  let fixture: MarketFixture
  let auction: ReturnType<typeof createAuction>
  let alice: Trader
  let bob: Trader
  let carol: Trader

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    await fixture.report(1000)
    alice = await fixture.trader('alice')
    bob = await fixture.trader('bob')
    carol = await fixture.trader('carol')
    const memory = createMarketMemory({ ...RULES, kind: perpetual.kind })
    auction = createAuction(fixture.turnPorts(), perpetual, memory)
  })
  afterEach(async () => {
    await expectConsistent(fixture)
    await fixture.close()
  })

  /** Why a post-only buy at 1,005 would be rejected now; null if it is accepted. */
  const refusal = async () => {
    await auction.run()
    const buy = { side: 'LONG', price: 1005 as Ticks } as Order
    return takeRefusal(perpetual, buy, fixture.engine.state.books.of(perpetual.marketId))?.code ?? null
  }
  const voidAll = async () => {
    const { queue_no } = await fixture.db
      .selectFrom('actions')
      .select('queue_no')
      .where('status', 'in', ['QUEUED', 'SIGNED', 'SUBMITTED'])
      .orderBy('queue_no')
      .executeTakeFirstOrThrow()
    const voids = createVoids({ db: fixture.db, engine: fixture.engine })
    const ports = { voids, clock: fixture.clock, logger: SILENT_LOGGER }
    const cause = { kind: 'late', error: 'late' } as const
    const settling = await fixture.lease('settle:m1')
    await voidFrom(ports, perpetual, settling, { queueNo: queue_no, cause, reverted: null })
  }
  const takerSteps = async (orderId: string) =>
    (await matchedFills(fixture.db)).filter((fill) => fill.orderId === orderId).map((fill) => fill.takerSteps)

  it('when only settling, the earlier order still counts; once it is filled, a later order is accepted and a fork makes it the taker', async () => {
    await fixture.place({ by: alice, side: 'SHORT', steps: 20, limit: 1000 })
    const buy = await fixture.place({ by: bob, side: 'LONG', steps: 20, limit: 1000 })
    await auction.run()
    expect(await refusal()).to.equal('WOULD_TAKE')
    await mineOldestPart(fixture)
    expect(await refusal()).to.equal(null)
    const postOnly = await fixture.place({ by: carol, side: 'LONG', steps: 20, limit: 1005 })
    await unminePart(fixture.db)
    await voidAll()
    await fixture.cancel(buy)
    await auction.run()
    expect(await takerSteps(postOnly)).to.deep.equal([20])
  })

  it('when the same part is mined again after the fork, the post-only order stays in the book and takes nothing', async () => {
    await fixture.place({ by: alice, side: 'SHORT', steps: 20, limit: 1000 })
    await fixture.place({ by: bob, side: 'LONG', steps: 20, limit: 1000 })
    await auction.run()
    await mineOldestPart(fixture)
    const postOnly = await fixture.place({ by: carol, side: 'LONG', steps: 20, limit: 1005 })
    await unminePart(fixture.db)
    await auction.run()
    await mineOldestPart(fixture)
    await auction.run()
    expect(await takerSteps(postOnly)).to.deep.equal([])
  })
})
