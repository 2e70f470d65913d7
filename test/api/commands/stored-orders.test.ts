/** Orders behind an answer: the engine writes a live order seldom, and the read model has its fills. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import {
  createFindOrders,
  createFindOrdersById,
  type StoredOrder,
} from '../../../api/commands/stored-orders.ts'
import { createUser, type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'

const CAUGHT_UP = { caughtUp: async () => true }

describe('stored orders', () => {
  let exchange: ExchangeFixture
  let hash: string
  let orderId: string

  before(async () => {
    exchange = await startExchange()
    const { body } = await exchange.place(await createUser(exchange.db, 'alice'))
    hash = body.order.order_hash
    orderId = body.order.order_id
  })
  after(() => exchange.stop())

  const stateOf = ({ status, status_reason, filled, settling, reserved }: StoredOrder) => ({
    status,
    status_reason,
    filled,
    settling,
    reserved,
  })

  /** By its hash and by its id. */
  async function found(): Promise<ReturnType<typeof stateOf>> {
    const byHash = (await createFindOrders(exchange.db, CAUGHT_UP)([hash])).get(hash)
    const byId = (await createFindOrdersById(exchange.db, CAUGHT_UP)([orderId])).get(orderId)
    expect(byHash).to.deep.equal(byId)
    return stateOf(byHash as StoredOrder)
  }

  const inTable = async () =>
    stateOf(
      (await exchange.db
        .selectFrom('orders')
        .selectAll()
        .where('hash', '=', hash)
        .executeTakeFirstOrThrow()) as StoredOrder,
    )

  it('when the read model lacks the order, it is as it was accepted', async () => {
    const accepted = await inTable()
    expect(accepted).to.deep.include({ status: 'OPEN', filled: 0, settling: 0 })
    expect(await found()).to.deep.equal(accepted)
  })

  it('when a live order has filled, its state is that of the read model, also where that is null', async () => {
    await exchange.project()
    await exchange.db
      .updateTable('orders')
      .set({ status_reason: 'INSUFFICIENT_MARGIN' })
      .where('hash', '=', hash)
      .execute()
    const present = { status: 'OPEN', status_reason: null, filled: 4, settling: 2, reserved: 7n } as const
    await exchange.db.updateTable('read.orders').set(present).where('order_id', '=', orderId).execute()
    expect(await found()).to.deep.equal(present)
  })

  it('when a part of a live order settles, its reservation is without the held amount, as the engine states it', async () => {
    const row = { reserved: 7n, held: 3n }
    await exchange.db.updateTable('read.orders').set(row).where('order_id', '=', orderId).execute()
    expect(await found()).to.deep.include({ reserved: 4n })
  })

  it('when the order has ended, its state is that of its end, whatever the read model has', async () => {
    const end = {
      status: 'CANCELLED',
      status_reason: 'USER_CANCELLED',
      filled: 5,
      settling: 0,
      reserved: 0n,
    } as const
    await exchange.db
      .updateTable('orders')
      .set({ ...end, ended_at: 1_800_000_000_000 })
      .where('hash', '=', hash)
      .execute()
    expect(await found()).to.deep.equal(end)
  })
})
