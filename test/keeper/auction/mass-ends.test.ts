/** Any number of orders may end together: each turn of a market ends a bounded number of them, and its auctions go on. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { MAX_ORDERS_PER_TURN } from '../../../domain/auction/turn-bound.ts'
import { perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { createAuction, createMarketMemory, createMarks } from '../support/engine-turns.ts'
import { insertManyOrders } from '../support/many-orders.ts'
import { MarketFixture, RULES, type Trader } from '../support/market-fixture.ts'

describe('many orders that end or trigger together', function () {
  this.timeout(120_000)
  let fixture: MarketFixture
  let alice: Trader
  let bob: Trader
  /** The price that the oracle reports in each turn. */
  let oracle: number

  beforeEach(async () => {
    oracle = 1000
    fixture = await MarketFixture.open(perpetual)
    await fixture.report(1000)
    alice = await fixture.trader('alice')
    bob = await fixture.trader('bob')
  })
  afterEach(() => fixture.close())

  /** An owner with a memory of its own. */
  function keeper() {
    const memory = createMarketMemory({ ...RULES, kind: perpetual.kind })
    const ports = fixture.turnPorts()
    const marks = createMarks(ports, perpetual, memory)
    const auction = createAuction(ports, perpetual, memory)
    return {
      /** Returns the batch, if there is one. */
      async turn(): Promise<number | null> {
        fixture.clock.value += 200
        await fixture.report(oracle)
        await marks.update()
        return auction.run()
      },
    }
  }
  const countOf = async (accounts: readonly number[], status: string): Promise<number> => {
    const { orders } = await fixture.db
      .selectFrom('orders')
      .select(({ fn }) => fn.countAll<number>().as('orders'))
      .where('status', '=', status as 'OPEN')
      .where('user_id', 'in', accounts)
      .executeTakeFirstOrThrow()
    return Number(orders)
  }
  const settleAll = () =>
    fixture.db.updateTable('actions').set({ status: 'MINED' }).where('status', '=', 'QUEUED').execute()
  async function cross(): Promise<void> {
    await fixture.place({ by: alice, side: 'LONG', steps: 10, limit: 1000 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 1000 })
  }

  /** Each turn ends at most the bound and matches other orders. Returns how many orders were ended by then. */
  async function expire(count: number, turns: number): Promise<{ ended: number; reserved: bigint }> {
    const expiration = fixture.clock.value / 1000 + 1
    const accounts = await insertManyOrders(fixture, { count, perAccount: 500, expiration })
    const own = keeper()
    await own.turn()
    expect(await countOf(accounts, 'EXPIRED')).to.equal(0)
    fixture.clock.value += 2_000
    let ended = 0
    for (let turn = 0; turn < turns; turn++) {
      await cross()
      expect(await own.turn(), 'a batch').to.be.a('number')
      await settleAll()
      const now = await countOf(accounts, 'EXPIRED')
      expect(now - ended).to.be.within(1, MAX_ORDERS_PER_TURN)
      ended = now
    }
    const { sum } = await withMirror(fixture.db)
      .selectFrom('accounts')
      .select(({ fn }) => fn.sum('reserved').as('sum'))
      .where('user_id', 'in', accounts)
      .executeTakeFirstOrThrow()
    return { ended, reserved: BigInt(sum ?? 0) }
  }

  // More than the parameters of one SQL statement. The turns after the first ones are alike.
  it('when 70,000 orders expire together, each turn ends as many as the bound and other orders match meanwhile', async () => {
    expect((await expire(70_000, 3)).ended).to.equal(3 * MAX_ORDERS_PER_TURN)
  })

  it('when several times the bound expire together, all are ended and nothing stays reserved', async () => {
    const count = 4 * MAX_ORDERS_PER_TURN + 500
    expect(await expire(count, 5)).to.deep.equal({ ended: count, reserved: 0n })
  })

  it('when an expired order is not ended yet, it takes no part in an auction', async () => {
    const expiration = fixture.clock.value / 1000 + 1
    const own = keeper()
    const accounts = await insertManyOrders(fixture, {
      count: 2 * MAX_ORDERS_PER_TURN,
      perAccount: 500,
      expiration,
    })
    await own.turn()
    const late = await fixture.place({ by: alice, side: 'LONG', steps: 10, limit: 1000, expiration })
    fixture.clock.value += 2_000
    await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 990 })
    expect(await own.turn()).to.equal(null)
    expect((await fixture.orderOf(late)).status).to.equal('OPEN')
    while ((await countOf(accounts, 'EXPIRED')) < 2 * MAX_ORDERS_PER_TURN)
      expect(await own.turn()).to.equal(null)
    await own.turn()
    expect(await fixture.orderOf(late)).to.include({ status: 'EXPIRED', settling: 0 })
  })

  it('when a mark triggers many orders, it is held until all are triggered, even by another keeper', async () => {
    const many = 2 * MAX_ORDERS_PER_TURN + 500
    const first = keeper()
    const accounts = await insertManyOrders(fixture, {
      count: many,
      perAccount: 500,
      type: 'STOP_LIMIT',
      trigger: 1010,
    })
    await first.turn()
    fixture.clock.value += 1_000
    oracle = 1020
    await first.turn()
    expect(await countOf(accounts, 'OPEN')).to.equal(MAX_ORDERS_PER_TURN)
    oracle = 1000
    const second = keeper()
    await second.turn()
    expect(await countOf(accounts, 'OPEN')).to.equal(2 * MAX_ORDERS_PER_TURN)
    await second.turn()
    expect(await countOf(accounts, 'OPEN')).to.equal(many)
    fixture.clock.value += 1_000
    await second.turn()
    const [last] = (await fixture.rows('prices_updated')).slice(-1)
    expect(last.mark_price).to.equal(String(1000n * perpetual.tick))
  })
})
