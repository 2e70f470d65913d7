import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import { isIdle } from '../../../domain/auction/action-basis.ts'
import type { RestingOrder } from '../../../domain/book/book.ts'
import type { OracleReport } from '../../../domain/settlement/settlement.ts'
import type { Millis, Seq } from '../../../domain/units.ts'
import { createMarketMemory, type MarketView } from '../../../keeper/auction/market-memory.ts'
import { perpetual } from '../../support/markets.ts'
import { createAuction, createMarks } from '../support/compared-turns.ts'
import { MarketFixture, RULES, type Trader } from '../support/market-fixture.ts'

describe('an auction that would change nothing', () => {
  let fixture: MarketFixture
  let fence: Fence
  let alice: Trader
  let bob: Trader

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    fence = await fixture.lease('auction:m1')
    await fixture.report(1000)
    alice = await fixture.trader('alice')
    bob = await fixture.trader('bob')
  })

  afterEach(() => fixture.close())

  /** An auction that counts its transactions. */
  function countedAuction() {
    const ports = fixture.auctionPorts()
    let turns = 0
    const transaction: typeof ports.store.transaction = (...args) => {
      turns++
      return ports.store.transaction(...args)
    }
    const counted = { ...ports, store: { ...ports.store, transaction } }
    const memory = createMarketMemory({ ...RULES, kind: 'perpetual' })
    return { own: createAuction(counted, perpetual, memory), turns: () => turns }
  }

  it('when nothing can have changed, it does not open a transaction', async () => {
    const { own, turns } = countedAuction()
    await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 990 })
    for (let tick = 0; tick < 5; tick++) await own.run(fence)
    expect(turns()).to.equal(1)
    await fixture.report(1001, fixture.clock.value + 1)
    await own.run(fence)
    expect(turns(), 'a new report, and orders that do not cross').to.equal(1)
    await fixture.place({ by: bob, side: 'SHORT', steps: 50, limit: 1000 })
    await own.run(fence)
    expect(turns()).to.equal(2)
    await own.run(fence)
    expect(turns()).to.equal(2)
  })

  it('when an order arrives with a row that the marks have read, it is not skipped', async () => {
    const ports = fixture.auctionPorts()
    const memory = createMarketMemory({ ...RULES, kind: 'perpetual' })
    const [own, marks] = [
      createAuction(ports, perpetual, memory),
      createMarks({ ...ports, metrics: { triggered: () => {} } }, perpetual, memory),
    ]
    await own.run(fence)
    await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 990 })
    await marks.update(fence)
    const seq = memory.view?.seq
    expect(memory.view?.standingSeq).to.be.below(seq as number)
    await own.run(fence)
    expect(memory.view?.standingSeq).to.equal(seq)
  })

  it('when only funding accrues, it is skipped', async () => {
    const { own, turns } = countedAuction()
    const start = fixture.clock.value
    await fixture.db
      .insertInto('funding_states')
      .values({
        ...{ market_id: perpetual.marketId, action_id: 1, as_of: start, funding_index: 7n, rate: 3_600_000n },
        ...{ valid_from: start, valid_until: start + 60_000 },
      })
      .execute()
    await own.run(fence)
    fixture.clock.value += 1_000
    await own.run(fence)
    expect(turns()).to.equal(1)
  })

  it('when orders cross that could not be matched, it is skipped until the next report', async () => {
    const ports = fixture.auctionPorts()
    const memory = createMarketMemory({ ...RULES, kind: 'perpetual' })
    await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 990 })
    await createAuction(ports, perpetual, memory).run(fence)
    const view = memory.view as MarketView
    const snapshot = await ports.store.snapshot(perpetual)
    const report = snapshot.report as OracleReport
    const later = { ...snapshot, report: { ...report, observedAt: (report.observedAt + 1) as Millis } }
    const idle = (at: typeof snapshot) => isIdle(perpetual, view, memory.deferrals, at)
    expect([idle(snapshot), idle(later)], 'orders that do not cross').to.deep.equal([true, true])
    const [bid] = view.feed.book.orders() as [RestingOrder]
    view.feed.book.insert({ ...bid, seq: (bid.seq - 1) as Seq, account: bob.account, side: 'SHORT' })
    expect([idle(snapshot), idle(later)], 'orders that cross').to.deep.equal([true, false])
  })

  it('when the market has closed, its open and waiting orders end with MARKET_CLOSED, and nothing is left to do', async () => {
    const { own, turns } = countedAuction()
    const open = await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 990 })
    const stop = await fixture.place({ by: bob, side: 'SHORT', steps: 5, type: 'STOP_MARKET', trigger: 900 })
    await own.run(fence)
    await fixture.db.updateTable('markets').set({ settling_at: fixture.clock.value }).execute()
    for (let turn = 0; turn < 4; turn++) await own.run(fence)
    for (const order of [open, stop])
      expect(await fixture.orderOf(order)).to.include({
        ...{ status: 'CANCELLED', statusReason: 'MARKET_CLOSED', reserved: 0n },
      })
    const ended = await fixture.rows('order_ended')
    expect(ended.map(({ reason }) => reason)).to.deep.equal(['MARKET_CLOSED', 'MARKET_CLOSED'])
    // The orders' rows are read in one more turn.
    expect(turns()).to.equal(3)
  })
})
