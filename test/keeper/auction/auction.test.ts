import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { type Fence, LeaseLost } from '../../../db/fence.ts'
import { createLeases } from '../../../db/leases.ts'
import { createAuction } from '../../../keeper/auction/auction.ts'
import { createMarketMemory } from '../../../keeper/auction/market-memory.ts'
import { perpetual } from '../../support/markets.ts'
import { expectConsistent, expectSameBook } from '../support/invariants.ts'
import { RULES, type Trader, World } from '../support/world.ts'

describe('a turn of the auction', () => {
  let world: World
  let fence: Fence
  let alice: Trader
  let bob: Trader

  beforeEach(async () => {
    world = await World.open(perpetual)
    fence = await world.lease('auction:m1')
    await world.report(1000)
    alice = await world.trader('alice')
    bob = await world.trader('bob')
  })

  afterEach(async () => {
    await expectConsistent(world)
    await expectSameBook(world)
    await world.close()
  })

  const auction = () =>
    createAuction(world.auctionPorts(), perpetual, createMarketMemory({ ...RULES, kind: perpetual.kind }))

  it('given orders that cross, it stores batch, fills and a queued part, and keeps the orders open', async () => {
    const buy = await world.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    const sell = await world.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    expect(await auction().run(fence)).to.equal(1)

    const [bought, sold] = [await world.orderOf(buy), await world.orderOf(sell)]
    expect([bought.status, bought.settling, bought.partialSlot]).to.deep.equal(['OPEN', 20, 0])
    expect([sold.status, sold.settling, sold.partialSlot]).to.deep.equal(['OPEN', 20, null])
    expect(bought.held > 0n && bought.reserved > 0n).to.equal(true)
    const actions = await world.db.selectFrom('actions').selectAll().execute()
    expect(actions).to.have.length(1)
    expect(actions[0]).to.include({ queue_no: 1, batch_id: 1, part: 1, status: 'QUEUED', action_id: null })
    const positions = await world.db
      .selectFrom('positions')
      .select(['matched_size', 'size'])
      .orderBy('user_id')
      .execute()
    expect(positions).to.deep.equal([
      { matched_size: 20, size: 0 },
      { matched_size: -20, size: 0 },
    ])
    const market = await world.db.selectFrom('markets').selectAll().executeTakeFirstOrThrow()
    expect(market).to.include({
      last_batch_id: 1,
      last_as_of: world.clock.value,
      last_price_at: world.clock.value,
    })
  })

  it('given a book that cannot trade, it writes nothing', async () => {
    await world.place({ by: alice, side: 'LONG', steps: 50, limit: 990 })
    await world.place({ by: bob, side: 'SHORT', steps: 20, limit: 1010 })
    const heads = () => world.db.selectFrom('shards').selectAll().execute()
    const before = await heads()
    expect(await auction().run(fence)).to.equal(null)
    expect(await heads()).to.deep.equal(before)
  })

  it('given a market order without opposite liquidity, it ends the order in its batch', async () => {
    const order = await world.place({ by: alice, side: 'LONG', steps: 50 })
    expect(await auction().run(fence)).to.equal(null)
    expect(await world.orderOf(order)).to.include({
      status: 'CANCELLED',
      statusReason: 'MARKET_REMAINDER',
      reserved: 0n,
    })
    expect(await world.rows('order_ended')).to.have.length(1)
  })

  it('given a market order that is filled in part, it closes the rest and keeps the order open', async () => {
    const order = await world.place({ by: alice, side: 'LONG', steps: 50 })
    await world.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    expect(await auction().run(fence)).to.equal(1)
    const { status, closingReason, settling, reserved, partialSlot } = await world.orderOf(order)
    expect({ status, closingReason, settling, reserved, partialSlot }).to.deep.equal({
      status: 'OPEN',
      closingReason: 'MARKET_REMAINDER',
      settling: 20,
      reserved: 0n,
      partialSlot: null,
    })
    const [batch] = await world.rows('batch_cleared')
    expect(batch.closing).to.deep.equal([{ order_id: order, reason: 'MARKET_REMAINDER' }])
  })

  it('given an order past its expiration, it expires it although nothing trades', async () => {
    const seconds = world.clock.value / 1000
    const order = await world.place({
      by: alice,
      side: 'LONG',
      steps: 50,
      limit: 990,
      expiration: seconds + 10,
    })
    const own = auction()
    await own.run(fence)
    expect(await world.orderOf(order)).to.include({ status: 'OPEN' })
    world.clock.value += 11_000
    await own.run(fence)
    expect(await world.orderOf(order)).to.include({
      status: 'EXPIRED',
      statusReason: 'EXPIRED',
      reserved: 0n,
    })
  })

  it('given an order past its expiration of which some settles, it leaves the book and waits', async () => {
    const seconds = world.clock.value / 1000
    const order = await world.place({
      by: alice,
      side: 'LONG',
      steps: 50,
      limit: 1010,
      expiration: seconds + 1,
    })
    await world.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    const own = auction()
    await own.run(fence)
    world.clock.value += 2_000
    await own.run(fence)
    const after = await world.orderOf(order)
    expect(after).to.include({
      status: 'CANCEL_PENDING_FINALIZE',
      closingReason: 'EXPIRED',
      settling: 20,
      reserved: 0n,
    })
    expect(await world.rows('order_ending')).to.have.length(1)
  })

  it('given no fresh oracle report, limit orders stay and market orders end after two seconds', async () => {
    const limit = await world.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await world.place({ by: bob, side: 'SHORT', steps: 50, limit: 990 })
    world.clock.value += 10_001
    const market = await world.place({ by: bob, side: 'LONG', steps: 5 })
    const own = auction()
    expect(await own.run(fence)).to.equal(null)
    expect(await world.orderOf(market)).to.include({ status: 'OPEN' })
    world.clock.value += 1_999
    await own.run(fence)
    expect(await world.orderOf(market)).to.include({ status: 'OPEN' })
    world.clock.value += 1
    await own.run(fence)
    expect(await world.orderOf(market)).to.include({ status: 'CANCELLED', statusReason: 'NO_BATCH_IN_TIME' })
    expect(await world.orderOf(limit)).to.include({ status: 'OPEN' })
    await world.report(1000)
    expect(await own.run(fence)).to.equal(1)
  })

  it('given a market that is cancel-only, it does not match', async () => {
    await world.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await world.place({ by: bob, side: 'SHORT', steps: 50, limit: 990 })
    await world.db.updateTable('markets').set({ mode: 'cancel_only' }).execute()
    expect(await auction().run(fence)).to.equal(null)
  })

  it('given an unsettled batch of half an action’s life, it does not match', async () => {
    const own = auction()
    await world.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await world.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    await own.run(fence)
    world.clock.value += 4_999
    await world.place({ by: bob, side: 'SHORT', steps: 10, limit: 990 })
    expect(await own.run(fence)).to.equal(2)
    world.clock.value += 1
    await world.place({ by: bob, side: 'SHORT', steps: 10, limit: 990 })
    expect(await own.run(fence)).to.equal(null)
  })

  it('follows placements and cancels from the log between turns', async () => {
    const own = auction()
    const buy = await world.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await own.run(fence)
    await world.cancel(buy)
    await world.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    expect(await own.run(fence)).to.equal(null)
    await world.place({ by: alice, side: 'LONG', steps: 7, limit: 1000 })
    expect(await own.run(fence)).to.equal(1)
    expect((await world.rows('batch_cleared'))[0]).to.include({ volume: 7 })
  })

  it('does not open a transaction while nothing can change', async () => {
    const ports = world.auctionPorts()
    let turns = 0
    const turn: typeof ports.store.turn = (...args) => {
      turns++
      return ports.store.turn(...args)
    }
    const counted = { ...ports.store, turn }
    const own = createAuction(
      { ...ports, store: counted },
      perpetual,
      createMarketMemory({ ...RULES, kind: 'perpetual' }),
    )
    await world.place({ by: alice, side: 'LONG', steps: 50, limit: 990 })
    for (let tick = 0; tick < 5; tick++) await own.run(fence)
    expect(turns).to.equal(1)
    await world.report(1001, world.clock.value + 1)
    await own.run(fence)
    expect(turns).to.equal(2)
  })

  it('never decreases asOf, also where the clock goes back', async () => {
    const own = auction()
    await world.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await world.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    await own.run(fence)
    const first = world.clock.value
    world.clock.value -= 500
    await world.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    await own.run(fence)
    const batches = await world.db.selectFrom('batches').select('as_of').orderBy('batch_id').execute()
    expect(batches.map(({ as_of }) => as_of)).to.deep.equal([first, first])
  })

  it('cuts a batch of more than 200 orders into parts', async () => {
    for (let count = 0; count < 130; count++) {
      await world.place({ by: alice, side: 'LONG', steps: 10, limit: 1010 })
      await world.place({ by: bob, side: 'SHORT', steps: 10, limit: 990 })
    }
    await auction().run(fence)
    const actions = await world.db
      .selectFrom('actions')
      .select(['part', 'queue_no'])
      .orderBy('queue_no')
      .execute()
    expect(actions).to.deep.equal([
      { part: 1, queue_no: 1 },
      { part: 2, queue_no: 2 },
    ])
    const fills = await world.db
      .selectFrom('fills')
      .select(['part', 'place'])
      .orderBy('part')
      .orderBy('place')
      .execute()
    expect(fills.filter(({ part }) => part === 1)).to.have.length(200)
    expect(fills.filter(({ part }) => part === 2).map(({ place }) => place)).to.deep.equal(
      Array.from({ length: 60 }, (_, at) => at),
    )
  })

  it('gives a slot of a dead order out again, and no other', async () => {
    const own = auction()
    const first = await world.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await world.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
    await own.run(fence)
    const second = await world.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
    await world.place({ by: bob, side: 'SHORT', steps: 10, limit: 990 })
    await own.run(fence)
    expect((await world.orderOf(first)).partialSlot).to.equal(0)
    expect((await world.orderOf(second)).partialSlot).to.equal(1)
  })

  describe('with another owner', () => {
    it('a stale owner cannot write', async () => {
      await world.place({ by: alice, side: 'LONG', steps: 50, limit: 1010 })
      await world.place({ by: bob, side: 'SHORT', steps: 20, limit: 990 })
      const stale = auction()
      await world.db.updateTable('leases').set({ expires_at: 0 }).execute()
      const newer = await world.lease('auction:m1', 'two')
      expect(newer.token).to.equal(fence.token + 1)
      await expectRejected(stale.run(fence), LeaseLost)
      expect(await world.db.selectFrom('batches').selectAll().execute()).to.have.length(0)
      expect(await auction().run(newer)).to.equal(1)
      await expectRejected(stale.run(fence), LeaseLost)
      expect(await world.db.selectFrom('batches').selectAll().execute()).to.have.length(1)
    })

    it('two keepers that race tick after tick make one sequence of batches', async () => {
      const leases = ['red', 'blue'].map((owner) => createLeases(world.db, owner, 60_000))
      const auctions = [auction(), auction()]
      await world.db.updateTable('leases').set({ expires_at: 0 }).execute()
      let batches = 0
      for (let round = 0; round < 10; round++) {
        await world.place({ by: alice, side: 'LONG', steps: 10, limit: 1010 })
        await world.place({ by: bob, side: 'SHORT', steps: 10, limit: 990 })
        const fences = await Promise.all(leases.map((lease) => lease.acquire('auction:m1')))
        expect(fences.filter((one) => one !== null)).to.have.length(1)
        const token = (fences[0] ?? fences[1])?.token as number
        const results = await Promise.allSettled(
          auctions.map((own, at) =>
            own.run({ name: 'auction:m1', owner: ['red', 'blue'][at] as string, token }),
          ),
        )
        batches += results.filter((result) => result.status === 'fulfilled' && result.value !== null).length
        await world.db.updateTable('leases').set({ expires_at: 0 }).execute()
      }
      const stored = await world.db.selectFrom('batches').select('batch_id').orderBy('batch_id').execute()
      expect(batches).to.equal(10)
      expect(stored.map(({ batch_id }) => batch_id)).to.deep.equal([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    })
  })
})

async function expectRejected(
  promise: Promise<unknown>,
  kind: new (...args: never[]) => Error,
): Promise<void> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  )
  expect(error).to.be.instanceOf(kind)
}
