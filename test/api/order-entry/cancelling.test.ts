import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { withMirror } from '../../support/mirror.ts'
import {
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { until } from '../support/wait.ts'

describe('POST /v0/orders/cancel/by-hash/:order_hash', () => {
  let exchange: ExchangeFixture
  let alice: User
  let bob: User

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
  })
  after(() => exchange.stop())

  const reservedOf = async ({ userId }: User): Promise<bigint> =>
    (
      await withMirror(exchange.db)
        .selectFrom('accounts')
        .select('reserved')
        .where('user_id', '=', userId)
        .executeTakeFirstOrThrow()
    ).reserved

  it('when an order is open, it cancels it, releases the reservation, stores the reason and returns a bookmark', async () => {
    const before = await reservedOf(alice)
    const { body: placed } = await exchange.place(alice)
    const { status, body } = await exchange.cancel(
      alice,
      placed.order.order_hash.toUpperCase().replace('0X', '0x'),
      { reason: 'changed my mind' },
    )
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body).to.include({ cancelled: true, is_duplicate: false })
    expect(body.order).to.include({
      order_id: placed.order.order_id,
      status: 'CANCELLED',
      status_reason: 'USER_CANCELLED',
      cancel_reason: 'changed my mind',
      reserved_margin: 0,
    })
    expect(await reservedOf(alice)).to.equal(before)
    expect(Number(body.read_after.shard_seq)).to.equal(Number(placed.read_after.shard_seq) + 1)
    const { row } = await exchange.db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', 'm1')
      .where('seq', '=', Number(body.read_after.shard_seq))
      .executeTakeFirstOrThrow()
    expect(row).to.include({
      kind: 'order_ended',
      order_id: placed.order.order_id,
      note: 'changed my mind',
      reserved_delta: `-${placed.order.reserved_margin_e18_raw}`,
    })
  })

  it('when it is repeated, with or without a body, it answers is_duplicate', async () => {
    const { body: placed } = await exchange.place(alice)
    const hash = placed.order.order_hash
    const first = await exchange.cancel(alice, hash)
    const traces = await exchange.state()
    const second = await exchange.cancel(alice, hash, {})
    expect(second.status).to.equal(200)
    expect(second.body).to.include({ cancelled: true, is_duplicate: true })
    expect(second.body.order).to.deep.equal(first.body.order)
    expect(await exchange.state()).to.deep.equal(traces)
  })

  it('when it arrives many times at once, it has one effect', async () => {
    const { body: placed } = await exchange.place(alice)
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => exchange.cancel(alice, placed.order.order_hash)),
    )
    expect(answers.filter(({ body }) => !body.is_duplicate)).to.have.length(1)
    expect(answers.every(({ body }) => body.cancelled)).to.equal(true)
  })

  it('when the placement is not committed yet, it waits for the placement and cancels the order', async () => {
    const { body, hash } = signedBody(alice)
    const release = exchange.engine.hold()
    const metric = async (line: string): Promise<boolean> => (await exchange.metrics()).includes(line)
    const placing = exchange.send(alice, 'POST', '/v0/orders', body)
    await until(() => metric('api_commands_waiting 1'))
    const cancelling = exchange.cancel(alice, hash)
    await until(() => metric('api_commands_waiting 2'))
    release()
    const [placed, cancelled] = await Promise.all([placing, cancelling])
    expect([placed.status, cancelled.status], JSON.stringify(cancelled.body)).to.deep.equal([200, 200])
    expect(cancelled.body).to.include({ cancelled: true, is_duplicate: false })
    expect(cancelled.body.order.order_hash).to.equal(hash)
  })

  it('when a part of the order is settling, it waits for the batch and releases the rest', async () => {
    const { body: placed } = await exchange.place(alice, { quantity: '1' })
    const id = placed.order.order_id
    const { reserved } = await exchange.db
      .selectFrom('orders')
      .select('reserved')
      .where('order_id', '=', id)
      .executeTakeFirstOrThrow()
    const held = (reserved * 4n) / 10n
    await exchange.db
      .updateTable('orders')
      .set({ settling: 400, held, reserved: reserved - held, openable: 600 })
      .where('order_id', '=', id)
      .execute()
    const before = await reservedOf(alice)
    const { body } = await exchange.cancel(alice, placed.order.order_hash)
    expect(body).to.include({ cancelled: true, is_duplicate: false })
    expect(body.order).to.include({
      status: 'CANCEL_PENDING_FINALIZE',
      status_reason: null,
      settling_quantity: 0.4,
    })
    const row = await exchange.db
      .selectFrom('orders')
      .selectAll()
      .where('order_id', '=', id)
      .executeTakeFirstOrThrow()
    expect(row).to.include({
      closing_reason: 'USER_CANCELLED',
      ended_at: null,
      reserved: 0n,
      held,
      openable: 0,
    })
    expect(await reservedOf(alice)).to.equal(before - (reserved - held))
    const again = await exchange.cancel(alice, placed.order.order_hash)
    expect(again.body).to.include({ cancelled: true, is_duplicate: true })
  })

  it('when the order has left the book with its position, it ends at once and does not return with a void', async () => {
    const { body: placed } = await exchange.place(alice)
    const id = placed.order.order_id
    const left = {
      closing_reason: 'POSITION_CLOSED',
      closed_by: '1-9-1-9',
      reserved: 0n,
      openable: 0,
    } as const
    const { reserved } = await exchange.db
      .selectFrom('orders')
      .select('reserved')
      .where('order_id', '=', id)
      .executeTakeFirstOrThrow()
    await exchange.db.updateTable('orders').set(left).where('order_id', '=', id).execute()
    await withMirror(exchange.db)
      .updateTable('accounts')
      .set((eb) => ({ reserved: eb('reserved', '-', reserved) }))
      .where('user_id', '=', placed.order.user_id)
      .execute()
    const { body } = await exchange.cancel(alice, placed.order.order_hash)
    expect(body).to.include({ cancelled: true, is_duplicate: false })
    expect(body.order).to.include({ status: 'CANCELLED', status_reason: 'USER_CANCELLED' })
    const row = await exchange.db
      .selectFrom('orders')
      .select(['closing_reason', 'closed_by', 'status_reason'])
      .where('order_id', '=', id)
      .executeTakeFirstOrThrow()
    expect(row).to.deep.equal({ closing_reason: null, closed_by: null, status_reason: 'USER_CANCELLED' })
    const again = await exchange.cancel(alice, placed.order.order_hash)
    expect(again.body).to.include({ cancelled: true, is_duplicate: true })
  })

  it('when the order has ended otherwise, it answers with its status', async () => {
    const { body: placed } = await exchange.place(alice)
    const end = { status: 'FILLED', status_reason: 'FILLED', filled: 1000, ended_at: Date.now() } as const
    await exchange.db.updateTable('orders').set(end).where('order_id', '=', placed.order.order_id).execute()
    const { status, body } = await exchange.cancel(alice, placed.order.order_hash)
    expect(status).to.equal(200)
    expect(body).to.include({ cancelled: false, is_duplicate: false })
    expect(body.order.status).to.equal('FILLED')
  })

  it('when a plain order that reduces a position is cancelled, the next order can reduce the position', async () => {
    const carol = await createUser(exchange.db, 'carol', '1')
    await withMirror(exchange.db)
      .insertInto('positions')
      .values({
        user_id: carol.userId,
        market_id: 1,
        matched_size: 1000,
        matched_entry_notional: 10n ** 20n,
        matched_folded_margin: 10n ** 20n,
        matched_leverage: 1,
      })
      .execute()
    const first = await exchange.place(carol, { side: 'SHORT', quantity: '1' })
    expect(first.status).to.equal(200)
    expect((await exchange.place(carol, { side: 'SHORT', quantity: '1' })).body.details.code).to.equal(
      'INSUFFICIENT_MARGIN',
    )
    await exchange.cancel(carol, first.body.order.order_hash)
    expect((await exchange.place(carol, { side: 'SHORT', quantity: '1' })).status).to.equal(200)
  })

  const refusals = [
    {
      what: 'an unknown order',
      hash: `0x${'ab'.repeat(32)}`,
      body: {},
      status: 404,
      code: 'ORDER_NOT_FOUND',
    },
    {
      what: 'a malformed hash',
      hash: '0x12',
      body: {},
      status: 400,
      code: 'INVALID_FIELD',
      field: 'order_hash',
    },
    {
      what: 'a reason of 201 characters',
      body: { reason: 'x'.repeat(201) },
      status: 400,
      code: 'INVALID_FIELD',
      field: 'reason',
    },
    {
      what: 'a cancelSignature',
      body: { cancelSignature: '0x' },
      status: 400,
      code: 'UNKNOWN_FIELD',
      field: 'cancelSignature',
    },
  ]
  for (const { what, hash, body, status, code, field } of refusals) {
    it(`when the request has ${what}, it answers ${code}`, async () => {
      const { body: placed } = await exchange.place(alice)
      const traces = await exchange.state()
      const answer = await exchange.cancel(alice, hash ?? placed.order.order_hash, body)
      expect(answer.status, JSON.stringify(answer.body)).to.equal(status)
      expect(answer.body.details).to.include({ code, ...(field && { field }) })
      expect(await exchange.state()).to.deep.equal(traces)
    })
  }

  it('when the reason has exactly 200 characters, it is accepted', async () => {
    const { body: placed } = await exchange.place(alice)
    expect(
      (await exchange.cancel(alice, placed.order.order_hash, { reason: 'x'.repeat(200) })).status,
    ).to.equal(200)
  })

  it('when the order belongs to another account, it is rejected, even if the order is cancelled', async () => {
    const { body: placed } = await exchange.place(alice)
    const traces = await exchange.state()
    const { status, body } = await exchange.cancel(bob, placed.order.order_hash)
    expect([status, body.details.code]).to.deep.equal([403, 'NOT_YOURS'])
    expect(await exchange.state()).to.deep.equal(traces)
  })
})
