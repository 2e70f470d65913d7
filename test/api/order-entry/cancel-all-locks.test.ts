/** A cancel of all orders locks the markets in which the account has live orders, and no others; no order of the account survives it. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { lockAccounts } from '../../../db/accounts.ts'
import { lockShard } from '../../../db/journal.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../../domain/journal/journal-row.ts'
import { acceptOrderIn } from '../../indexer/support/resting-order.ts'
import { binary, future, perpetual } from '../../support/markets.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { until } from '../support/wait.ts'

describe('the locks of a cancel of all orders', () => {
  let exchange: ExchangeFixture
  before(async () => {
    exchange = await startExchange()
  })
  after(() => exchange.stop())

  const all = (user: User): Promise<Answer> => exchange.send(user, 'POST', '/v0/orders/cancel/all', {})

  it('when the orders of a market have ended, that market is not locked, and the bookmark covers its journal', async () => {
    const alice = await createUser(exchange.db, 'alice')
    await exchange.place(alice, {})
    const ended = (await exchange.place(alice, { market: future, price: '50' })).body.order
    const { read_after: end } = (await exchange.cancel(alice, ended.order_hash)).body
    const answer = await exchange.db.transaction().execute(async (tx) => {
      for (const { marketId } of [future, binary]) await lockShard(tx, marketShard(marketId))
      return all(alice)
    })
    expect(answer.body).to.include({ cancelled_count: 1 })
    const { row } = await exchange.db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', ACCOUNTS_SHARD)
      .where('seq', '=', Number(answer.body.read_after.shard_seq))
      .executeTakeFirstOrThrow()
    expect(row).to.have.property('kind', 'command_spanned')
    const { shards } = row as { shards: Record<string, number> }
    expect(Object.keys(shards)).to.have.members([
      marketShard(perpetual.marketId),
      marketShard(future.marketId),
    ])
    expect(shards[marketShard(future.marketId)]).to.be.at.least(Number(end.shard_seq))
  })

  it('when an order is placed in a further market until the account is locked, it is cancelled too', async () => {
    const bob = await createUser(exchange.db, 'bob')
    await exchange.place(bob, {})
    let cancelling: Promise<Answer> | undefined
    await exchange.db.transaction().execute(async (tx) => {
      await lockShard(tx, marketShard(future.marketId))
      await lockAccounts(tx, [bob.userId])
      cancelling = all(bob)
      // By then the api has read the markets with orders and waits for the account.
      await new Promise((resolve) => setTimeout(resolve, 300))
      await acceptOrderIn(tx, future.marketId, bob.address)
    })
    const answer = await cancelling
    expect(answer?.body).to.include({ cancelled_count: 2 })
    const live = await exchange.db
      .selectFrom('orders')
      .select('order_id')
      .where('user_id', '=', bob.userId)
      .where('ended_at', 'is', null)
      .execute()
    expect(live).to.deep.equal([])
  })

  it('when a market is busy, the orders of the markets before it are cancelled, and their markets are free', async () => {
    const carol = await createUser(exchange.db, 'carol')
    const { order } = (await exchange.place(carol, {})).body
    await exchange.place(carol, { market: binary, price: '0.5' })
    const statusOf = async () =>
      (
        await exchange.db
          .selectFrom('orders')
          .select('status')
          .where('order_id', '=', order.order_id)
          .executeTakeFirstOrThrow()
      ).status
    let cancelling: Promise<Answer> | undefined
    await exchange.db.transaction().execute(async (tx) => {
      await lockShard(tx, marketShard(binary.marketId))
      cancelling = all(carol)
      await until(async () => (await statusOf()) === 'CANCELLED')
      const other = await createUser(exchange.db, 'dora')
      expect((await exchange.place(other, {})).status).to.equal(200)
    })
    const answer = await cancelling
    expect(answer?.body).to.include({ cancelled_count: 2, is_duplicate: false })
    expect(
      new Set(answer?.body.results.map((result: { order: { market_id: number } }) => result.order.market_id)),
    ).to.deep.equal(new Set([perpetual.marketId, binary.marketId]))
  })

  it('when the markets together take longer than one command may, the outcome is unknown, and a repetition cancels the rest', async () => {
    const frank = await createUser(exchange.db, 'frank')
    for (const terms of [{}, { market: future, price: '50' }, { market: binary, price: '0.5' }])
      await exchange.place(frank, terms)
    const release = async (marketId: number, at: number) =>
      exchange.db.transaction().execute(async (tx) => {
        await lockShard(tx, marketShard(marketId))
        await new Promise((resolve) => setTimeout(resolve, at))
      })
    // Each market is free before its lock times out after 60 % of the command's time.
    const locks = [release(perpetual.marketId, 2_600), release(future.marketId, 5_300)]
    await new Promise((resolve) => setTimeout(resolve, 100))
    const late = await all(frank)
    await Promise.all(locks)
    expect([late.status, late.body.details?.code]).to.deep.equal([408, 'OUTCOME_UNKNOWN'])
    expect((await all(frank)).body).to.include({ cancelled_count: 1, is_duplicate: false })
  })

  it('when a later market is too busy, the outcome is unknown, and a repetition cancels the rest', async () => {
    const erin = await createUser(exchange.db, 'erin')
    await exchange.place(erin, {})
    await exchange.place(erin, { market: binary, price: '0.5' })
    const failed = await exchange.db.transaction().execute(async (tx) => {
      await lockShard(tx, marketShard(binary.marketId))
      return all(erin)
    })
    expect([failed.status, failed.body.details.code]).to.deep.equal([408, 'OUTCOME_UNKNOWN'])
    const { body } = await all(erin)
    expect(body).to.include({ cancelled_count: 1, is_duplicate: false })
  })
})
