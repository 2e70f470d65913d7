import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { Client } from '../../client/client.ts'
import { pages } from '../../client/queries.ts'
import {
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../api/support/exchange-fixture.ts'
import {
  append,
  clearedRow,
  confirmedRow,
  settledRow,
  submittedRow,
  type Trade,
} from '../api/support/trade-rows.ts'

describe('client/account and client/market-data, against an exchange', () => {
  let exchange: ExchangeFixture
  let buyer: Client
  let seller: Client
  let buyId: string
  let sellId: string

  before(async () => {
    exchange = await startExchange()
    const baseUrl = await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    const clientOf = ({ apiKey, wallet }: User) =>
      new Client({ baseUrl, apiKey, privateKey: wallet.privateKey })
    const [alice, bob] = [await createUser(exchange.db, 'alice'), await createUser(exchange.db, 'bob')]
    buyer = clientOf(alice)
    seller = clientOf(bob)
    const buy = await buyer.orders.place({ marketId: 1, side: 'LONG', price: '99', quantity: '2' })
    const sell = await seller.orders.place({ marketId: 1, side: 'SHORT', price: '101', quantity: '1' })
    const [buyOrder, sellOrder] = [buy.order, sell.order]
    buyId = buyOrder.order_id
    sellId = sellOrder.order_id
    const trade: Trade = {
      ...{ batch: 1, price: 1_000, steps: 1_000 },
      buy: { orderId: buyId, user: alice, status: 'OPEN' },
      sell: { orderId: sellId, user: bob, status: 'FILLED' },
    }
    await append(exchange, clearedRow(trade), submittedRow(trade), settledRow(trade), confirmedRow(trade))
    await exchange.project()
  })
  after(() => exchange.stop())

  it('when histories are listed with from and to, the client passes both', async () => {
    const [order] = await buyer.orders.list()
    const [fill] = await buyer.account.fills()
    const from = order?.created_at as string
    expect((await buyer.orders.list({ from })).map(({ order_id }) => order_id)).to.deep.equal([buyId])
    expect(await buyer.orders.list({ to: from })).to.deep.equal([])
    expect(await buyer.account.fills({ from: fill?.created_at as string })).to.deep.equal([fill])
    expect(await buyer.account.fills({ to: fill?.created_at as string })).to.deep.equal([])
    expect((await buyer.account.liquidationPage({ from })).steps).to.deep.equal([])
    expect(await buyer.adjustments.attempts({ from })).to.deep.equal([])
  })

  it('when an order is partly filled, its reads by id and by hash agree, and its fills and events are listed', async () => {
    const order = await buyer.orders.get(buyId)
    expect(order).to.include({ status: 'OPEN', filled_quantity: 1, trigger: null })
    expect(await buyer.orders.getByHash(order.order_hash)).to.deep.equal(order)
    const [fill] = await buyer.orders.fills(buyId)
    expect(fill).to.include({ order_id: buyId, price: 100, batch_id: 1, part: 1, action_id: 1 })
    const events = await seller.orders.events(sellId)
    expect(events.map(({ kind }) => kind)).to.deep.equal(['FILLED', 'CREATED'])
    expect(events[0]?.details).to.include({ fee: 0.05, batch_id: 1, tx_hash: '0xabc1' })
  })

  it("when events are filtered by kind and market, it returns only the account's matching events", async () => {
    const kinds = (await buyer.account.orderEvents()).map(({ kind }) => kind)
    expect(kinds).to.have.members(['PARTIALLY_FILLED', 'CREATED'])
    expect(await buyer.account.orderEvents({ kind: 'CREATED', marketId: 1 })).to.have.length(1)
    expect(await buyer.account.orderEvents({ marketId: 2 })).to.deep.equal([])
  })

  it('when a fill is confirmed, fillProcessing reports its stage and nothing pending', async () => {
    const processing = await buyer.orders.fillProcessing(buyId)
    expect(processing).to.include({ settlement_pending: false, confirmation_pending: false })
    expect(processing.stages.CONFIRMED).to.equal(1)
    expect(processing.fills[0]?.stage).to.equal('CONFIRMED')
  })

  it('when the client has no API key, it reads the fills of a market', async () => {
    const anonymous = new Client({ baseUrl: `http://127.0.0.1:${portOf(exchange)}` })
    const { fills, next_cursor } = await anonymous.marketData.fillPage(1, { side: 'LONG' })
    expect(fills).to.have.length(1)
    expect(fills[0]).to.include({ fill_id: '1-1-1-0', side: 'LONG', quantity: 1 })
    expect(next_cursor).to.equal(null)
  })

  it('when a position of a market is inherited, both sides of it and the public read it', async () => {
    const [account, backstop] = [await buyer.account.userId(), await seller.account.userId()]
    const change = (user_id: number, steps: number) => ({
      ...{ user_id, size_delta: steps, entry_notional_delta: '0', folded_margin_delta: '0' },
      ...{ leverage_before: 1, leverage_after: 1 },
    })
    const step = {
      market_id: 1,
      number: 9,
      user_id: account,
      step: 'started',
      reason: 'BELOW_THRESHOLD',
    } as const
    await append(
      exchange,
      {
        ...{ kind: 'liquidation_changed', ...step, order_id: null, widenings: 0, queue_no: null, at: 5_000 },
        evidence: null,
      },
      {
        ...{
          kind: 'positions_moved',
          cause: 'inherited',
          rollback: false,
          action_id: 2,
          funding_index: '0',
          account,
        },
        ...{ block: 8, tx_hash: '0xdef', log_index: 0, at: 6_000, balances: [] },
        positions: [change(account, -1_000), change(backstop, 1_000)],
      },
    )
    await exchange.project()
    const anonymous = new Client({ baseUrl: `http://127.0.0.1:${portOf(exchange)}` })
    const { liquidations } = await anonymous.marketData.liquidationPage({ marketId: 1, limit: 5 })
    expect(liquidations.map(({ kind, tx_hash }) => [kind, tx_hash])).to.deep.equal([['inherited', '0xdef']])
    expect((await anonymous.marketData.risk(1)).inheritances).to.include({ count: 1, quantity: 1 })
    const { steps } = await buyer.account.liquidationPage()
    expect(steps.map(({ liquidation_id, role }) => [liquidation_id, role])).to.deep.equal([['1-9', 'owner']])
    expect(await seller.account.transactions({ type: 'liquidation' })).to.have.length(1)
  })

  it('when a list has several pages, it iterates over all of them', async () => {
    for (let count = 0; count < 4; count++)
      await buyer.orders.place({ marketId: 1, side: 'LONG', price: '98', quantity: '1' })
    await exchange.project()
    const ids: string[] = []
    for await (const { orders } of pages((cursor) =>
      buyer.orders.page({ limit: 2, ...(cursor && { cursor }) }),
    ))
      ids.push(...orders.map(({ order_id }) => order_id))
    expect(ids).to.deep.equal((await buyer.orders.list()).map(({ order_id }) => order_id))
    expect(ids).to.have.length(5)
  })

  it('when an order has the estimated maximum quantity, it is accepted, and one step more is rejected', async () => {
    const terms = { marketId: 1, side: 'LONG', type: 'LIMIT', price: '99', leverage: 10 } as const
    const { maximum, estimate } = await buyer.orders.estimate({ ...terms, intent: 'max' })
    expect(estimate).to.include({ accepted: true, price: 99, price_source: 'limit' })
    const { type: _, ...order } = terms
    const larger = buyer.orders.place({ ...order, quantity: BigInt(maximum.quantity_e18_raw) + 10n ** 15n })
    const rejected = await larger.then(
      () => null,
      (error: { code: string }) => error.code,
    )
    expect(rejected).to.equal(maximum.binding.code)
    const placed = await buyer.orders.place({ ...order, quantity: BigInt(maximum.quantity_e18_raw) })
    expect(placed.order.status).to.equal('OPEN')
  })

  it('when a budget and a price are given, calculateQuantity returns the quantity that the budget buys', async () => {
    const bought = await seller.orders.calculateQuantity({
      marketId: 1,
      side: 'LONG',
      usd: '990',
      price: '99',
    })
    expect(bought).to.include({ quantity: 10, estimated_clearing_price: 99, order_type: 'LIMIT' })
  })
})

const portOf = ({ api }: ExchangeFixture): number => {
  const address = api.app.server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}
