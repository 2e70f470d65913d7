/** Tests of the rules of placing and cancelling. */
import { expect } from 'chai'
import { type Answer, bookmarkOf, near } from './exchange.ts'
import { orderOf } from './fixture.ts'
import { draftOf, type Proof, requestId } from './requests.ts'
import { nextSalt, signed } from './signing.ts'

type Body = Answer['body']

const isDone = ({ status }: Body): boolean => ['FILLED', 'CANCELLED', 'EXPIRED'].includes(status)

export const PLACING: Readonly<Record<string, Proof>> = {
  async 'when an order is placed, the answer has no fills'({ exchange, fixture: { spare, market } }) {
    const { body } = await exchange.place(spare, draftOf(market))
    expect(body).to.deep.include({ fills: [], is_duplicate: false })
    await exchange.cancel(spare, body.order.order_hash)
  },
  async 'when a salt is used again, the order is rejected'({ exchange, fixture: { spare, market } }) {
    const salt = nextSalt()
    const first = orderOf(await exchange.place(spare, { ...draftOf(market), salt }))
    const { status, body } = await exchange.place(spare, { ...draftOf(market, { quantity: '0.02' }), salt })
    expect([status, body.details.code, body.details.field]).to.deep.equal([409, 'SALT_USED', 'salt'])
    await exchange.cancel(spare, first.order_hash)
  },
  async 'when a signed order is repeated, it is the same order'({ exchange, fixture: { spare, market } }) {
    const { body } = signed(spare, market, draftOf(market))
    const first = await exchange.post(spare, '/v0/orders', body)
    const again = await exchange.post(spare, '/v0/orders', body)
    expect(again.body.is_duplicate).to.equal(true)
    expect(again.body.order.order_id).to.equal(orderOf(first).order_id)
    await exchange.cancel(spare, orderOf(first).order_hash)
    const late = await exchange.post(spare, '/v0/orders', body)
    expect(late.body.order.status).to.equal('CANCELLED')
  },
  async 'when a reduce-only order closes the whole position, it fills exactly the position'(suite) {
    const { exchange, fixture } = suite
    const { body } = await exchange.post(fixture.owner, '/v0/orders/estimate', {
      ...{ market_id: 1, side: 'SHORT', order_type: 'MARKET', sizing_intent: 'reduce_percentage', size: 100 },
    })
    const { body: held } = await exchange.get(
      fixture.owner,
      `/v0/positions/by-user/${fixture.owner.userId}?market_id=1`,
    )
    expect(body.estimate.quantity).to.equal(held.positions[0].size)
    expect(body.estimate.accepted).to.equal(true)
    expect(body.estimate.reservation.reserved_margin).to.equal(0)
    expect(body.estimate.position.size).to.equal(0)
  },
  async 'when an order reduces a position, it reserves nothing'({ exchange, fixture: { owner, market } }) {
    const draft = draftOf(market, { side: 'SHORT', price: 1030, quantity: '0.01', reduce_only: true })
    const { body } = await exchange.place(owner, draft)
    expect(body.order, JSON.stringify(body)).to.include({ status: 'OPEN', reserved_margin: 0 })
    await exchange.cancel(owner, body.order.order_hash)
  },
  async 'when a market order matches a limit order, it pays the taker rate and the limit order the maker rate'({
    exchange,
  }) {
    const [maker, taker] = [exchange.account(7), exchange.account(8)]
    const market = await exchange.market(1)
    const limit = orderOf(await exchange.place(maker, { price: near(market, 1000), quantity: '0.01' }))
    const order = orderOf(
      await exchange.place(taker, { side: 'SHORT', order_type: 'MARKET', quantity: '0.01' }),
    )
    await exchange.until(taker, `/v0/orders/${order.order_id}`, isDone)
    await exchange.until(maker, `/v0/orders/${limit.order_id}`, (read) => read.filled_quantity > 0)
    const fillOf = async (account: typeof maker, id: string) =>
      (await exchange.get(account, `/v0/orders/${id}/fills`)).body.fills[0]
    const [made, taken] = [await fillOf(maker, limit.order_id), await fillOf(taker, order.order_id)]
    expect(made).to.include({ fee: 0, taker_quantity: 0 })
    const value = BigInt(taken.price_e18_raw) * BigInt(taken.quantity_e18_raw)
    expect(taken.fee_e18_raw).to.equal(((value * 5n) / 10_000n / 10n ** 18n).toString())
  },
}

export const COMMANDING: Readonly<Record<string, Proof>> = {
  async 'when a batch is atomic, it places all orders or none'({ exchange, fixture: { market } }) {
    const account = exchange.account(4)
    const good = () => signed(account, market, draftOf(market)).body
    const bad = signed(account, market, draftOf(market, { price: 1060 })).body
    const body = { client_request_id: requestId(), mode: 'atomic', orders: [good(), bad] }
    const refused = await exchange.post(account, '/v0/orders/place/batch', body)
    expect(refused.status, JSON.stringify(refused.body)).to.equal(400)
    expect(refused.body.details.code).to.equal('PRICE_BAND')
    const { body: open } = await exchange.get(account, `/v0/orders/by-user/${account.userId}?status=OPEN`)
    expect(open.orders).to.deep.equal([])
  },
  async 'when a batch is best_effort, it places every valid order'({ exchange, fixture: { market } }) {
    const account = exchange.account(4)
    const orders = [draftOf(market), draftOf(market, { price: 1060 }), draftOf(market)]
    const { body } = await exchange.post(account, '/v0/orders/place/batch', {
      ...{ client_request_id: requestId(), mode: 'best_effort' },
      orders: orders.map((draft) => signed(account, market, draft).body),
    })
    expect(body, JSON.stringify(body)).to.include({ accepted: 2, refused: 1 })
    expect(body.results[1].error.details.code).to.equal('PRICE_BAND')
    await exchange.post(account, '/v0/orders/cancel/all')
  },
  async 'when a batch is placed, it has one balance, and its items have order and read_after but no fills'({
    exchange,
    fixture,
  }) {
    const account = exchange.account(4)
    const { body: emptied } = await exchange.post(account, '/v0/orders/cancel/all')
    const path = `/v0/balance/${account.userId}/margin?${bookmarkOf(emptied.read_after)}`
    const before = (await exchange.get(account, path)).body.balance
    const { body } = await exchange.post(account, '/v0/orders/place/batch', {
      ...{ client_request_id: requestId(), mode: 'atomic' },
      orders: [1, 2].map(() => signed(account, fixture.market, draftOf(fixture.market)).body),
    })
    for (const item of body.results) {
      expect(item.read_after).to.have.all.keys('shard_id', 'shard_seq')
      expect(item.order.status).to.equal('OPEN')
      expect(item).to.not.have.property('fills')
      expect(item).to.not.have.property('balance')
    }
    const reserved = body.results.reduce(
      (sum: bigint, { order }: Body) => sum + BigInt(order.reserved_margin_e18_raw),
      0n,
    )
    expect(BigInt(before.available_e18_raw) - BigInt(body.balance.available_e18_raw)).to.equal(reserved)
    await exchange.post(account, '/v0/orders/cancel/all')
  },
  async 'when a batch is repeated, it has the same answer and one effect'({ exchange, fixture: { market } }) {
    const account = exchange.account(4)
    const orders = [signed(account, market, draftOf(market)).body]
    const body = { client_request_id: requestId(), mode: 'atomic', orders }
    const first = await exchange.post(account, '/v0/orders/place/batch', body)
    await exchange.post(account, '/v0/orders/cancel/all')
    const again = await exchange.post(account, '/v0/orders/place/batch', body)
    expect(again.body).to.deep.equal({ ...first.body, is_duplicate: true })
  },
  async 'when a client_request_id is reused with another body, the request is rejected'({
    exchange,
    fixture: { market },
  }) {
    const account = exchange.account(4)
    const id = requestId()
    const send = () =>
      exchange.post(account, '/v0/orders/place/batch', {
        ...{ client_request_id: id, mode: 'atomic' },
        orders: [signed(account, market, draftOf(market)).body],
      })
    expect((await send()).status).to.equal(200)
    const { status, body } = await send()
    expect([status, body.details.code]).to.deep.equal([409, 'CLIENT_REQUEST_REUSED'])
    await exchange.post(account, '/v0/orders/cancel/all')
  },
  async 'when a cancel is repeated, it has is_duplicate'({ exchange, fixture: { owner, cancelled } }) {
    const { body } = await exchange.cancel(owner, cancelled.order_hash)
    expect(body).to.include({ cancelled: true, is_duplicate: true })
    expect(body.order.status).to.equal('CANCELLED')
  },
  async 'when a batch cancel is repeated, it has one effect'({ exchange, fixture: { market } }) {
    const account = exchange.account(4)
    const placed = orderOf(await exchange.place(account, draftOf(market)))
    const body = { client_request_id: requestId(), orderHashes: [placed.order_hash] }
    const first = await exchange.post(account, '/v0/orders/cancel/batch', body)
    expect(first.body.results[0], JSON.stringify(first.body)).to.include({ cancelled: true })
    const again = await exchange.post(account, '/v0/orders/cancel/batch', body)
    expect(again.body.is_duplicate).to.equal(true)
    expect(again.body.results[0].order.status).to.equal('CANCELLED')
  },
  async 'when another account uses the same client_request_id, it is another command'({
    exchange,
    fixture: { market },
  }) {
    const id = requestId()
    for (const account of [exchange.account(4), exchange.account(10)]) {
      const orders = [signed(account, market, draftOf(market)).body]
      const body = { client_request_id: id, mode: 'atomic', orders }
      const { body: answer } = await exchange.post(account, '/v0/orders/place/batch', body)
      expect(answer, JSON.stringify(answer)).to.include({ accepted: 1, is_duplicate: false })
      await exchange.post(account, '/v0/orders/cancel/all')
    }
  },
  async 'when a batch has orders of several markets, it is accepted'({ exchange }) {
    const account = exchange.account(4)
    const markets = await Promise.all([1, 2].map((id) => exchange.market(id)))
    const orders = markets.map(
      (market) => signed(account, market, { price: near(market, 970), quantity: '0.1' }).body,
    )
    const body = { client_request_id: requestId(), mode: 'atomic', orders }
    const { body: answer } = await exchange.post(account, '/v0/orders/place/batch', body)
    expect(answer.results.map(({ order }: Body) => order.market_id)).to.deep.equal([1, 2])
    const { body: cancelled } = await exchange.post(account, '/v0/orders/cancel/all')
    expect(cancelled.cancelled_count).to.equal(2)
  },
  async 'when a filled order is cancelled, the answer has its status'({
    exchange,
    fixture: { owner, filled },
  }) {
    const { status, body } = await exchange.cancel(owner, filled.order_hash)
    expect([status, body.cancelled, body.is_duplicate]).to.deep.equal([200, false, false])
    expect(body.order.status).to.equal('FILLED')
  },
  async 'when a dead-man switch is not armed again, it cancels all orders'({
    exchange,
    fixture: { market },
  }) {
    const account = exchange.account(10)
    const placed = orderOf(await exchange.place(account, draftOf(market)))
    const path = '/v0/orders/cancel/all-after'
    const { body: armed } = await exchange.post(account, path, { timeout_seconds: 5 })
    expect(armed).to.include({ armed: true, timeout_seconds: 5 })
    const { body } = await exchange.until(account, `/v0/orders/${placed.order_id}`, isDone)
    expect(body).to.include({ status: 'CANCELLED', status_reason: 'DEAD_MAN_SWITCH' })
    expect(Date.parse(body.updated_at)).to.be.at.least(Date.parse(armed.fire_at))
    expect((await exchange.get(account, path)).body).to.include({ armed: false, fire_at: null })
  },
}
