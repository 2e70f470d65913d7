import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { settled } from '../../stack/audit/audit.ts'
import type { Managed } from '../../stack/supervisor.ts'
import { nearOracle, readModel, trade, useStack } from './support/stack.ts'

const POINTS = [
  ['api', 'after-placement-commit'],
  ['engine', 'before-append-order_placed'],
  ['engine', 'after-append-order_placed'],
  ['engine', 'before-append-batch_cleared'],
  ['engine', 'after-append-batch_cleared'],
  ['keeper', 'after-signing'],
  ['keeper', 'after-broadcast'],
  ['indexer', 'after-block-commit'],
  ['indexer', 'before-projection'],
] as const

const CLI = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))

describe('a process that is killed between two writes', function () {
  this.timeout(120_000)
  const exchange = useStack()
  let trades = 0

  /** Sets the kill point, places a trade, and waits until the process was killed and is ready again. */
  async function killDuringTrade(process: Managed, point: string) {
    const [buyer, seller] = [exchange.trader(0), exchange.trader(1)]
    const price = await nearOracle(buyer, 1)
    await process.restart('SIGTERM', { CLEARBATCH_KILL_AT: point })
    const died = process.nextEnd()
    await process.ready()
    const traded = trade(buyer, seller, { marketId: 1, price, quantity: '0.01' })
    const [end, result] = await Promise.all([died, traded])
    await process.ready()
    trades++
    return { end, ...result }
  }

  for (const [name, point] of POINTS) {
    it(`when ${name} is killed at ${point}, no order is lost and no fill happens twice`, async () => {
      const { end, buy, sell, placed } = await killDuringTrade(exchange.stack[name], point)
      expect(end).to.equal('SIGKILL')
      expect([buy.status, sell.status]).to.deep.equal(['FILLED', 'FILLED'])
      expect([buy.filled_quantity, sell.filled_quantity]).to.deep.equal([0.01, 0.01])
      if (name === 'api') expect(placed.some(({ is_duplicate }) => is_duplicate)).to.equal(true)

      const [bought] = await exchange.trader(0).account.positions({ marketId: 1 })
      expect(bought?.size).to.be.closeTo(0.01 * trades, 1e-9)
      expect(await exchange.differences()).to.deep.equal([])
    })
  }

  it('when the api is killed at after-request-commit, the retry of a batch over two markets returns the first response', async () => {
    const { api } = exchange.stack
    const trader = exchange.trader(2)
    const [one, two] = [await nearOracle(trader, 1, -100), await nearOracle(trader, 2, -100)]
    const orders = [
      await trader.orders.sign({ marketId: 1, side: 'LONG', price: one, quantity: '0.01' }),
      await trader.orders.sign({ marketId: 2, side: 'LONG', price: two, quantity: '1' }),
    ]
    const killedDuring = async <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
      await api.restart('SIGTERM', { CLEARBATCH_KILL_AT: 'after-request-commit' })
      const died = api.nextEnd()
      await api.ready()
      const answer = work()
      expect(await died).to.equal('SIGKILL')
      await api.ready()
      return answer
    }
    const placed = await killedDuring(() => trader.orders.placeBatch(orders, { mode: 'atomic' }))
    expect(placed).to.include({ is_duplicate: true, accepted: 2 })
    // The killed api sent no notification of its commit; the read model must still reach it.
    const open = await trader.orders.list({ status: 'OPEN', readAfter: placed.read_after })
    expect(open.map(({ order_hash }) => order_hash).sort()).to.deep.equal(
      orders.map(({ hash }) => hash).sort(),
    )

    const cancelled = await killedDuring(() => trader.orders.cancelBatch(orders.map(({ hash }) => hash)))
    expect(cancelled.is_duplicate).to.equal(true)
    expect(cancelled.results.map((result) => 'order' in result && result.order.status)).to.deep.equal([
      'CANCELLED',
      'CANCELLED',
    ])
    expect(await trader.orders.list({ status: 'OPEN', readAfter: cancelled.read_after })).to.deep.equal([])
    expect(await exchange.differences()).to.deep.equal([])
  })

  it('when all kill points are passed, each order was accepted once', async () => {
    const rows = await exchange.stack.db
      .selectFrom('orders')
      .select((select) => ['hash', select.fn.countAll<number>().as('count')])
      .groupBy('hash')
      .execute()
    expect(rows).to.have.length(2 * POINTS.length + 2)
    expect(rows.every(({ count }) => count === 1)).to.equal(true)
  })

  it('when the read model is rebuilt from the journal, it equals the live one', async () => {
    const { db, engine, keeper, indexer } = exchange.stack
    await keeper.stop()
    await settled(db)
    await engine.stop()
    await settled(db)
    await indexer.stop()
    const live = await readModel(db)
    execFileSync(process.execPath, [CLI, 'db', 'rebuild'], {
      env: { ...process.env, DATABASE_URL: exchange.stack.databaseUrls.indexer },
    })
    expect(await readModel(db)).to.deep.equal(live)
  })
})
