import { expect } from 'chai'
import { Wallet } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { type Fence, LeaseLost } from '../../../db/fence.ts'
import { listMarket } from '../../../db/markets.ts'
import type { Address, MarketId } from '../../../domain/units.ts'
import { createAuction } from '../../../keeper/auction/auction.ts'
import { createMarketMemory } from '../../../keeper/auction/market-memory.ts'
import type { SwitchStore } from '../../../keeper/switches/ports.ts'
import { createSwitchStore } from '../../../keeper/switches/store.ts'
import { fireSwitches } from '../../../keeper/switches/switches.ts'
import { perpetual } from '../../support/markets.ts'
import { expectConsistent, expectSameBook, expectSameReadModel } from '../support/invariants.ts'
import { mineOne } from '../support/mine.ts'
import { quiet, RULES, type Trader, World } from '../support/world.ts'

const OTHER = {
  ...perpetual,
  marketId: 2 as MarketId,
  symbol: 'OTHER',
  trader: Wallet.createRandom().address.toLowerCase() as Address,
}

describe("the dead-man switch's executor", () => {
  let world: World
  /** The other market, in the same database. */
  let second: World
  let fence: Fence
  let alice: Trader
  let bob: Trader

  beforeEach(async () => {
    world = await World.open(perpetual)
    await listMarket(world.db, OTHER)
    second = new World(world.db, world.url, OTHER, world.clock)
    fence = await world.lease('switches')
    await world.report(1000)
    alice = await world.trader('alice')
    bob = await world.trader('bob')
  })

  afterEach(async () => {
    await expectConsistent(world)
    await expectSameBook(world)
    await expectSameReadModel(world)
    await world.close()
  })

  const now = () => world.clock.value
  /** As the api does. */
  const arm = async (by: Trader, seconds: number) => {
    const timer = { timeout_seconds: seconds, armed_at: now(), fire_at: now() + seconds * 1000 }
    await world.db
      .insertInto('cancel_switches')
      .values({ user_id: by.account, ...timer })
      .onConflict((conflict) => conflict.column('user_id').doUpdateSet(timer))
      .execute()
  }
  const run = (changes: { readonly store?: SwitchStore; readonly killPoint?: () => void } = {}) => {
    const { store = createSwitchStore(world.db), killPoint = () => {} } = changes
    return fireSwitches({ switches: store, clock: world.clock, killPoint, logger: quiet }, fence)
  }
  const buy = (by: Trader, on = world) => on.place({ by, side: 'LONG', steps: 10, limit: 990 })
  const stop = (by: Trader) =>
    world.place({ by, side: 'LONG', steps: 10, type: 'STOP_MARKET', trigger: 1010 })
  const stateOf = async (orderId: string) => {
    const { status, statusReason } = await world.orderOf(orderId)
    return statusReason === null ? status : `${status} ${statusReason}`
  }
  const DEAD = 'CANCELLED DEAD_MAN_SWITCH'
  const left = async () => [
    ...(await world.db.selectFrom('cancel_switches').select('user_id').execute()),
    ...(await world.db.selectFrom('fired_switches').select('user_id').execute()),
  ]

  it('given a switch that is due, it cancels all that the account has, in every market and state, and forgets the switch', async () => {
    const mine = [await buy(alice), await stop(alice), await buy(alice, second)]
    const others = await buy(bob)
    await arm(alice, 5)
    world.clock.value += 4_999
    await run()
    for (const id of mine) expect(await stateOf(id)).to.be.oneOf(['OPEN', 'PENDING_TRIGGER'])
    world.clock.value += 1
    await run()
    for (const id of mine) expect(await stateOf(id)).to.equal(DEAD)
    expect(await stateOf(others)).to.equal('OPEN')
    expect(await left()).to.deep.equal([])
  })

  it('given the time of the next switch, it asks to be woken then, and else soon enough to see a new one', async () => {
    expect(await run()).to.equal(250)
    await arm(alice, 5)
    expect(await run()).to.equal(250)
    world.clock.value += 4_900
    expect(await run()).to.equal(100)
  })

  it('given an order that was accepted after the switch fired, it stays', async () => {
    await arm(alice, 5)
    const before = await buy(alice)
    world.clock.value += 5_001
    const after = await buy(alice)
    await run()
    expect([await stateOf(before), await stateOf(after)]).to.deep.equal([DEAD, 'OPEN'])
  })

  it('given an order of which some settles, it leaves the book and ends with its settlement', async () => {
    const order = await world.place({ by: alice, side: 'LONG', steps: 50, limit: 1000 })
    await world.place({ by: bob, side: 'SHORT', steps: 20, limit: 1000 })
    const auctioning = await world.lease('auction:m1')
    const memory = createMarketMemory({ ...RULES, kind: perpetual.kind })
    await createAuction(world.auctionPorts(), perpetual, memory).run(auctioning)
    await arm(alice, 5)
    world.clock.value += 5_000
    await run()
    expect(await stateOf(order)).to.equal('CANCEL_PENDING_FINALIZE')
    await mineOne(world)
    expect(await stateOf(order)).to.equal(DEAD)
  })

  it('given a switch that is armed anew before it is taken up, it does not fire', async () => {
    const order = await buy(alice)
    await arm(alice, 5)
    world.clock.value += 5_000
    await arm(alice, 5)
    await run()
    expect(await stateOf(order)).to.equal('OPEN')
  })

  it('given a switch that is armed anew while it is taken up, whoever has its row first decides', async () => {
    const order = await buy(alice)
    await arm(alice, 5)
    world.clock.value += 5_000
    let firing: Promise<number> | undefined
    await world.db.transaction().execute(async (tx) => {
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

  it('given a switch that is armed anew after it has fired, what it fired for ends and the new one stays armed', async () => {
    const order = await buy(alice)
    await arm(alice, 5)
    world.clock.value += 5_000
    const store = createSwitchStore(world.db)
    await store.fire(fence, world.clock.now())
    await arm(alice, 60)
    await run()
    expect(await stateOf(order)).to.equal(DEAD)
    expect(await left()).to.have.length(1)
  })

  it('given a crash between two markets, the next one goes on, and nothing is cancelled twice', async () => {
    const mine = [await buy(alice), await buy(alice, second)]
    await arm(alice, 5)
    world.clock.value += 5_000
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
    expect(await world.rows('order_ended')).to.have.length(1)
    expect(await left()).to.deep.equal([])
  })

  it('given a market in trouble, the others do not wait for it, and it is tried again', async () => {
    const mine = [await buy(alice), await buy(alice, second)]
    await arm(alice, 5)
    world.clock.value += 5_000
    const store = createSwitchStore(world.db)
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

  it('given a lost lease, it cancels nothing', async () => {
    const order = await buy(alice)
    await arm(alice, 5)
    world.clock.value += 5_000
    await world.db
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
