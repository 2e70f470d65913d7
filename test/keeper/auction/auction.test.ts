import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Millis } from '../../../domain/units.ts'
import { perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { createAuction, createMarketMemory } from '../support/engine-turns.ts'
import { expectConsistent, expectSameBook } from '../support/invariants.ts'
import { MarketFixture, RULES, type Trader } from '../support/market-fixture.ts'
import { matchedFills } from '../support/matched-fills.ts'

describe('the auction of a market', () => {
  let fixture: MarketFixture
  let alice: Trader
  let bob: Trader

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    await fixture.report(1000)
    alice = await fixture.trader('alice')
    bob = await fixture.trader('bob')
  })

  afterEach(async () => {
    await expectConsistent(fixture)
    await expectSameBook(fixture)
    await fixture.close()
  })

  const auction = () =>
    createAuction(fixture.turnPorts(), perpetual, createMarketMemory({ ...RULES, kind: perpetual.kind }))

  it('when orders cross, it stores batch, fills and a queued part, and keeps the orders open', async () => {
    const buy = await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    const sell = await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    expect(await auction().run()).to.equal(1)

    const [bought, sold] = [await fixture.orderOf(buy), await fixture.orderOf(sell)]
    expect([bought.status, bought.settling, bought.partialSlot]).to.deep.equal(['OPEN', 20, 0])
    expect([sold.status, sold.settling, sold.partialSlot]).to.deep.equal(['OPEN', 20, null])
    expect(bought.held > 0n && bought.reserved > 0n).to.equal(true)
    const actions = await fixture.db.selectFrom('actions').selectAll().execute()
    expect(actions).to.have.length(1)
    expect(actions[0]).to.include({ queue_no: 1, batch_id: 1, part: 1, status: 'QUEUED', action_id: null })
    const positions = await withMirror(fixture.db)
      .selectFrom('positions')
      .select(['matched_size', 'size'])
      .orderBy('user_id')
      .execute()
    expect(positions).to.deep.equal([
      { matched_size: 20, size: 0 },
      { matched_size: -20, size: 0 },
    ])
    const market = await fixture.db.selectFrom('markets').selectAll().executeTakeFirstOrThrow()
    expect(market).to.include({
      last_batch_id: 1,
      last_as_of: fixture.clock.value,
      last_price_at: fixture.clock.value,
    })
  })

  it('when no orders cross, it writes nothing', async () => {
    await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 990 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 1010 })
    const heads = () => fixture.db.selectFrom('shards').selectAll().execute()
    const before = await heads()
    expect(await auction().run()).to.equal(null)
    expect(await heads()).to.deep.equal(before)
  })

  it('when a market order has no opposite liquidity, it ends the order in its batch', async () => {
    const order = await fixture.place({ by: alice, side: 'LONG', steps: 50 })
    expect(await auction().run()).to.equal(null)
    expect(await fixture.orderOf(order)).to.include({
      status: 'CANCELLED',
      statusReason: 'MARKET_REMAINDER',
      reserved: 0n,
    })
    expect(await fixture.rows('order_ended')).to.have.length(1)
  })

  it('when a market order is partially filled, it closes the remainder and keeps the order open until settlement', async () => {
    const order = await fixture.place({ by: alice, side: 'LONG', steps: 50 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    expect(await auction().run()).to.equal(1)
    const { status, closingReason, settling, reserved, partialSlot } = await fixture.orderOf(order)
    expect({ status, closingReason, settling, reserved, partialSlot }).to.deep.equal({
      status: 'OPEN',
      closingReason: 'MARKET_REMAINDER',
      settling: 20,
      reserved: 0n,
      partialSlot: null,
    })
    const [batch] = await fixture.rows('batch_cleared')
    expect(batch.closing).to.deep.equal([{ order_id: order, reason: 'MARKET_REMAINDER' }])
  })

  it('when an order is past its expiration, it expires the order without a trade', async () => {
    const seconds = fixture.clock.value / 1000
    const order = await fixture.place({
      by: alice,
      side: 'LONG',
      steps: 50,
      limit: 990,
      expiration: seconds + 10,
    })
    const own = auction()
    await own.run()
    expect(await fixture.orderOf(order)).to.include({ status: 'OPEN' })
    fixture.clock.value += 11_000
    await own.run()
    expect(await fixture.orderOf(order)).to.include({
      status: 'EXPIRED',
      statusReason: 'EXPIRED',
      reserved: 0n,
    })
  })

  it('when block time lags so that an order has expired by the clock and not by asOf, the order expires and is not matched', async () => {
    const seconds = fixture.clock.value / 1000
    const terms = { by: alice, side: 'LONG', steps: 20, limit: 1010 } as const
    const order = await fixture.place({ ...terms, expiration: seconds })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    const headTime = (fixture.clock.value - 2_000) as Millis
    fixture.clock.value += 500
    const ports = { ...fixture.turnPorts(), headTime: () => headTime }
    const memory = createMarketMemory({ ...RULES, kind: perpetual.kind })
    expect(await createAuction(ports, perpetual, memory).run()).to.equal(null)
    expect(await fixture.orderOf(order)).to.include({ status: 'EXPIRED', settling: 0 })
  })

  it('when an order with an unsettled fill is past its expiration, it leaves the book and waits for the settlement', async () => {
    const seconds = fixture.clock.value / 1000
    const order = await fixture.place({
      by: alice,
      side: 'LONG',
      steps: 50,
      limit: 1010,
      expiration: seconds + 1,
    })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    const own = auction()
    await own.run()
    fixture.clock.value += 2_000
    await own.run()
    const after = await fixture.orderOf(order)
    expect(after).to.include({
      status: 'CANCEL_PENDING_FINALIZE',
      closingReason: 'EXPIRED',
      settling: 20,
      reserved: 0n,
    })
    expect(await fixture.rows('order_ending')).to.have.length(1)
  })

  it('when there is no fresh oracle report, it keeps limit orders and ends market orders after two seconds', async () => {
    const limit = await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 50, limit: 990 })
    fixture.clock.value += 10_001
    const market = await fixture.place({ by: bob, side: 'LONG', steps: 5 })
    const own = auction()
    expect(await own.run()).to.equal(null)
    expect(await fixture.orderOf(market)).to.include({ status: 'OPEN' })
    fixture.clock.value += 1_999
    await own.run()
    expect(await fixture.orderOf(market)).to.include({ status: 'OPEN' })
    fixture.clock.value += 1
    await own.run()
    expect(await fixture.orderOf(market)).to.include({
      status: 'CANCELLED',
      statusReason: 'NO_BATCH_IN_TIME',
    })
    expect(await fixture.orderOf(limit)).to.include({ status: 'OPEN' })
    await fixture.report(1000)
    expect(await own.run()).to.equal(1)
  })

  it('when the market is cancel-only, it does not match', async () => {
    await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 50, limit: 990 })
    await fixture.db.updateTable('markets').set({ mode: 'cancel_only' }).execute()
    expect(await auction().run()).to.equal(null)
  })

  it('when the market closes at asOf, it does not match; when it closes 1 ms later, it does', async () => {
    const closeAt = (settling_at: number) => fixture.db.updateTable('markets').set({ settling_at }).execute()
    const cross = async () => {
      await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
      await fixture.place({ by: bob, side: 'SHORT', steps: 50, limit: 990 })
    }
    await cross()
    await closeAt(fixture.clock.value + 1)
    expect(await auction().run()).to.equal(1)
    await cross()
    await closeAt(fixture.clock.value)
    expect(await auction().run()).to.equal(null)
  })

  it('when the market closes while an order settles, the order ends once that is mined', async () => {
    const own = auction()
    const big = await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    await own.run()
    await fixture.db.updateTable('markets').set({ settling_at: fixture.clock.value }).execute()
    await own.run()
    expect(await fixture.orderOf(big)).to.include({
      ...{ status: 'CANCEL_PENDING_FINALIZE', closingReason: 'MARKET_CLOSED', settling: 20 },
    })
  })

  it('when the oldest unsettled batch has half an action’s lifetime, it does not match', async () => {
    const own = auction()
    await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    await own.run()
    fixture.clock.value += 4_999
    await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 990 })
    expect(await own.run()).to.equal(2)
    fixture.clock.value += 1
    await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 990 })
    expect(await own.run()).to.equal(null)
  })

  it('when orders are placed and cancelled between two auctions, it applies them from the journal', async () => {
    const own = auction()
    const buy = await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await own.run()
    await fixture.cancel(buy)
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    expect(await own.run()).to.equal(null)
    await fixture.place({ by: alice, side: 'LONG', steps: 7, limit: 1000 })
    expect(await own.run()).to.equal(1)
    expect((await fixture.rows('batch_cleared'))[0]).to.include({ volume: 7 })
  })

  it('when the clock goes back, it does not decrease asOf', async () => {
    const own = auction()
    await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    await own.run()
    const first = fixture.clock.value
    fixture.clock.value -= 500
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    await own.run()
    const batches = await fixture.db.selectFrom('batches').select('as_of').orderBy('batch_id').execute()
    expect(batches.map(({ as_of }) => as_of)).to.deep.equal([first, first])
  })

  it('when a batch fills more than 200 orders, it settles in several parts', async () => {
    for (let count = 0; count < 130; count++) {
      await fixture.place({ by: alice, side: 'LONG', steps: 10, limit: 1010 })
      await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 990 })
    }
    await auction().run()
    const actions = await fixture.db
      .selectFrom('actions')
      .select(['part', 'queue_no'])
      .orderBy('queue_no')
      .execute()
    expect(actions).to.deep.equal([
      { part: 1, queue_no: 1 },
      { part: 2, queue_no: 2 },
    ])
    const fills = await matchedFills(fixture.db)
    expect(fills.filter(({ part }) => part === 1)).to.have.length(200)
    expect(fills.filter(({ part }) => part === 2).map(({ place }) => place)).to.deep.equal(
      Array.from({ length: 60 }, (_, at) => at),
    )
  })

  it('when a live order has a partial slot, it assigns the next slot to another order', async () => {
    const own = auction()
    const first = await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    await own.run()
    const second = await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 990 })
    await own.run()
    expect((await fixture.orderOf(first)).partialSlot).to.equal(0)
    expect((await fixture.orderOf(second)).partialSlot).to.equal(1)
  })
})
