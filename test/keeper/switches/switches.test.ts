import { expect } from 'chai'
import { Wallet } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { armConnectionSwitches, armSwitch } from '../../../db/cancel-switches.ts'
import { type Fence, LeaseLost } from '../../../db/fence.ts'
import { lockShard } from '../../../db/journal.ts'
import { listMarket } from '../../../db/markets.ts'
import { MAX_ORDERS_PER_TURN } from '../../../domain/auction/turn-bound.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import type { Address, MarketId, UserId } from '../../../domain/units.ts'
import { createAuction } from '../../../keeper/auction/auction.ts'
import { createMarketMemory } from '../../../keeper/auction/market-memory.ts'
import type { SwitchStore } from '../../../keeper/switches/ports.ts'
import { Reachability } from '../../../keeper/switches/reachability.ts'
import { createSwitchStore } from '../../../keeper/switches/store.ts'
import { fireSwitches } from '../../../keeper/switches/switches.ts'
import { perpetual } from '../../support/markets.ts'
import { expectConsistent, expectSameBook, expectSameReadModel } from '../support/invariants.ts'
import { insertManyOrders } from '../support/many-orders.ts'
import { MarketFixture, RULES, SILENT_LOGGER, type Trader } from '../support/market-fixture.ts'
import { mineOldestPart } from '../support/mine-part.ts'

const OTHER = {
  ...perpetual,
  marketId: 2 as MarketId,
  symbol: 'OTHER',
  trader: Wallet.createRandom().address.toLowerCase() as Address,
}

describe('the dead-man switch job', () => {
  let fixture: MarketFixture
  /** The other market, in the same database. */
  let second: MarketFixture
  let fence: Fence
  let alice: Trader
  let bob: Trader
  let reachability: Reachability

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    await listMarket(fixture.db, OTHER)
    second = new MarketFixture(fixture.db, fixture.url, OTHER, fixture.clock)
    fence = await fixture.lease('switches')
    for (const market of [fixture, second]) await market.report(1000)
    alice = await fixture.trader('alice')
    bob = await fixture.trader('bob')
    reachability = new Reachability()
  })

  afterEach(async () => {
    await expectConsistent(fixture)
    await expectSameBook(fixture)
    await expectSameReadModel(fixture)
    await fixture.close()
  })

  const now = () => fixture.clock.value
  /** As the api does. */
  const arm = async (by: Trader, seconds: number) => {
    const timer = { timeout_seconds: seconds, armed_at: now(), fire_at: now() + seconds * 1000 }
    await armSwitch(fixture.db, by.account, timer)
  }
  const connect = (by: Trader, connection: string, seconds: number) =>
    armConnectionSwitches(fixture.db, [
      {
        ...{ connection_id: connection, user_id: by.account, timeout_seconds: seconds },
        fire_at: now() + seconds * 1000,
      },
    ])
  const run = (changes: { readonly store?: SwitchStore; readonly killPoint?: () => void } = {}) => {
    const { store = createSwitchStore(fixture.db), killPoint = () => {} } = changes
    return fireSwitches(
      { switches: store, clock: fixture.clock, killPoint, logger: SILENT_LOGGER, reachability },
      fence,
    )
  }
  /** Passes of a keeper that reaches the database all the time. Returns the pause after the last one. */
  const runFor = async (ms: number): Promise<number> => {
    let pause = await run()
    for (let left = ms; left > 0; left -= 1_000) {
      fixture.clock.value += Math.min(left, 1_000)
      pause = await run()
    }
    return pause
  }
  const buy = (by: Trader, on = fixture) => on.place({ by, side: 'LONG', steps: 10, limit: 990 })
  const stop = (by: Trader) =>
    fixture.place({ by, side: 'LONG', steps: 10, type: 'STOP_MARKET', trigger: 1010 })
  const stateOf = async (orderId: string) => {
    const { status, statusReason } = await fixture.orderOf(orderId)
    return statusReason === null ? status : `${status} ${statusReason}`
  }
  const DEAD = 'CANCELLED DEAD_MAN_SWITCH'
  const left = async () => [
    ...(await fixture.db.selectFrom('cancel_switches').select('user_id').execute()),
    ...(await fixture.db.selectFrom('fired_switches').select('user_id').execute()),
  ]

  it('when a switch is due, it cancels all orders of the account in every market and deletes the switch', async () => {
    const mine = [await buy(alice), await stop(alice), await buy(alice, second)]
    const others = await buy(bob)
    await arm(alice, 5)
    fixture.clock.value += 4_999
    await run()
    for (const id of mine) expect(await stateOf(id)).to.be.oneOf(['OPEN', 'PENDING_TRIGGER'])
    fixture.clock.value += 1
    await run()
    for (const id of mine) expect(await stateOf(id)).to.equal(DEAD)
    expect(await stateOf(others)).to.equal('OPEN')
    expect(await left()).to.deep.equal([])
  })

  it('when the next switch is due soon, it pauses until then, otherwise for 500 ms', async () => {
    expect(await run()).to.equal(500)
    await arm(alice, 5)
    expect(await run()).to.equal(500)
    fixture.clock.value += 4_900
    expect(await run()).to.equal(100)
  })

  it('when an order is accepted after the switch fired, it stays open', async () => {
    await arm(alice, 5)
    const before = await buy(alice)
    fixture.clock.value += 5_001
    const after = await buy(alice)
    await run()
    expect([await stateOf(before), await stateOf(after)]).to.deep.equal([DEAD, 'OPEN'])
  })

  it('when an order has an unsettled fill, it leaves the book and ends with its settlement', async () => {
    const order = await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 1000 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 1000 })
    const auctioning = await fixture.lease('auction:m1')
    const memory = createMarketMemory({ ...RULES, kind: perpetual.kind })
    await createAuction(fixture.auctionPorts(), perpetual, memory).run(auctioning)
    await arm(alice, 5)
    fixture.clock.value += 5_000
    await run()
    expect(await stateOf(order)).to.equal('CANCEL_PENDING_FINALIZE')
    await mineOldestPart(fixture)
    expect(await stateOf(order)).to.equal(DEAD)
  })

  it('when a due switch is armed again before the pass, it does not fire', async () => {
    const order = await buy(alice)
    await arm(alice, 5)
    fixture.clock.value += 5_000
    await arm(alice, 5)
    await run()
    expect(await stateOf(order)).to.equal('OPEN')
  })

  it('when the switch of the only connection of an account is due, it cancels its orders', async () => {
    const [mine, other] = [await buy(alice), await buy(bob)]
    await connect(alice, 'a', 5)
    await connect(bob, 'b', 60)
    await runFor(5_000)
    expect(await stateOf(mine)).to.equal(DEAD)
    expect(await stateOf(other)).to.equal('OPEN')
  })

  it('when the switch of a connection is due and another connection of the account lives, it does not fire', async () => {
    const order = await buy(alice)
    await connect(alice, 'first', 5)
    await runFor(4_000)
    await connect(alice, 'second', 5)
    await runFor(1_000)
    expect(await stateOf(order)).to.equal('OPEN')
    await runFor(4_000)
    expect(await stateOf(order)).to.equal(DEAD)
  })

  it('when the switches of a request and of a connection are due, both fire and each of their orders ends once', async () => {
    const order = await buy(alice)
    await arm(alice, 5)
    await connect(alice, 'a', 5)
    await runFor(5_000)
    expect(await stateOf(order)).to.equal(DEAD)
    expect(await left()).to.deep.equal([])
  })

  it('when only the switch of a connection is armed, the pass pauses until it is due', async () => {
    await connect(alice, 'a', 5)
    expect(await runFor(4_900)).to.equal(100)
  })

  it('when the database was unreachable for longer than the grace, the switch of a connection fires only if it is not renewed then', async () => {
    const [mine, other] = [await buy(alice), await buy(bob)]
    await run()
    await connect(alice, 'alive', 5)
    await connect(bob, 'dead', 5)
    const broken: SwitchStore = {
      ...createSwitchStore(fixture.db),
      next: () => Promise.reject(new Error('connection refused')),
    }
    for (let second = 0; second < 30; second++) {
      fixture.clock.value += 1_000
      await run({ store: broken }).catch(() => {})
    }
    expect(await run(), 'the pause while a due switch waits').to.equal(500)
    await runFor(1_000)
    await connect(alice, 'alive', 5)
    await runFor(3_900)
    expect([await stateOf(mine), await stateOf(other)]).to.deep.equal(['OPEN', 'OPEN'])
    await runFor(100)
    expect([await stateOf(mine), await stateOf(other)]).to.deep.equal(['OPEN', DEAD])
  })

  it('when the database was unreachable, the switch of a request fires at its time', async () => {
    const order = await buy(alice)
    await run()
    await arm(alice, 5)
    fixture.clock.value += 30_000
    await run()
    expect(await stateOf(order)).to.equal(DEAD)
  })

  it('when arming locks the row of a due switch before the pass, the switch does not fire', async () => {
    const order = await buy(alice)
    await arm(alice, 5)
    fixture.clock.value += 5_000
    let firing: Promise<number> | undefined
    await fixture.db.transaction().execute(async (tx) => {
      await tx
        .updateTable('cancel_switches')
        .set({ fire_at: now() + 5_000 })
        .execute()
      firing = run()
      // It waits for the row, and finds that it is not due any more.
      await new Promise((resolve) => setTimeout(resolve, 100))
    })
    await firing
    expect(await stateOf(order)).to.equal('OPEN')
    expect(await left()).to.have.length(1)
  })

  it('when a switch is armed again after it fired, its orders end and the new switch stays armed', async () => {
    const order = await buy(alice)
    await arm(alice, 5)
    fixture.clock.value += 5_000
    const store = createSwitchStore(fixture.db)
    await store.fire(fence, fixture.clock.now(), fixture.clock.now())
    await arm(alice, 60)
    await run()
    expect(await stateOf(order)).to.equal(DEAD)
    expect(await left()).to.have.length(1)
  })

  it('when it crashes between two markets, the next pass continues and cancels nothing twice', async () => {
    const mine = [await buy(alice), await buy(alice, second)]
    await arm(alice, 5)
    fixture.clock.value += 5_000
    const crash = () => {
      throw new Error('power cut')
    }
    let failure: unknown
    await run({ killPoint: crash }).catch((error: unknown) => {
      failure = error
    })
    expect(String(failure)).to.include('power cut')
    expect(await left()).to.have.length(1)
    await run()
    for (const id of mine) expect(await stateOf(id)).to.equal(DEAD)
    expect(await fixture.rows('order_ended')).to.have.length(1)
    expect(await left()).to.deep.equal([])
  })

  it('when one market fails, the other markets are cancelled and the failed one is retried', async () => {
    const mine = [await buy(alice), await buy(alice, second)]
    await arm(alice, 5)
    fixture.clock.value += 5_000
    const store = createSwitchStore(fixture.db)
    const troubled: SwitchStore = {
      ...store,
      cancel: async (own, marketId, fired, at) => {
        if (marketId === 1) throw new Error('out of order')
        return store.cancel(own, marketId, fired, at)
      },
    }
    let failure: unknown
    await run({ store: troubled }).catch((error: unknown) => {
      failure = error
    })
    expect(String(failure)).to.include('out of order')
    expect([await stateOf(mine[0] as string), await stateOf(mine[1] as string)]).to.deep.equal(['OPEN', DEAD])
    await run()
    expect(await stateOf(mine[0] as string)).to.equal(DEAD)
  })

  it('when many orders must be cancelled, each transaction cancels a bounded number of them', async () => {
    const count = 2 * MAX_ORDERS_PER_TURN + 1
    const accounts = await insertManyOrders(fixture, { count, perAccount: 500 })
    for (const account of accounts) await arm({ ...alice, account: account as UserId }, 5)
    fixture.clock.value += 5_000
    const store = createSwitchStore(fixture.db)
    const cancelled: number[] = []
    const counting: SwitchStore = {
      ...store,
      async cancel(...args) {
        cancelled.push(await store.cancel(...args))
        return cancelled.at(-1) as number
      },
    }
    await run({ store: counting })
    expect(cancelled).to.deep.equal([MAX_ORDERS_PER_TURN, MAX_ORDERS_PER_TURN, 1])
    expect(await left()).to.deep.equal([])
    const open = await fixture.db
      .selectFrom('orders')
      .select('order_id')
      .where('status', '=', 'OPEN')
      .execute()
    expect(open).to.deep.equal([])
    // The orders are not in the journal, with which the checks after each test compare the tables.
    await fixture.db.deleteFrom('orders').execute()
    await fixture.db.deleteFrom('journal').where('shard', '=', 'm1').where('seq', '>', 1).execute()
    await fixture.db.updateTable('shards').set({ head: 1 }).where('shard', '=', 'm1').execute()
  })

  it('when the account has no orders in a market, the switch does not wait for that market', async () => {
    const order = await buy(alice)
    await arm(alice, 5)
    fixture.clock.value += 5_000
    await fixture.db.transaction().execute(async (tx) => {
      await lockShard(tx, marketShard(OTHER.marketId))
      await run()
      expect(await stateOf(order)).to.equal(DEAD)
    })
  })

  it('when the lease is lost, it cancels nothing', async () => {
    const order = await buy(alice)
    await arm(alice, 5)
    fixture.clock.value += 5_000
    await fixture.db
      .updateTable('leases')
      .set({ owner: 'another', token: 99 })
      .where('name', '=', 'switches')
      .execute()
    let failure: unknown
    await run().catch((error: unknown) => {
      failure = error
    })
    expect(failure).to.be.instanceOf(LeaseLost)
    expect(await stateOf(order)).to.equal('OPEN')
  })
})
