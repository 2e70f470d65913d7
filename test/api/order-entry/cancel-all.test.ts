/** A cancel of all orders is one command of the engine: no order of the account that was placed before survives it, and its bookmark covers all of them. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { ACCOUNTS_SHARD, marketShard } from '../../../domain/journal/journal-row.ts'
import { binary, future, perpetual } from '../../support/markets.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { until } from '../support/wait.ts'

describe('a cancel of all orders', () => {
  let exchange: ExchangeFixture
  before(async () => {
    exchange = await startExchange()
  })
  after(() => exchange.stop())

  const all = (user: User): Promise<Answer> => exchange.send(user, 'POST', '/v0/orders/cancel/all', {})

  it('when the orders of a market have ended a moment ago, the bookmark covers its journal', async () => {
    const alice = await createUser(exchange.db, 'alice')
    await exchange.place(alice, {})
    const ended = (await exchange.place(alice, { market: future, price: '50' })).body.order
    const { read_after: end } = (await exchange.cancel(alice, ended.order_hash)).body
    const answer = await all(alice)
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

  it('when orders of further markets are on their way before it, they are cancelled too', async () => {
    const bob = await createUser(exchange.db, 'bob')
    await exchange.place(bob, {})
    const release = exchange.engine.hold()
    const before = exchange.engine.arrived.length
    const placing = [
      exchange.place(bob, { market: future, price: '50' }),
      exchange.place(bob, { market: binary, price: '0.5' }),
    ]
    await until(async () => exchange.engine.arrived.length === before + 2)
    const cancelling = all(bob)
    release()
    for (const { status } of await Promise.all(placing)) expect(status).to.equal(200)
    expect((await cancelling).body).to.include({ cancelled_count: 3, is_duplicate: false })
    const live = await exchange.db
      .selectFrom('orders')
      .select('order_id')
      .where('user_id', '=', bob.userId)
      .where('ended_at', 'is', null)
      .execute()
    expect(live).to.deep.equal([])
  })

  for (const isExecuted of [false, true]) {
    it(`when its outcome is unknown and it was ${isExecuted ? '' : 'not '}executed, a repetition leaves no live order`, async () => {
      const carol = await createUser(exchange.db, `carol ${isExecuted}`)
      await exchange.place(carol, {})
      await exchange.place(carol, { market: binary, price: '0.5' })
      exchange.engine.faults.push({ reply: { none: 'unknown' }, isExecuted })
      const failed = await all(carol)
      expect([failed.status, failed.body.details.code]).to.deep.equal([408, 'OUTCOME_UNKNOWN'])
      expect((await all(carol)).body).to.include({
        cancelled_count: isExecuted ? 0 : 2,
        is_duplicate: isExecuted,
      })
    })
  }
})
