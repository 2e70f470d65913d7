/** Reduce-only orders end with their position, and are restored if the block that closed it is rolled back. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { OrderPlaced } from '../../../domain/journal/journal-row.ts'
import { addressOf, catchUp, projectAll } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'
import { matchOrder, matchPart, writeRows } from '../support/matched-part.ts'
import { acceptOrder, orderOf } from '../support/resting-order.ts'

const EVIDENCE = { at: 1_000, mark_price: '1', oracle_price: '1', oracle_at: 1_000, batch_id: 1 }

describe('reduce-only orders', () => {
  const fixture = useFollowerFixture()

  const accept = (changes: Partial<OrderPlaced>) =>
    acceptOrder(fixture.context.test.engine, 1, addressOf(fixture.context.alice), {
      ...{ side: 'SHORT', type: 'STOP_LOSS_MARKET', reduce_only: true, price: 0, trigger: 900 },
      ...changes,
    })
  const stateOf = async (orderId: string) => {
    const { status, status_reason } = await orderOf(fixture.context.test.db, orderId)
    return status_reason === null ? status : `${status} ${status_reason}`
  }
  const CLOSED = 'CANCELLED POSITION_CLOSED'
  const levelAt = (price: number) =>
    fixture.context.test.db
      .selectFrom('read.book_levels')
      .select(['quantity', 'order_count'])
      .where('price', '=', price)
      .executeTakeFirst()
  /** Alice buys, or sells if `fill` is negative: matched, mined and ingested. */
  const trade = async (fill: number) => {
    await match(fill)
    await catchUp(fixture.context.follower)
  }
  const match = async (fill: number) => {
    const { alice, bob } = fixture.context
    const [side, other] = fill > 0 ? (['LONG', 'SHORT'] as const) : (['SHORT', 'LONG'] as const)
    await fixture.trade([
      { by: alice, side, fill: Math.abs(fill), salt: fixture.salt() },
      { by: bob, side: other, fill: Math.abs(fill), salt: fixture.salt() },
    ])
  }
  const trigger = async (orderId: string) => {
    const order = { order_id: orderId, user_id: await userOf(orderId) }
    const reserved = { openable: 0, reserved_price: 1_000, reserved_delta: '0' }
    await writeRows(fixture.context.test.engine, 1, [
      { kind: 'order_triggered', ...order, ...reserved, ...EVIDENCE },
    ])
  }
  const userOf = async (orderId: string): Promise<number> => {
    const orders = fixture.context.test.db.selectFrom('orders').select('user_id')
    return (await orders.where('order_id', '=', orderId).executeTakeFirstOrThrow()).user_id
  }

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
        await accept({ type: 'LIMIT', price: 1_200, trigger: 0 }),
      ]
      const stays = [
        await accept({ side: 'LONG', trigger: 1_100 }),
        await accept({ type: 'STOP_MARKET', reduce_only: false }),
        await accept({ type: 'LIMIT', side: 'LONG', price: 800, trigger: 0 }),
        await acceptOrder(test.engine, 1, addressOf(bob), {
          side: 'SHORT',
          type: 'STOP_LOSS_MARKET',
          reduce_only: true,
        }),
      ]
      await match(last)
      stays.push(await accept({ type: 'LIMIT', price: 1_200, trigger: 0 }))
      for (const id of ends) expect(await stateOf(id)).to.be.oneOf(['OPEN', 'PENDING_TRIGGER'])
      await catchUp(fixture.context.follower)
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
    await matchOrder(test.engine, order, 4)
    await trade(-500)
    expect(await stateOf(order)).to.equal('CANCEL_PENDING_FINALIZE')
    expect((await orderOf(test.db, order)).closing_reason).to.equal('POSITION_CLOSED')
  })

  it('when the block that closed the position is rolled back, the orders wait out of the book until it closes again', async () => {
    const { exchange, test, follower, alice, bob } = fixture.context
    await fixture.fundAndFollow()
    await trade(500)
    const waiting = await accept({})
    const cancelled = await accept({})
    const open = await accept({ type: 'TAKE_PROFIT_LIMIT', price: 1_100, trigger: 1_100 })
    await trigger(open)
    const limit = await accept({ type: 'LIMIT', price: 1_100, trigger: 0 })
    const ended = { order_id: cancelled, user_id: await userOf(cancelled), status: 'CANCELLED' } as const
    await writeRows(test.engine, 1, [
      { kind: 'order_ended', ...ended, reason: 'USER_CANCELLED', note: null, reserved_delta: '0', at: 1 },
    ])
    const part = await exchange.part([
      { by: alice, side: 'SHORT', fill: 500, salt: fixture.salt() },
      { by: bob, side: 'LONG', fill: 500, salt: fixture.salt() },
    ])
    const states = async () => [await stateOf(waiting), await stateOf(open), await stateOf(cancelled)]
    await projectAll(test)
    expect(await levelAt(1_100)).to.include({ order_count: 2 })
    await matchPart(test, part, await exchange.send(part))
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
    expect(read).to.deep.equal({ status: 'PENDING_TRIGGER', status_reason: 'POSITION_CLOSED' })
    expect(await levelAt(1_100)).to.equal(undefined)
    const events = await test.db
      .selectFrom('read.order_events')
      .select('kind')
      .where('order_id', '=', waiting)
      .execute()
    expect(events).to.deep.equal([{ kind: 'CREATED' }])

    await exchange.send(part)
    await catchUp(follower)
    expect(await states()).to.deep.equal([CLOSED, CLOSED, 'CANCELLED USER_CANCELLED'])
    expect(await stateOf(limit)).to.equal(CLOSED)
    expect(await fixture.mismatches()).to.deep.equal([])
  })

  it('when the salt of an order that has left the book is cancelled on chain, the order ends as cancelled', async () => {
    const { exchange, test, follower, alice, bob } = fixture.context
    await fixture.fundAndFollow()
    await trade(500)
    const order = await accept({ type: 'LIMIT', price: 1_100, trigger: 0 })
    const part = await exchange.part([
      { by: alice, side: 'SHORT', fill: 500, salt: fixture.salt() },
      { by: bob, side: 'LONG', fill: 500, salt: fixture.salt() },
    ])
    await matchPart(test, part, '0x1')
    expect((await orderOf(test.db, order)).closing_reason).to.equal('POSITION_CLOSED')
    const { salt } = await test.db
      .selectFrom('orders')
      .select('salt')
      .where('order_id', '=', order)
      .executeTakeFirstOrThrow()
    await (await exchange.trader.connect(alice).cancelSalts([BigInt(salt)])).wait()
    await catchUp(follower)
    expect(await stateOf(order)).to.equal('CANCELLED USER_CANCELLED')
    await exchange.send(part)
    await catchUp(follower)
    expect(await stateOf(order)).to.equal('CANCELLED USER_CANCELLED')
    await fixture.audit()
  })

  it('when only the chain has the part that closes the position, the orders end, and a rollback returns them to the book', async () => {
    const { exchange, test, follower, alice, bob } = fixture.context
    await fixture.fundAndFollow()
    await trade(500)
    const order = await accept({ type: 'LIMIT', price: 1_100, trigger: 0 })
    const later = await accept({ accepted_at: Date.now() + 3_600_000 })
    const part = await exchange.part([
      { by: alice, side: 'SHORT', fill: 500, salt: fixture.salt() },
      { by: bob, side: 'LONG', fill: 500, salt: fixture.salt() },
    ])
    await exchange.send(part)
    await catchUp(follower)
    expect([await stateOf(order), await stateOf(later)]).to.deep.equal([CLOSED, 'PENDING_TRIGGER'])
    await fixture.audit()
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect(await stateOf(order)).to.equal('OPEN')
    expect((await orderOf(test.db, order)).closing_reason).to.equal(null)
    await projectAll(test)
    expect(await levelAt(1_100)).to.include({ order_count: 1 })
  })
})
