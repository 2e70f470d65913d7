import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Client } from '../../client/client.ts'
import { ClearbatchError } from '../../client/errors.ts'
import type { Bookmark, Placement } from '../../client/responses.ts'
import { waitFor } from '../support/patience.ts'
import { FeedRun } from './support/feed-run.ts'
import { nearOracle, trade, useStack } from './support/stack.ts'

describe('an outage', function () {
  this.timeout(120_000)
  const exchange = useStack()

  /** A client that never retries. */
  const withoutRetries = (index: number): Client => {
    const { file } = exchange.stack
    const account = file.accounts[index]
    return new Client({
      baseUrl: file.base_url,
      apiKey: account?.api_key ?? '',
      privateKey: account?.private_key ?? '',
      http: { budgetMs: 0 },
    })
  }

  it('when the chain stops responding, it rejects placements, accepts cancels, and settles after the chain is back', async () => {
    const [alice, bob] = [exchange.trader(0), exchange.trader(1)]
    const price = await nearOracle(alice, 1)
    const resting = await alice.orders.place({
      marketId: 1,
      side: 'LONG',
      price: await nearOracle(alice, 1, -20_000),
      quantity: '0.01',
    })
    const once = withoutRetries(2)
    await once.marketData.market(1)

    exchange.stack.chain.signal('SIGSTOP')
    try {
      const refusal = await waitFor(
        () =>
          once.orders.place({ marketId: 1, side: 'LONG', price, quantity: '0.01' }).then(
            ({ order }) => once.orders.cancel(order.order_hash).then(() => null),
            (error: unknown) => error,
          ),
        (error) => error !== null,
        { budgetMs: 20_000, everyMs: 250 },
      )
      expect(refusal).to.be.instanceOf(ClearbatchError)
      expect(refusal).to.include({ status: 503, code: 'CHAIN_UNSEEN', outcome: 'not_placed' })
      expect((await alice.orders.cancel(resting.order.order_hash)).order.status).to.equal('CANCELLED')
    } finally {
      exchange.stack.chain.signal('SIGCONT')
    }
    const { buy, sell } = await trade(alice, bob, {
      marketId: 1,
      price: await nearOracle(alice, 1),
      quantity: '0.01',
    })
    expect([buy.status, sell.status]).to.deep.equal(['FILLED', 'FILLED'])
    expect(await exchange.differences()).to.deep.equal([])
  })

  it('when the chain is killed and loses its last blocks, it settles their batches again', async () => {
    const [alice, bob] = [exchange.trader(0), exchange.trader(1)]
    const tradeIn = async (marketId: number) =>
      trade(alice, bob, { marketId, price: await nearOracle(alice, marketId), quantity: '1' })
    const forgotten = await tradeIn(4)
    expect([forgotten.buy.status, forgotten.sell.status]).to.deep.equal(['FILLED', 'FILLED'])

    exchange.stack.chain.signal('SIGKILL')
    const { buy, sell } = await tradeIn(3)
    expect([buy.status, sell.status]).to.deep.equal(['FILLED', 'FILLED'])
    expect(await exchange.differences()).to.deep.equal([])
    const [position] = await alice.account.positions({ marketId: 4 })
    expect(position?.size).to.equal(1)
  })

  it('when the database restarts under load, every order is placed once and trading continues', async () => {
    const [alice, bob] = [exchange.trader(0), exchange.trader(1)]
    const price = await nearOracle(alice, 2, -20)
    const placing = Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        await sleep(50 * index)
        return alice.orders.place({ marketId: 2, side: 'LONG', price, quantity: '0.05' })
      }),
    )
    await sleep(700)
    await exchange.stack.postgres.restart()
    const placed = await placing
    const ids = new Set(placed.map(({ order }) => order.order_id))
    expect(ids.size).to.equal(40)

    const open = await alice.orders.list({
      marketId: 2,
      status: 'OPEN',
      limit: 1000,
      readAfter: latest(placed),
    })
    expect(open.filter(({ order_id }) => ids.has(order_id))).to.have.length(40)
    for (const { order } of placed) await alice.orders.cancel(order.order_hash)

    const { buy, sell } = await trade(alice, bob, {
      marketId: 2,
      price: await nearOracle(alice, 2),
      quantity: '0.1',
    })
    expect([buy.status, sell.status]).to.deep.equal(['FILLED', 'FILLED'])
    expect(await exchange.differences()).to.deep.equal([])
  })

  it('when connections of the live feed end at random points under kills and forks, they resume, and every copy equals REST', async () => {
    const { stack } = exchange
    const run = await FeedRun.start({
      ...{ stack, apis: [stack.file.base_url], seed: 3, marketIds: [1, 3] },
      ...{ traders: 4, copiesPerTrader: 3 },
    })
    try {
      expect(await run.play(150, ['api', 'fork', 'indexer'])).to.deep.equal([])
      const { messages, snapshots } = run.figures
      expect(messages).to.be.greaterThan(3 * snapshots)
    } finally {
      await run.close()
    }
    expect(await exchange.differences()).to.deep.equal([])
  })
})

/** The highest bookmark. After retries the last request is not always the last placement. */
function latest(placed: readonly Placement[]): Bookmark {
  const seqs = placed.map(({ read_after }) => read_after)
  return seqs.reduce((a, b) => (Number(b.shard_seq) > Number(a.shard_seq) ? b : a))
}
