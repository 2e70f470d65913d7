/** However many orders a batch would change beside those that it fills, no step of its market changes more than the bound. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { recompute } from '../../../domain/auction/auction.ts'
import { MATCH_ROUNDS } from '../../../domain/auction/batch.ts'
import type { ClearingInputs } from '../../../domain/auction/clearing.ts'
import { MAX_ORDERS_PER_TURN } from '../../../domain/auction/turn-bound.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import { perpetual } from '../../support/markets.ts'
import { loadInputs } from '../../support/rows/batches.ts'
import { createAuction, createMarketMemory } from '../support/engine-turns.ts'
import { expectConsistent } from '../support/invariants.ts'
import { insertLongs, insertManyOrders } from '../support/many-orders.ts'
import { MarketFixture, RULES, type Trader } from '../support/market-fixture.ts'
import { matchedFills } from '../support/matched-fills.ts'
import { mineOldestPart } from '../support/mine-part.ts'

const PER_ACCOUNT = 400
const ACCOUNTS = 7

/** From now on a match sees the orders of these accounts at a leverage that the margin requirement does not allow. */
function dispute({ engine, spec }: MarketFixture, accounts: ReadonlySet<number>): void {
  const { book } = engine.state.books.of(spec.marketId)
  const get = book.get.bind(book)
  book.get = (seq) => {
    const order = get(seq)
    return order && accounts.has(order.account) ? { ...order, leverage: 1_000 } : order
  }
}

/** Orders that the rows change beside those that a batch fills. */
function changedOrders(rows: readonly Entry[]): number {
  const changed = rows.flatMap(({ row }) => {
    if (row.kind === 'batch_cleared') return row.closing.map(({ order_id }) => order_id)
    return row.kind === 'order_ended' || row.kind === 'reservation_changed' ? [row.order_id] : []
  })
  const filled = rows.flatMap(({ row }) =>
    row.kind === 'batch_cleared' ? row.fills.map(({ order_id }) => order_id) : [],
  )
  const isFilled = new Set(filled)
  return new Set(changed.filter((id) => !isFilled.has(id))).size
}

describe('the orders that one step of a market changes', function () {
  this.timeout(120_000)
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
    await expectConsistent(fixture).finally(() => fixture.close())
  })

  /** An owner with a memory of its own. */
  function keeper() {
    const memory = createMarketMemory({ ...RULES, kind: perpetual.kind })
    const auction = createAuction(fixture.turnPorts(), perpetual, memory)
    return { memory, run: () => auction.run() }
  }
  /** Of each step with rows: the orders that it changes beside those that it fills. */
  const changes = () => fixture.engine.groups.map(changedOrders)

  async function tick(): Promise<void> {
    fixture.clock.value += 200
    await fixture.report(1000)
  }
  const count = async (accounts: readonly number[], status: 'OPEN' | 'CANCELLED'): Promise<number> => {
    const { orders } = await fixture.db
      .selectFrom('orders')
      .select(({ fn }) => fn.countAll<number>().as('orders'))
      .where('status', '=', status)
      .where('user_id', 'in', accounts)
      .executeTakeFirstOrThrow()
    return Number(orders)
  }
  async function cross(): Promise<string> {
    await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 1000 })
    return fixture.place({ by: alice, side: 'LONG', steps: 10, limit: 1000 })
  }
  /** Positions that one bid closes, each with many sells that are out of reach. */
  async function crowdedPositions(reduceOnly: boolean): Promise<readonly number[]> {
    const steps = 10 * PER_ACCOUNT
    const sells = { side: 'SHORT', limit: 1040, opens: false, reduceOnly } as const
    const ids = await insertManyOrders(fixture, {
      ...sells,
      count: ACCOUNTS * PER_ACCOUNT,
      perAccount: PER_ACCOUNT,
    })
    await insertLongs(fixture, ids, steps)
    const close = { count: ACCOUNTS, perAccount: 1, accounts: ids, side: 'SHORT', limit: 995 } as const
    await insertManyOrders(fixture, { ...close, steps, reduceOnly: true })
    await insertManyOrders(fixture, { count: 1, perAccount: 1, limit: 1000, steps: steps * ACCOUNTS })
    return ids
  }
  async function expectRecomputable(batchId: number): Promise<void> {
    const stored = await fixture.db
      .selectFrom('batches')
      .select(['price', 'volume', 'demand', 'supply', 'rule'])
      .where('batch_id', '=', batchId)
      .executeTakeFirstOrThrow()
    const inputs = await loadInputs(fixture.db, perpetual.marketId, batchId)
    expect(recompute(inputs as ClearingInputs)).to.include(stored)
  }
  const mineAll = async (): Promise<void> => {
    while (await mineOldestPart(fixture)) {}
  }

  it('when positions with many reduce-only orders close together, each auction closes some, orders of other accounts fill at once, and all are closed', async () => {
    const ids = await crowdedPositions(true)
    const light = await cross()
    // A keeper that stops loses its memory of who waits, and nothing else.
    let own = keeper()
    const batches: number[] = []
    for (let open = ids.length; open > 0; ) {
      await tick()
      const batch = (await own.run()) as number
      expect(batch, 'a batch').to.be.a('number')
      batches.push(batch)
      if (batches.length === 1) expect((await fixture.orderOf(light)).settling).to.be.greaterThan(0)
      if (batches.length === 2) own = keeper()
      await expectRecomputable(batch)
      await mineAll()
      const closed = (await count(ids, 'CANCELLED')) / PER_ACCOUNT
      expect(ids.length - closed).to.be.lessThan(open)
      open = ids.length - closed
    }
    expect(Math.max(...changes())).to.be.within(PER_ACCOUNT, MAX_ORDERS_PER_TURN)
    expect(batches).to.have.length(Math.ceil(ACCOUNTS / Math.floor(MAX_ORDERS_PER_TURN / PER_ACCOUNT)))
  })

  it('when positions close that many plain orders were to reduce, each auction recomputes the reservations of some of them, and all reserve in the end', async () => {
    const ids = await crowdedPositions(false)
    const own = keeper()
    for (let turns = 0; turns < Math.ceil(ACCOUNTS / 2); turns++) {
      await tick()
      expect(await own.run(), 'a batch').to.be.a('number')
      await mineAll()
    }
    expect(Math.max(...changes())).to.be.within(PER_ACCOUNT, MAX_ORDERS_PER_TURN)
    const reserving = (await fixture.orders()).filter(
      ({ account, openable }) => ids.includes(account) && openable === 10,
    )
    expect(reserving).to.have.length(ACCOUNTS * PER_ACCOUNT)
  })

  it('when accounts have many market orders, each auction ends some, and one of another account fills at once', async () => {
    const ids = await insertManyOrders(fixture, {
      count: ACCOUNTS * PER_ACCOUNT,
      perAccount: PER_ACCOUNT,
      type: 'MARKET',
    })
    const light = await fixture.place({ by: alice, side: 'SHORT', steps: 10 })
    const own = keeper()
    await tick()
    expect(await own.run()).to.equal(1)
    expect((await fixture.orderOf(light)).settling).to.be.greaterThan(0)
    await mineAll()
    for (let turns = 1; (await count(ids, 'OPEN')) > 0; turns++) {
      await tick()
      await own.run()
      await mineAll()
      expect(turns).to.be.at.most(Math.ceil(ACCOUNTS / 2))
    }
    expect(Math.max(...changes())).to.be.within(PER_ACCOUNT, MAX_ORDERS_PER_TURN)
  })

  it('when many orders of accounts cross their own, each auction ends some, until none cross', async () => {
    const own = { count: ACCOUNTS * PER_ACCOUNT, perAccount: PER_ACCOUNT }
    const ids = await insertManyOrders(fixture, { ...own, limit: 1001 })
    await insertManyOrders(fixture, { ...own, accounts: ids, side: 'SHORT', limit: 1001 })
    const auction = keeper()
    for (let turns = 1; (await count(ids, 'CANCELLED')) < ACCOUNTS * PER_ACCOUNT; turns++) {
      await tick()
      await auction.run()
      await mineAll()
      expect(turns).to.be.at.most(ACCOUNTS)
    }
    expect(Math.max(...changes())).to.be.within(PER_ACCOUNT, MAX_ORDERS_PER_TURN)
  })

  it('when an auction leaves out the account that two others would have met, it meets them in the next one, although nothing else changes', async () => {
    const sells = { side: 'SHORT', limit: 1040, reduceOnly: true } as const
    const longs = await insertManyOrders(fixture, { ...sells, count: 2 * 300, perAccount: 300 })
    await insertLongs(fixture, longs, 3_000)
    const close = { accounts: longs, side: 'SHORT', limit: 995, steps: 3_000, reduceOnly: true } as const
    await insertManyOrders(fixture, { ...close, count: 2, perAccount: 1 })
    // It has the most changes: its own bids cross its sells, besides the sell that other bids meet.
    const crossed = await insertManyOrders(fixture, { count: 450, perAccount: 450, limit: 1030, steps: 20 })
    await insertManyOrders(fixture, {
      count: 449,
      perAccount: 449,
      accounts: crossed,
      side: 'SHORT',
      limit: 1030,
    })
    const auction = keeper()
    expect(await auction.run()).to.equal(null)
    expect(changes()).to.deep.equal([])
    expect(await auction.run()).to.equal(1)
    expect(await count(crossed, 'CANCELLED')).to.equal(449)
  })

  it('when the contract would reject the orders of many accounts, the turn repeats its auction without them until it has a batch', async () => {
    const auction = keeper()
    await auction.run()
    const many = 420 * MATCH_ROUNDS
    const rejected = await insertManyOrders(fixture, { count: many, perAccount: 1, limit: 1001 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 10 * many, limit: 1000 })
    auction.memory.rules = null
    await auction.run()
    dispute(fixture, new Set(rejected))
    auction.memory.rules = { ...RULES, kind: perpetual.kind }
    const buy = await fixture.place({ by: alice, side: 'LONG', steps: 10, limit: 1001 })
    await tick()
    expect(await auction.run()).to.equal(1)
    expect((await fixture.orderOf(buy)).settling).to.equal(10)
    const fills = await matchedFills(fixture.db)
    expect(fills.map(({ account }) => account).sort((a, b) => a - b)).to.deep.equal([
      alice.account,
      bob.account,
    ])
  })
})
