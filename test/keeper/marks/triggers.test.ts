import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { OrderType } from '../../../domain/orders/order.ts'
import type { Millis } from '../../../domain/units.ts'
import { perpetual } from '../../support/markets.ts'
import { createAuction, createMarketMemory, createMarks, type MarketMemory } from '../support/engine-turns.ts'
import { expectConsistent, expectSameBook, expectSameReadModel } from '../support/invariants.ts'
import { MarketFixture, type Placement, RULES, type Trader } from '../support/market-fixture.ts'
import { mineOldestPart } from '../support/mine-part.ts'

describe('conditional orders in the keeper', () => {
  let fixture: MarketFixture
  let alice: Trader
  let bob: Trader
  let keeper: Keeper

  /** What a keeper does every 200 ms, with a memory of its own. */
  class Keeper {
    readonly memory: MarketMemory = createMarketMemory({ ...RULES, kind: perpetual.kind })
    readonly #ports = fixture.turnPorts()
    readonly #marks = createMarks(this.#ports, perpetual, this.memory)
    readonly #auction = createAuction(this.#ports, perpetual, this.memory)

    /** Returns the batch, if there is one. */
    async step(): Promise<number | null> {
      fixture.clock.value += 200
      await this.#marks.update()
      return this.#auction.run()
    }
  }

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    await fixture.report(1000)
    alice = await fixture.trader('alice')
    bob = await fixture.trader('bob')
    keeper = new Keeper()
    await keeper.step()
  })

  afterEach(async () => {
    await expectConsistent(fixture)
    await expectSameBook(fixture)
    await expectSameReadModel(fixture)
    await fixture.close()
  })

  const place = (by: Trader, type: OrderType, changes: Partial<Placement>) =>
    fixture.place({ by, side: 'LONG', steps: 10, type, ...changes })
  const stateOf = async (orderId: string) => {
    const { status, statusReason } = await fixture.orderOf(orderId)
    return statusReason === null ? status : `${status} ${statusReason}`
  }
  /** The oracle moves; the next step is the first that can know. */
  const moveTo = async (ticks: number) => {
    fixture.clock.value += 1
    await fixture.report(ticks)
  }
  /** Alice gets `size`, long or short, and it is mined. */
  const give = async (size: number) => {
    const [side, other] = size > 0 ? (['LONG', 'SHORT'] as const) : (['SHORT', 'LONG'] as const)
    await fixture.place({ by: alice, side, steps: Math.abs(size), limit: 1000 })
    await fixture.place({ by: bob, side: other, steps: Math.abs(size), limit: 1000 })
    await keeper.step()
    while (await mineOldestPart(fixture)) {}
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
    it(`when the mark reaches the trigger of a ${side} ${type}, the order is in the very next batch`, async () => {
      const reduces = type.startsWith('TAKE') || type.startsWith('STOP_LOSS')
      if (reduces) await give(side === 'LONG' ? -10 : 10)
      const limit = type.endsWith('LIMIT') ? { limit: 1000 } : {}
      const order = await place(alice, type, { side, trigger: against, ...limit })
      await moveTo(against > 1000 ? against - 1 : against + 1)
      await keeper.step()
      expect(await stateOf(order)).to.equal('PENDING_TRIGGER')

      await fixture.place({ by: bob, side: side === 'LONG' ? 'SHORT' : 'LONG', steps: 20, limit: 1000 })
      await moveTo(against)
      const batch = await keeper.step()
      const { status, settling, triggered, seq } = await fixture.orderOf(order)
      expect([status, settling]).to.deep.equal(['OPEN', 10])
      const [row] = await fixture.rows('order_triggered')
      expect(triggered).to.deep.include({
        batch_id: batch,
        mark_price: row.mark_price,
        at: fixture.clock.value,
      })
      expect(BigInt(row.mark_price) / perpetual.tick).to.equal(BigInt(against))
      expect(seq).to.be.greaterThan(Number(order.split('-')[1]))
    })
  }

  it('when the mark has passed the trigger before the placement, the next mark triggers the order', async () => {
    const order = await place(alice, 'STOP_LIMIT', { trigger: 995, limit: 990 })
    await keeper.step()
    await keeper.step()
    expect(await stateOf(order)).to.equal('OPEN')
  })

  it('when the mark moves back after the trigger, the order stays triggered', async () => {
    const order = await place(alice, 'STOP_LIMIT', { trigger: 1010, limit: 1005 })
    await keeper.step()
    await moveTo(1010)
    await keeper.step()
    await moveTo(1000)
    await keeper.step()
    expect(await stateOf(order)).to.equal('OPEN')
  })

  // ---------------------------------------------------------------------- what it becomes

  it('when there is no opposite order, a triggered market order is cancelled and a triggered limit order rests', async () => {
    const market = await place(alice, 'STOP_MARKET', { trigger: 1010 })
    const limit = await place(alice, 'STOP_LIMIT', { trigger: 1010, limit: 1001 })
    await keeper.step()
    await moveTo(1010)
    await keeper.step()
    expect(await stateOf(market)).to.equal('CANCELLED MARKET_REMAINDER')
    expect(await stateOf(limit)).to.equal('OPEN')
  })

  it('when the mark gaps beyond the trigger, a triggered market order can pay the new price', async () => {
    const order = await place(alice, 'STOP_MARKET', { trigger: 1010 })
    await keeper.step()
    const before = await fixture.orderOf(order)
    await moveTo(1300)
    await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 1290 })
    await keeper.step()
    const after = await fixture.orderOf(order)
    expect(after.settling).to.equal(10)
    expect(after.held > before.reserved).to.equal(true)
  })

  it('when the account cannot pay the order any more, the order ends with the evidence of its trigger', async () => {
    const poor = await fixture.trader('poor', '0.25')
    const order = await place(poor, 'STOP_MARKET', { trigger: 1010 })
    await keeper.step()
    await moveTo(1300)
    await keeper.step()
    expect(await stateOf(order)).to.equal('CANCELLED INSUFFICIENT_MARGIN')
    expect((await fixture.orderOf(order)).triggered).to.include({ at: fixture.clock.value })
  })

  it('when there is no position to reduce, a triggered reduce-only order ends', async () => {
    const order = await place(alice, 'STOP_LOSS_MARKET', { side: 'SHORT', trigger: 990 })
    await keeper.step()
    await moveTo(980)
    await keeper.step()
    expect(await stateOf(order)).to.equal('CANCELLED REDUCE_ONLY_NO_POSITION')
  })

  it('when an older order triggers, it takes the reducing capacity from a newer order', async () => {
    await give(10)
    const stop = await place(alice, 'STOP_LIMIT', { side: 'SHORT', trigger: 990, limit: 985 })
    const limit = await fixture.place({ by: alice, side: 'SHORT', steps: 10, limit: 1015 })
    expect([(await fixture.orderOf(stop)).openable, (await fixture.orderOf(limit)).openable]).to.deep.equal([
      0, 10,
    ])
    await keeper.step()
    await moveTo(990)
    await keeper.step()
    expect([(await fixture.orderOf(stop)).openable, (await fixture.orderOf(limit)).openable]).to.deep.equal([
      10, 0,
    ])
    expect(await fixture.rows('reservation_changed')).to.have.length(1)
  })

  it('when the position changes, a waiting order takes reducing capacity', async () => {
    const stop = await place(alice, 'STOP_LIMIT', { side: 'SHORT', trigger: 990, limit: 985, steps: 10 })
    const limit = await fixture.place({ by: alice, side: 'SHORT', steps: 10, limit: 1015 })
    await give(15)
    expect([(await fixture.orderOf(stop)).openable, (await fixture.orderOf(limit)).openable]).to.deep.equal([
      0, 5,
    ])
  })

  // ---------------------------------------------------------------------- when not

  for (const [name, spoil, heal] of [
    [
      'a halted market',
      () => fixture.db.updateTable('markets').set({ mode: 'halted' }).execute(),
      () => fixture.db.updateTable('markets').set({ mode: 'open' }).execute(),
    ],
    [
      'a stale oracle price',
      async () => {
        fixture.clock.value += RULES.maxAge + 1
      },
      () => fixture.report(1010),
    ],
    [
      'a settlement that is behind',
      async () => {
        await fixture.place({ by: alice, side: 'LONG', steps: 10, limit: 1010 })
        await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 1010 })
        fixture.clock.value += 1
        await fixture.report(1009)
        await keeper.step()
        fixture.clock.value += 6000
        await fixture.report(1010)
      },
      async () => {
        while (await mineOldestPart(fixture)) {}
      },
    ],
  ] as const) {
    it(`when there is ${name}, a reached trigger waits and triggers once a batch can run again`, async () => {
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

  it('when a waiting order is cancelled, it ends at once and never triggers', async () => {
    const order = await place(alice, 'STOP_MARKET', { trigger: 1010 })
    await keeper.step()
    expect(await fixture.cancel(order)).to.equal(true)
    await moveTo(1010)
    await keeper.step()
    expect(await stateOf(order)).to.equal('CANCELLED USER_CANCELLED')
    expect(await fixture.rows('order_triggered')).to.deep.equal([])
  })

  // ---------------------------------------------------------------------- time

  for (const [name, spoil] of [
    ['an open market', async () => {}],
    ['a halted market', () => fixture.db.updateTable('markets').set({ mode: 'halted' }).execute()],
    ['no oracle report', () => fixture.db.deleteFrom('oracle_reports').execute()],
    [
      'a node that has never responded',
      async () => {
        keeper.memory.rules = null
      },
    ],
  ] as const) {
    it(`when there is ${name}, waiting and open orders expire on time`, async () => {
      const expiration = Math.floor(fixture.clock.value / 1000) + 3
      const waiting = await place(alice, 'STOP_MARKET', { trigger: 1010, expiration })
      const open = await fixture.place({ by: alice, side: 'LONG', steps: 10, limit: 990, expiration })
      await spoil()
      await keeper.step()
      while (fixture.clock.value + 200 <= expiration * 1000) await keeper.step()
      expect([await stateOf(waiting), await stateOf(open)]).to.deep.equal(['PENDING_TRIGGER', 'OPEN'])
      await keeper.step()
      expect([await stateOf(waiting), await stateOf(open)]).to.deep.equal(Array(2).fill('EXPIRED EXPIRED'))
    })
  }

  it('when the session key expires before the order, the order ends with the key', async () => {
    const until = Math.floor(fixture.clock.value / 1000) + 2
    const order = await place(alice, 'STOP_MARKET', { trigger: 1010, keyExpiresAt: until })
    keeper = new Keeper()
    while (fixture.clock.value <= until * 1000) await keeper.step()
    expect(await stateOf(order)).to.equal('EXPIRED SIGNER_EXPIRED')
  })

  // ---------------------------------------------------------------------- faults

  it('when another keeper takes over, it triggers the waiting orders', async () => {
    const order = await place(alice, 'STOP_LIMIT', { trigger: 1010, limit: 1005 })
    await keeper.step()
    await moveTo(1010)
    const other = new Keeper()
    await other.step()
    expect(await stateOf(order)).to.equal('OPEN')
    expect((await fixture.orderOf(order)).acceptedAt).to.be.lessThan(fixture.clock.now() as Millis)
  })

  it('when a market order triggers long after its placement, its two seconds start at the trigger', async () => {
    const order = await place(alice, 'STOP_MARKET', { trigger: 1010 })
    fixture.clock.value += 60_000
    await moveTo(1010)
    await keeper.step()
    await keeper.step()
    expect(await stateOf(order)).to.equal('CANCELLED MARKET_REMAINDER')
  })

  it('when the mark reaches many triggers of several accounts, it triggers them in order of acceptance', async () => {
    const ids: string[] = []
    for (let at = 0; at < 30; at++) {
      const trigger = 1001 + ((at * 7) % 20)
      ids.push(await place(at % 2 === 0 ? alice : bob, 'STOP_LIMIT', { trigger, limit: 990 }))
    }
    await keeper.step()
    await moveTo(1010)
    await keeper.step()
    const told = (await fixture.rows('order_triggered')).map(({ order_id }) => order_id)
    expect(told).to.deep.equal(ids.filter((_, at) => 1001 + ((at * 7) % 20) <= 1010))
  })
})
