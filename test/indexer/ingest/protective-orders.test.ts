/** Protective orders (take-profits, stop-losses) end with their position, and are restored if the block that closed it is rolled back. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { OrderPlaced } from '../../../domain/journal/journal-row.ts'
import { addressOf, catchUp, projectAll } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'
import { matchPart } from '../support/matched-part.ts'
import { acceptOrder, orderOf } from '../support/resting-order.ts'

const EVIDENCE = { at: 1_000, mark_price: '1', oracle_price: '1', oracle_at: 1_000, batch_id: 1 }

describe('protective orders', () => {
  const fixture = useFollowerFixture()

  const accept = (changes: Partial<OrderPlaced>) =>
    acceptOrder(fixture.context.test.db, 1, addressOf(fixture.context.alice), {
      ...{ side: 'SHORT', type: 'STOP_LOSS_MARKET', reduce_only: true, price: 0, trigger: 900 },
      ...changes,
    })
  const stateOf = async (orderId: string) => {
    const { status, status_reason } = await orderOf(fixture.context.test.db, orderId)
    return status_reason === null ? status : `${status} ${status_reason}`
  }
  const CLOSED = 'CANCELLED POSITION_CLOSED'
  /** Alice buys, or sells if `fill` is negative: matched, mined and ingested. */
  const trade = async (fill: number) => {
    const { alice, bob, follower } = fixture.context
    const [side, other] = fill > 0 ? (['LONG', 'SHORT'] as const) : (['SHORT', 'LONG'] as const)
    await fixture.trade([
      { by: alice, side, fill: Math.abs(fill), salt: fixture.salt() },
      { by: bob, side: other, fill: Math.abs(fill), salt: fixture.salt() },
    ])
    await catchUp(follower)
  }
  const trigger = async (orderId: string) =>
    fixture.context.test.db
      .updateTable('orders')
      .set({ status: 'OPEN', triggered: JSON.stringify(EVIDENCE) as never })
      .where('order_id', '=', orderId)
      .execute()

  it('when the position opens, grows and shrinks, an order placed before the entry keeps waiting', async () => {
    await fixture.fundAndFollow()
    const order = await accept({})
    for (const fill of [500, 200, -699]) {
      await trade(fill)
      expect(await stateOf(order)).to.equal('PENDING_TRIGGER')
    }
    await trade(-1)
    expect(await stateOf(order)).to.equal(CLOSED)
    await fixture.audit()
  })

  for (const [name, last] of [
    ['closed', -500],
    ['flipped', -700],
  ] as const) {
    it(`when the position is ${name}, it ends the orders that reduced it, and no others`, async () => {
      const { test, bob } = fixture.context
      await fixture.fundAndFollow()
      await trade(500)
      const ends = [
        await accept({}),
        await accept({ type: 'TAKE_PROFIT_LIMIT', price: 1_100, trigger: 1_100 }),
        await accept({ type: 'STOP_LIMIT', price: 900 }),
      ]
      const stays = [
        await accept({ side: 'LONG', trigger: 1_100 }),
        await accept({ type: 'STOP_MARKET', reduce_only: false }),
        await accept({ type: 'LIMIT', price: 1_200, trigger: 0 }),
        await accept({ accepted_at: Date.now() + 3_600_000 }),
        await acceptOrder(test.db, 1, addressOf(bob), {
          side: 'SHORT',
          type: 'STOP_LOSS_MARKET',
          reduce_only: true,
        }),
      ]
      await trade(last)
      for (const id of ends) expect(await stateOf(id)).to.equal(CLOSED)
      for (const id of stays) expect(await stateOf(id)).to.be.oneOf(['OPEN', 'PENDING_TRIGGER'])
      await fixture.audit()
      const events = await test.db
        .selectFrom('read.order_events')
        .select(['kind', 'details'])
        .where('order_id', 'in', ends)
        .where('kind', '<>', 'CREATED')
        .execute()
      const cancelled = {
        kind: 'CANCELLED',
        details: { market_id: 1, batch_id: 2, part: 1, reason: 'POSITION_CLOSED' },
      }
      expect(events).to.deep.equal(ends.map(() => cancelled))
    })
  }

  it('when the position closes while the order settles, the order leaves the book and ends with its settlement', async () => {
    const { test } = fixture.context
    await fixture.fundAndFollow()
    await trade(500)
    const order = await accept({ type: 'TAKE_PROFIT_LIMIT', price: 1_100, trigger: 1_100 })
    await trigger(order)
    await test.db.updateTable('orders').set({ settling: 4 }).where('order_id', '=', order).execute()
    await trade(-500)
    expect(await stateOf(order)).to.equal('CANCEL_PENDING_FINALIZE')
    expect((await orderOf(test.db, order)).closing_reason).to.equal('POSITION_CLOSED')
  })

  it('when the block that closed the position is rolled back, the orders are restored until it closes again', async () => {
    const { exchange, test, follower, alice, bob } = fixture.context
    await fixture.fundAndFollow()
    await trade(500)
    const waiting = await accept({})
    const cancelled = await accept({})
    const open = await accept({ type: 'TAKE_PROFIT_LIMIT', price: 1_100, trigger: 1_100 })
    await trigger(open)
    await test.db
      .updateTable('orders')
      .set({ status: 'CANCELLED', status_reason: 'USER_CANCELLED', ended_at: 1 })
      .where('order_id', '=', cancelled)
      .execute()
    const part = await exchange.part([
      { by: alice, side: 'SHORT', fill: 500, salt: fixture.salt() },
      { by: bob, side: 'LONG', fill: 500, salt: fixture.salt() },
    ])
    const states = async () => [await stateOf(waiting), await stateOf(open), await stateOf(cancelled)]
    await matchPart(test.db, part, await exchange.send(part))
    await catchUp(follower)
    expect(await states()).to.deep.equal([CLOSED, CLOSED, 'CANCELLED USER_CANCELLED'])
    await projectAll(test)
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect(await states()).to.deep.equal(['PENDING_TRIGGER', 'OPEN', 'CANCELLED USER_CANCELLED'])
    await projectAll(test)
    const read = await test.db
      .selectFrom('read.orders')
      .select(['status', 'status_reason'])
      .where('order_id', '=', waiting)
      .executeTakeFirst()
    expect(read).to.deep.equal({ status: 'PENDING_TRIGGER', status_reason: null })
    const events = await test.db
      .selectFrom('read.order_events')
      .select('kind')
      .where('order_id', '=', waiting)
      .execute()
    expect(events).to.deep.equal([{ kind: 'CREATED' }])

    await exchange.send(part)
    await catchUp(follower)
    expect(await states()).to.deep.equal([CLOSED, CLOSED, 'CANCELLED USER_CANCELLED'])
    expect(await fixture.mismatches()).to.deep.equal([])
  })
})
