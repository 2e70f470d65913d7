import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { OrderType } from '../../../domain/orders/order.ts'
import type { Millis } from '../../../domain/units.ts'
import { createAuction } from '../../../keeper/auction/auction.ts'
import { createMarketMemory, type MarketMemory } from '../../../keeper/auction/market-memory.ts'
import { createMarks } from '../../../keeper/marks/marks.ts'
import { perpetual } from '../../support/markets.ts'
import { expectConsistent, expectSameBook, expectSameReadModel } from '../support/invariants.ts'
import { mineOne } from '../support/mine.ts'
import { type Placement, RULES, type Trader, World } from '../support/world.ts'

describe('conditional orders in the keeper', () => {
  let world: World
  let fence: Fence
  let alice: Trader
  let bob: Trader
  let keeper: Keeper

  /** What a keeper does every 200 ms, with a memory of its own. */
  class Keeper {
    readonly memory: MarketMemory = createMarketMemory({ ...RULES, kind: perpetual.kind })
    readonly #ports = world.auctionPorts()
    readonly #marks = createMarks(this.#ports, perpetual, this.memory)
    readonly #auction = createAuction(this.#ports, perpetual, this.memory)

    /** Returns the batch, if there is one. */
    async step(): Promise<number | null> {
      world.clock.value += 200
      await this.#marks.update(fence)
      return this.#auction.run(fence)
    }
  }

  beforeEach(async () => {
    world = await World.open(perpetual)
    fence = await world.lease('auction:m1')
    await world.report(1000)
    alice = await world.trader('alice')
    bob = await world.trader('bob')
    keeper = new Keeper()
    await keeper.step()
  })

  afterEach(async () => {
    await expectConsistent(world)
    await expectSameBook(world)
    await expectSameReadModel(world)
    await world.close()
  })

  const place = (by: Trader, type: OrderType, changes: Partial<Placement>) =>
    world.place({ by, side: 'LONG', steps: 10, type, ...changes })
  const stateOf = async (orderId: string) => {
    const { status, statusReason } = await world.orderOf(orderId)
    return statusReason === null ? status : `${status} ${statusReason}`
  }
  /** The oracle moves; the next step is the first that can know. */
  const moveTo = async (ticks: number) => {
    world.clock.value += 1
    await world.report(ticks)
  }
  /** Alice gets `size`, long or short, and it is mined. */
  const give = async (size: number) => {
    const [side, other] = size > 0 ? (['LONG', 'SHORT'] as const) : (['SHORT', 'LONG'] as const)
    await world.place({ by: alice, side, steps: Math.abs(size), limit: 1000 })
    await world.place({ by: bob, side: other, steps: Math.abs(size), limit: 1000 })
    await keeper.step()
    while (await mineOne(world)) {}
  }

  // ---------------------------------------------------------------------- when

  for (const [type, side, against] of [
    ['STOP_MARKET', 'LONG', 1010],
    ['STOP_MARKET', 'SHORT', 990],
    ['STOP_LIMIT', 'LONG', 1010],
    ['STOP_LIMIT', 'SHORT', 990],
    ['STOP_LOSS_MARKET', 'SHORT', 990],
    ['STOP_LOSS_LIMIT', 'LONG', 1010],
    ['TAKE_PROFIT_MARKET', 'SHORT', 1010],
    ['TAKE_PROFIT_LIMIT', 'LONG', 990],
  ] as const) {
    it(`given a ${side} ${type}, it waits until the mark reaches its trigger, and is in the very next batch`, async () => {
      const reduces = type.startsWith('TAKE') || type.startsWith('STOP_LOSS')
      if (reduces) await give(side === 'LONG' ? -10 : 10)
      const limit = type.endsWith('LIMIT') ? { limit: 1000 } : {}
      const order = await place(alice, type, { side, trigger: against, ...limit })
      await moveTo(against > 1000 ? against - 1 : against + 1)
      await keeper.step()
      expect(await stateOf(order)).to.equal('PENDING_TRIGGER')

      await world.place({ by: bob, side: side === 'LONG' ? 'SHORT' : 'LONG', steps: 20, limit: 1000 })
      await moveTo(against)
      const batch = await keeper.step()
      const { status, settling, triggered, seq } = await world.orderOf(order)
      expect([status, settling]).to.deep.equal(['OPEN', 10])
      const [row] = await world.rows('order_triggered')
      expect(triggered).to.deep.include({
        batch_id: batch,
        mark_price: row.mark_price,
        at: world.clock.value,
      })
      expect(BigInt(row.mark_price) / perpetual.tick).to.equal(BigInt(against))
      expect(seq).to.be.greaterThan(Number(order.split('-')[1]))
    })
  }

  it('given a trigger that the mark has passed before it was placed, the next look at the mark triggers it', async () => {
    const order = await place(alice, 'STOP_LIMIT', { trigger: 995, limit: 990 })
    await keeper.step()
    await keeper.step()
    expect(await stateOf(order)).to.equal('OPEN')
  })

  it('given a mark that only passes by, it stays triggered', async () => {
    const order = await place(alice, 'STOP_LIMIT', { trigger: 1010, limit: 1005 })
    await keeper.step()
    await moveTo(1010)
    await keeper.step()
    await moveTo(1000)
    await keeper.step()
    expect(await stateOf(order)).to.equal('OPEN')
  })

  // ---------------------------------------------------------------------- what it becomes

  it('given nobody to trade with, a triggered market order is cancelled and a triggered limit order rests', async () => {
    const market = await place(alice, 'STOP_MARKET', { trigger: 1010 })
    const limit = await place(alice, 'STOP_LIMIT', { trigger: 1010, limit: 1001 })
    await keeper.step()
    await moveTo(1010)
    await keeper.step()
    expect(await stateOf(market)).to.equal('CANCELLED MARKET_REMAINDER')
    expect(await stateOf(limit)).to.equal('OPEN')
  })

  it('given a gap beyond its trigger, a triggered market order can pay the new price', async () => {
    const order = await place(alice, 'STOP_MARKET', { trigger: 1010 })
    await keeper.step()
    const before = await world.orderOf(order)
    await moveTo(1300)
    await world.place({ by: bob, side: 'SHORT', steps: 10, limit: 1290 })
    await keeper.step()
    const after = await world.orderOf(order)
    expect(after.settling).to.equal(10)
    expect(after.held > before.reserved).to.equal(true)
  })

  it('given an account that cannot pay any more, it ends with the evidence of its trigger', async () => {
    const poor = await world.trader('poor', '0.25')
    const order = await place(poor, 'STOP_MARKET', { trigger: 1010 })
    await keeper.step()
    await moveTo(1300)
    await keeper.step()
    expect(await stateOf(order)).to.equal('CANCELLED INSUFFICIENT_MARGIN')
    expect((await world.orderOf(order)).triggered).to.include({ at: world.clock.value })
  })

  it('given no position to reduce, a reduce-only order ends', async () => {
    const order = await place(alice, 'STOP_LOSS_MARKET', { side: 'SHORT', trigger: 990 })
    await keeper.step()
    await moveTo(980)
    await keeper.step()
    expect(await stateOf(order)).to.equal('CANCELLED REDUCE_ONLY_NO_POSITION')
  })

  it('given older orders against the position, it gives its reducing capacity to them', async () => {
    await give(10)
    const stop = await place(alice, 'STOP_LIMIT', { side: 'SHORT', trigger: 990, limit: 985 })
    const limit = await world.place({ by: alice, side: 'SHORT', steps: 10, limit: 1015 })
    expect([(await world.orderOf(stop)).openable, (await world.orderOf(limit)).openable]).to.deep.equal([
      0, 10,
    ])
    await keeper.step()
    await moveTo(990)
    await keeper.step()
    expect([(await world.orderOf(stop)).openable, (await world.orderOf(limit)).openable]).to.deep.equal([
      10, 0,
    ])
    expect(await world.rows('reservation_changed')).to.have.length(1)
  })

  it('given a waiting order, it takes reducing capacity when the position moves', async () => {
    const stop = await place(alice, 'STOP_LIMIT', { side: 'SHORT', trigger: 990, limit: 985, steps: 10 })
    const limit = await world.place({ by: alice, side: 'SHORT', steps: 10, limit: 1015 })
    await give(15)
    expect([(await world.orderOf(stop)).openable, (await world.orderOf(limit)).openable]).to.deep.equal([
      0, 5,
    ])
  })

  // ---------------------------------------------------------------------- when not

  for (const [name, spoil, heal] of [
    [
      'a halted market',
      () => world.db.updateTable('markets').set({ mode: 'halted' }).execute(),
      () => world.db.updateTable('markets').set({ mode: 'open' }).execute(),
    ],
    [
      'a stale oracle price',
      async () => {
        world.clock.value += RULES.maxAge + 1
      },
      () => world.report(1010),
    ],
    [
      'a settlement that is behind',
      async () => {
        await world.place({ by: alice, side: 'LONG', steps: 10, limit: 1010 })
        await world.place({ by: bob, side: 'SHORT', steps: 10, limit: 1010 })
        world.clock.value += 1
        await world.report(1009)
        await keeper.step()
        world.clock.value += 6000
        await world.report(1010)
      },
      async () => {
        while (await mineOne(world)) {}
      },
    ],
  ] as const) {
    it(`given ${name}, it waits, and triggers when a batch can run again`, async () => {
      const order = await place(alice, 'STOP_MARKET', { trigger: 1010 })
      await keeper.step()
      if (name !== 'a settlement that is behind') await moveTo(1010)
      await spoil()
      for (let at = 0; at < 7; at++) await keeper.step()
      expect(await stateOf(order)).to.equal('PENDING_TRIGGER')
      await heal()
      await keeper.step()
      expect(await stateOf(order)).to.equal('CANCELLED MARKET_REMAINDER')
    })
  }

  it('given a cancel, it ends at once', async () => {
    const order = await place(alice, 'STOP_MARKET', { trigger: 1010 })
    await keeper.step()
    expect(await world.cancel(order)).to.equal(true)
    await moveTo(1010)
    await keeper.step()
    expect(await stateOf(order)).to.equal('CANCELLED USER_CANCELLED')
    expect(await world.rows('order_triggered')).to.deep.equal([])
  })

  // ---------------------------------------------------------------------- time

  for (const [name, spoil] of [
    ['an open market', async () => {}],
    ['a halted market', () => world.db.updateTable('markets').set({ mode: 'halted' }).execute()],
    ['no oracle report', () => world.db.deleteFrom('oracle_reports').execute()],
    [
      'a node that has never answered',
      async () => {
        keeper.memory.rules = null
      },
    ],
  ] as const) {
    it(`given ${name}, orders expire on time, waiting or open`, async () => {
      const expiration = Math.floor(world.clock.value / 1000) + 3
      const waiting = await place(alice, 'STOP_MARKET', { trigger: 1010, expiration })
      const open = await world.place({ by: alice, side: 'LONG', steps: 10, limit: 990, expiration })
      await spoil()
      await keeper.step()
      while (world.clock.value + 200 <= expiration * 1000) await keeper.step()
      expect([await stateOf(waiting), await stateOf(open)]).to.deep.equal(['PENDING_TRIGGER', 'OPEN'])
      await keeper.step()
      expect([await stateOf(waiting), await stateOf(open)]).to.deep.equal(Array(2).fill('EXPIRED EXPIRED'))
    })
  }

  it('given a session key that expires first, its orders end with it', async () => {
    const order = await place(alice, 'STOP_MARKET', { trigger: 1010 })
    const until = Math.floor(world.clock.value / 1000) + 2
    const row = { alive_until: until }
    await world.db.updateTable('orders').set(row).where('order_id', '=', order).execute()
    keeper = new Keeper()
    while (world.clock.value <= until * 1000) await keeper.step()
    expect(await stateOf(order)).to.equal('EXPIRED SIGNER_EXPIRED')
  })

  // ---------------------------------------------------------------------- faults

  it('given another keeper, it finds the waiting orders and triggers them', async () => {
    const order = await place(alice, 'STOP_LIMIT', { trigger: 1010, limit: 1005 })
    await keeper.step()
    await moveTo(1010)
    const other = new Keeper()
    await other.step()
    expect(await stateOf(order), 'a keeper learns the book in its first turn').to.equal('PENDING_TRIGGER')
    await other.step()
    expect(await stateOf(order)).to.equal('OPEN')
    expect((await world.orderOf(order)).acceptedAt).to.be.lessThan(world.clock.now() as Millis)
  })

  it('given a market order that waits after its trigger, its two seconds begin there', async () => {
    const order = await place(alice, 'STOP_MARKET', { trigger: 1010 })
    world.clock.value += 60_000
    await moveTo(1010)
    await keeper.step()
    await keeper.step()
    expect(await stateOf(order)).to.equal('CANCELLED MARKET_REMAINDER')
  })

  it('given many orders of many accounts, it triggers all that the mark has reached, in the order of acceptance', async () => {
    const ids: string[] = []
    for (let at = 0; at < 30; at++) {
      const trigger = 1001 + ((at * 7) % 20)
      ids.push(await place(at % 2 === 0 ? alice : bob, 'STOP_LIMIT', { trigger, limit: 990 }))
    }
    await keeper.step()
    await moveTo(1010)
    await keeper.step()
    const told = (await world.rows('order_triggered')).map(({ order_id }) => order_id)
    expect(told).to.deep.equal(ids.filter((_, at) => 1001 + ((at * 7) % 20) <= 1010))
  })
})
