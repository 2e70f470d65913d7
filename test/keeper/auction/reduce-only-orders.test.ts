/** The life of reduce-only orders whose position closes: out of the book with the match, ended once it is mined, back if it is voided. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import { MarketState } from '../../../domain/exchange/decide/turn/market-state.ts'
import { projectAll } from '../../../indexer/project/project-shards.ts'
import { createVoids } from '../../../keeper/settlement/store.ts'
import { voidFrom } from '../../../keeper/settlement/void-batches.ts'
import { perpetual } from '../../support/markets.ts'
import { createAuction, createMarketMemory } from '../support/engine-turns.ts'
import { expectConsistent, expectSameBook, expectSameReadModel } from '../support/invariants.ts'
import { MarketFixture, RULES, SILENT_LOGGER, type Trader } from '../support/market-fixture.ts'
import { unminePart } from '../support/mine-block.ts'
import { mineOldestPart } from '../support/mine-part.ts'

describe('a reduce-only order whose position closes', () => {
  let fixture: MarketFixture
  let settling: Fence
  let auction: ReturnType<typeof createAuction>
  let memory: ReturnType<typeof createMarketMemory>
  let alice: Trader
  let bob: Trader
  let carol: Trader

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    await fixture.report(1000)
    alice = await fixture.trader('alice')
    bob = await fixture.trader('bob')
    carol = await fixture.trader('carol')
    settling = await fixture.lease('settle:m1')
    memory = createMarketMemory({ ...RULES, kind: perpetual.kind })
    auction = createAuction(fixture.turnPorts(), perpetual, memory)
  })

  afterEach(async () => {
    await expectConsistent(fixture)
    await expectSameBook(fixture)
    await expectSameReadModel(fixture)
    await fixture.close()
  })

  const run = () => auction.run()
  const mine = () => mineOldestPart(fixture)
  /** The first party buys, at 1,000. */
  const deal = async (buyer: Trader, seller: Trader, steps: number) => {
    await fixture.place({ by: buyer, side: 'LONG', steps, limit: 1000 })
    await fixture.place({ by: seller, side: 'SHORT', steps, limit: 1000 })
    return run()
  }
  const reduceOnly = (by: Trader, limit: number, steps = 20, side: 'LONG' | 'SHORT' = 'SHORT') =>
    fixture.place({ by, side, steps, limit, reduceOnly: true })
  const stopLoss = (by: Trader) =>
    fixture.place({ by, side: 'SHORT', steps: 20, type: 'STOP_LOSS_MARKET', trigger: 950 })
  const stateOf = async (orderId: string) => {
    const { status, statusReason, closingReason } = await fixture.orderOf(orderId)
    return [status, statusReason ?? closingReason ?? ''].join(' ').trim()
  }
  /** The book that the keeper's next auction reads, without that auction. */
  const resting = async () => {
    await run()
    const { live } = new MarketState(fixture.engine.state, perpetual.marketId)
    return live.ordersOf(alice.account).map(({ seq }) => `1-${seq}`)
  }
  const voidAll = async () => {
    const { queue_no } = await fixture.db
      .selectFrom('actions')
      .select('queue_no')
      .where('status', 'in', ['QUEUED', 'SIGNED', 'SUBMITTED'])
      .orderBy('queue_no')
      .executeTakeFirstOrThrow()
    const ports = {
      voids: createVoids({ db: fixture.db, engine: fixture.engine }),
      clock: fixture.clock,
      logger: SILENT_LOGGER,
    }
    const cause = { kind: 'late', error: 'late' } as const
    await voidFrom(ports, perpetual, settling, { queueNo: queue_no, cause, reverted: null })
  }
  const rollBack = () => unminePart(fixture.db)
  const CLOSED = 'CANCELLED POSITION_CLOSED'

  it('when the position closes, a resting limit order is gone from the next batch, and no order meets it', async () => {
    await deal(alice, bob, 20)
    await mine()
    const limit = await reduceOnly(alice, 1005)
    await deal(carol, alice, 20)
    expect(await stateOf(limit)).to.equal('OPEN POSITION_CLOSED')
    // A bid above the order would make a crossed book, and a market order would meet a promise that cannot execute.
    await fixture.place({ by: bob, side: 'LONG', steps: 5, limit: 1006 })
    const market = await fixture.place({ by: carol, side: 'LONG', steps: 5 })
    expect(await run()).to.equal(null)
    expect(await stateOf(market)).to.match(/^CANCELLED/)
    await projectAll(fixture.db, { limit: 500, killPoint() {} })
    const sells = await fixture.db
      .selectFrom('read.book_levels')
      .selectAll()
      .where('side', '=', 'SHORT')
      .execute()
    expect(sells).to.deep.equal([])
    await mine()
    expect(await stateOf(limit)).to.equal(CLOSED)
  })

  it('when the batch that closes the position is voided, the orders return with their place', async () => {
    await deal(alice, bob, 20)
    await mine()
    const limit = await reduceOnly(alice, 1005)
    const stop = await stopLoss(alice)
    const [{ seq }] = [await fixture.orderOf(limit)]
    await deal(carol, alice, 20)
    expect([await stateOf(limit), await stateOf(stop)]).to.deep.equal([
      'OPEN POSITION_CLOSED',
      'PENDING_TRIGGER POSITION_CLOSED',
    ])
    await voidAll()
    expect([await stateOf(limit), await stateOf(stop)]).to.deep.equal(['OPEN', 'PENDING_TRIGGER'])
    // The sell of the voided batch has matched again when the keeper runs: cancel it to see the orders of the book.
    expect((await fixture.orderOf(limit)).seq).to.equal(seq)
    const bid = await fixture.place({ by: bob, side: 'LONG', steps: 20, limit: 1005 })
    for (const { orderId, account, reduceOnly: reduces } of await fixture.orders())
      if (account === alice.account && !reduces) await fixture.cancel(orderId)
    await run()
    expect((await fixture.orderOf(limit)).settling).to.equal(20)
    expect((await fixture.orderOf(bid)).settling).to.equal(20)
  })

  it('when orders are placed while flat, they stay through the entry and end with the position that they reduce', async () => {
    const orders = [await reduceOnly(alice, 1005), await stopLoss(alice)]
    expect(await run()).to.equal(null)
    await deal(bob, carol, 5)
    expect(await resting()).to.deep.equal(orders)
    await deal(alice, bob, 20)
    await mine()
    await mine()
    expect(await resting()).to.deep.equal(orders)
    await deal(carol, alice, 20)
    await mine()
    for (const order of orders) expect(await stateOf(order)).to.equal(CLOSED)
  })

  it('when the position turns, the orders against its new side stay', async () => {
    await deal(alice, bob, 20)
    const against = await reduceOnly(alice, 1005)
    const along = await reduceOnly(alice, 995, 20, 'LONG')
    await deal(carol, alice, 30)
    expect(await stateOf(against)).to.equal('OPEN POSITION_CLOSED')
    expect(await resting()).to.deep.equal([along])
  })

  it('when the position opens again before the closing batch is mined, the first order ends and a later one stays', async () => {
    await deal(alice, bob, 20)
    await mine()
    const first = await reduceOnly(alice, 1005)
    await deal(carol, alice, 20)
    await deal(alice, bob, 10)
    const second = await reduceOnly(alice, 1006)
    expect(await resting()).to.deep.equal([second])
    await mine()
    expect([await stateOf(first), await stateOf(second)]).to.deep.equal([CLOSED, 'OPEN'])
    await mine()
    expect(await stateOf(second)).to.equal('OPEN')
  })

  it('when the mined batch is rolled back, the order waits out of the book, and a void returns it', async () => {
    await deal(alice, bob, 20)
    await mine()
    const limit = await reduceOnly(alice, 1005)
    await deal(carol, alice, 20)
    await run()
    await mine()
    expect(await stateOf(limit)).to.equal(CLOSED)
    await rollBack()
    expect(await stateOf(limit)).to.equal('OPEN POSITION_CLOSED')
    expect(await resting()).to.deep.equal([])
    await voidAll()
    expect(await stateOf(limit)).to.equal('OPEN')
  })

  it('when it fills in the batch that closes the position, it is FILLED, or its remainder ends', async () => {
    await deal(alice, bob, 20)
    await mine()
    const whole = await reduceOnly(alice, 1000, 5)
    const rest = await reduceOnly(alice, 1000, 25)
    await fixture.place({ by: bob, side: 'LONG', steps: 20, limit: 1000 })
    await run()
    const states = async () => [await stateOf(whole), await stateOf(rest)]
    const fills = [(await fixture.orderOf(whole)).settling, (await fixture.orderOf(rest)).settling]
    expect(fills).to.deep.equal([5, 15])
    expect(await states()).to.deep.equal(['OPEN', 'OPEN POSITION_CLOSED'])
    await mine()
    expect(await states()).to.deep.equal(['FILLED FILLED', CLOSED])
    await rollBack()
    expect(await states()).to.deep.equal(['OPEN', 'OPEN POSITION_CLOSED'])
    await voidAll()
    expect(await states()).to.deep.equal(['OPEN', 'OPEN'])
  })

  it('when an earlier fill of it is not mined, it ends with the batch that closes the position, not before', async () => {
    await deal(alice, bob, 20)
    await mine()
    const limit = await reduceOnly(alice, 1000, 18)
    await fixture.place({ by: bob, side: 'LONG', steps: 4, limit: 1000 })
    await run()
    fixture.clock.value += 1_000
    await fixture.report(995)
    await fixture.place({ by: carol, side: 'LONG', steps: 16, limit: 999 })
    await fixture.place({ by: alice, side: 'SHORT', steps: 16, limit: 990 })
    await run()
    expect(await stateOf(limit)).to.equal('OPEN POSITION_CLOSED')
    await mine()
    expect(await stateOf(limit)).to.equal('OPEN POSITION_CLOSED')
    expect(await fixture.orderOf(limit)).to.include({ filled: 4, settling: 0 })
    await mine()
    expect(await stateOf(limit)).to.equal(CLOSED)
  })

  it('when it is cancelled after it has left the book, it ends at once and stays cancelled if the batch is voided', async () => {
    await deal(alice, bob, 20)
    await mine()
    const limit = await reduceOnly(alice, 1005)
    await deal(carol, alice, 20)
    expect(await fixture.cancel(limit)).to.equal(true)
    expect(await stateOf(limit)).to.equal('CANCELLED USER_CANCELLED')
    await voidAll()
    expect(await stateOf(limit)).to.equal('CANCELLED USER_CANCELLED')
    expect(await fixture.cancel(limit)).to.equal(false)
  })

  it('when it expires after it has left the book, the mined batch ends it, and a void lets it expire', async () => {
    await deal(alice, bob, 20)
    await mine()
    const seconds = fixture.clock.value / 1000
    const terms = { by: alice, side: 'SHORT', steps: 20, limit: 1005, reduceOnly: true } as const
    const limit = await fixture.place({ ...terms, expiration: seconds + 1 })
    await deal(carol, alice, 20)
    fixture.clock.value += 3_000
    await fixture.report(1000)
    await run()
    expect(await stateOf(limit)).to.equal('OPEN POSITION_CLOSED')
    await voidAll()
    expect(await stateOf(limit)).to.equal('OPEN')
    await run()
    expect(await stateOf(limit)).to.equal('EXPIRED EXPIRED')
  })
})
