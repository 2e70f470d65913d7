/** A complete exchange on one engine: trading, settlement on the chain, and the ends of processes. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { describe, it } from 'mocha'
import type { Client } from '../../client/client.ts'
import { waitFor } from '../support/patience.ts'
import { isDone, nearOracle, trade, traderOn, useStack } from './support/stack.ts'

const MARKET = 1
const QUANTITY = '0.01'

describe('a complete exchange on an engine', function () {
  this.timeout(180_000)
  const exchange = useStack()

  async function agreed(): Promise<void> {
    expect(await exchange.differences()).to.deep.equal([])
  }

  async function tradeBetween(buyer: Client, seller: Client): Promise<void> {
    const price = await nearOracle(buyer, MARKET)
    const { buy, sell } = await trade(buyer, seller, { marketId: MARKET, price, quantity: QUANTITY })
    expect([buy.status, sell.status]).to.deep.equal(['FILLED', 'FILLED'])
  }

  it('when two accounts trade, their fills settle on chain, and chain, journal, tables and REST agree', async () => {
    await tradeBetween(exchange.trader(0), exchange.trader(1))
    await agreed()
    const { rows } = await sql<{
      count: number
    }>`select count(*)::integer as count from engine_groups`.execute(exchange.stack.db)
    expect(rows[0]?.count).to.be.above(5)
  })

  it('when the engine is killed again and again while orders come, each is placed once, and trading continues', async () => {
    const { engine } = exchange.stack
    // Three starts of the engine take longer than a client tries by default, if the machine is busy.
    const client = traderOn(exchange.stack, 2, 120_000)
    const price = await nearOracle(client, MARKET, -200)
    const placing = Array.from({ length: 30 }, async (_, at) => {
      await new Promise((resolve) => setTimeout(resolve, at * 150))
      const label = `kill-${at}`
      const order = { marketId: MARKET, side: 'LONG', price, quantity: QUANTITY, leverage: 2 } as const
      return client.orders.place({ ...order, clientOrderId: label })
    })
    for (let kill = 0; kill < 3; kill++) {
      await engine.restart('SIGKILL')
      await engine.ready()
    }
    const placed = await Promise.all(placing)
    expect(new Set(placed.map(({ order }) => order.order_id)).size).to.equal(30)
    await client.orders.cancelAll()
    for (const one of placed)
      expect((await client.orders.waitFor(one, isDone, 30_000)).status).to.equal('CANCELLED')
    await tradeBetween(exchange.trader(0), exchange.trader(1))
    await agreed()
  })

  it('when keeper, indexer and api are killed between match and settlement, the fills settle once', async () => {
    const { keeper, indexer, api, db } = exchange.stack
    await tradeBetween(exchange.trader(3), exchange.trader(4))
    for (const process of [keeper, indexer, api]) await process.restart('SIGKILL')
    for (const process of [indexer, keeper, api]) await process.ready()
    const open = () =>
      db
        .selectFrom('read.fills')
        .select('fill_id')
        .where('status', 'in', ['MATCHED', 'SUBMITTED', 'RETRYING'])
        .execute()
    expect(await waitFor(open, ({ length }) => length === 0)).to.deep.equal([])
    await agreed()
  })

  it('when the engine is stopped by SIGSTOP and continued, it gives up its ownership or goes on, and nothing is lost', async () => {
    const { engine } = exchange.stack
    const pid = engine.pid() as number
    process.kill(pid, 'SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, 4_000))
    process.kill(pid, 'SIGCONT')
    await waitFor(
      () => exchange.trader(0).orders.list({ status: 'OPEN' }),
      (orders) => Array.isArray(orders),
    )
    await tradeBetween(exchange.trader(0), exchange.trader(1))
    await agreed()
  })
})
