import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { rebuild } from '../../../indexer/project/rebuild.ts'
import { future, perpetual } from '../../support/markets.ts'
import {
  type Answer,
  codeOf,
  createUser,
  type ExchangeFixture,
  type OrderTerms,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'

let users = 0

describe('client_order_id', () => {
  let exchange: ExchangeFixture
  let alice: User

  before(async () => {
    exchange = await startExchange({ LOG_LEVEL: 'error' })
  })
  after(() => exchange.stop())
  beforeEach(async () => {
    alice = await createUser(exchange.db, `alice ${users++}`)
  })

  const labelled = (label: string, terms: OrderTerms = {}, user = alice) => ({
    ...signedBody(user, terms).body,
    client_order_id: label,
  })
  const place = (body: object, user = alice): Promise<Answer> =>
    exchange.send(user, 'POST', '/v0/orders', body)
  const read = (label: string, user = alice) => exchange.get(user, `/v0/orders/by-client-id/${label}`)
  const cancel = (label: string, user = alice) =>
    exchange.send(user, 'POST', `/v0/orders/cancel/by-client-id/${label}`, {})

  it('when an order is placed with one, it is shown, found by it, and kept by a rebuild of the read model', async () => {
    const { status, body } = await place(labelled('Bid_1.a:b-c'))
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body.order.client_order_id).to.equal('Bid_1.a:b-c')
    await exchange.project()
    const shown = await read('Bid_1.a:b-c')
    expect(shown.body).to.include({ order_id: body.order.order_id, client_order_id: 'Bid_1.a:b-c' })
    await rebuild(exchange.db, { limit: 1000, killPoint: () => {} })
    await exchange.project()
    expect((await read('Bid_1.a:b-c')).body).to.deep.equal(shown.body)
    const other = await exchange.place(alice)
    expect(other.body.order.client_order_id).to.equal(null)
    const events = await exchange.get(alice, `/v0/orders/${body.order.order_id}/events`)
    expect(events.body.events[0].client_order_id).to.equal('Bid_1.a:b-c')
  })

  it('when it is not 1 to 64 of the allowed characters, it is refused by name', async () => {
    for (const label of ['', 'a b', 'ä', 'x'.repeat(65), 'a/b', 1]) {
      const { status, body } = await place({ ...signedBody(alice).body, client_order_id: label })
      expect([status, body.details.code, body.details.field], String(label)).to.deep.equal([
        400,
        'INVALID_FIELD',
        'client_order_id',
      ])
    }
  })

  it('when a live order of the account has it, another order is refused in every market and by a dry run', async () => {
    const { body: first } = await place(labelled('one'))
    const traces = await exchange.state()
    const refusals = [
      await place(labelled('one', { price: '99' })),
      await place(labelled('one', { market: future, price: '50' })),
      await exchange.send(alice, 'POST', '/v0/orders/validate', labelled('one', { price: '98' })),
    ]
    for (const refusal of refusals) {
      expect(codeOf(refusal)).to.deep.equal([409, 'CLIENT_ORDER_ID_USED'])
      expect(refusal.body.details).to.include({
        ...{ field: 'client_order_id', received: 'one' },
        ...{ order_id: first.order.order_id, order_hash: first.order.order_hash },
      })
    }
    expect(await exchange.state()).to.deep.equal(traces)
    const bob = await createUser(exchange.db, `bob ${users++}`)
    expect((await place(labelled('one', {}, bob), bob)).status).to.equal(200)
  })

  it('when the order has ended, its label is free, and a repetition returns the order that it placed', async () => {
    const body = labelled('again')
    const { body: first } = await place(body)
    expect((await cancel('again')).body).to.deep.include({ cancelled: true, is_duplicate: false })
    const { status, body: second } = await place(labelled('again'))
    expect(status).to.equal(200)
    const repeated = await place(body)
    expect(repeated.body).to.deep.include({ is_duplicate: true })
    expect(repeated.body.order).to.include({ order_id: first.order.order_id, status: 'CANCELLED' })
    await exchange.project()
    expect((await read('again')).body.order_id).to.equal(second.order.order_id)
  })

  it('when orders with one label arrive at once in several markets, one is accepted', async () => {
    for (let round = 0; round < 5; round++) {
      const bodies = Array.from({ length: 8 }, (_, at) =>
        labelled(`race ${round}`.replace(' ', '-'), at % 2 === 0 ? {} : { market: future, price: '50' }),
      )
      const answers = await Promise.all(bodies.map((body) => place(body)))
      expect(answers.filter(({ status }) => status === 200)).to.have.length(1)
      const refused = answers.filter(({ status }) => status !== 200).map(codeOf)
      expect(refused).to.deep.equal(Array(7).fill([409, 'CLIENT_ORDER_ID_USED']))
    }
  })

  it('when two orders of a batch have one label, the second is refused, and an atomic batch as a whole', async () => {
    const batch = (mode: string, label: string) => ({
      ...{ client_request_id: `${mode} ${alice.userId}`, mode },
      orders: [labelled(label), labelled(label, { market: future, price: '50' })],
    })
    const send = (body: object) => exchange.send(alice, 'POST', '/v0/orders/place/batch', body)
    const atomic = await send(batch('atomic', 'twice'))
    expect(codeOf(atomic)).to.deep.equal([409, 'CLIENT_ORDER_ID_USED'])
    expect(atomic.body.details).to.include({ index: 1, same_as: 'orders.0' })
    const request = batch('best_effort', 'twice')
    const { body } = await send(request)
    expect(body.results[0].order.client_order_id).to.equal('twice')
    expect(body.results[1].error.details).to.include({ code: 'CLIENT_ORDER_ID_USED' })
    expect((await send(request)).body).to.deep.equal({ ...body, is_duplicate: true })
  })

  it('when no order of the account has it, reading and cancelling answer 404 with it', async () => {
    const bob = await createUser(exchange.db, `bob ${users++}`)
    await place(labelled('mine'))
    await exchange.project()
    for (const answer of [await read('mine', bob), await cancel('mine', bob)]) {
      expect(codeOf(answer)).to.deep.equal([404, 'ORDER_NOT_FOUND'])
      expect(answer.body.details).to.include({ field: 'client_order_id', received: 'mine' })
    }
  })

  it('when a rollback revives an ended order whose label is taken, both live, and each can be cancelled', async () => {
    const { body: first } = await place(labelled('revived'))
    await cancel('revived')
    const { body: second } = await place(labelled('revived'))
    const revived = { status: 'OPEN', status_reason: null, ended_at: null } as const
    await exchange.db
      .updateTable('orders')
      .set(revived)
      .where('order_id', '=', first.order.order_id)
      .execute()
    expect(codeOf(await place(labelled('revived')))).to.deep.equal([409, 'CLIENT_ORDER_ID_USED'])
    expect((await cancel('revived')).body.order.order_id).to.equal(second.order.order_id)
    expect(codeOf(await place(labelled('revived')))).to.deep.equal([409, 'CLIENT_ORDER_ID_USED'])
    const last = await cancel('revived')
    expect(last.body).to.deep.include({ cancelled: true, is_duplicate: false })
    expect(last.body.order.order_id).to.equal(first.order.order_id)
    expect((await place(labelled('revived', { market: perpetual }))).status).to.equal(200)
  })
})
