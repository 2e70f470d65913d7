import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { future } from '../support/markets.ts'
import { type Batch, bodies, newId, sendBatch } from './support/batch.ts'
import { expectSound } from './support/sound.ts'
import {
  type Answer,
  createUser,
  signedBody,
  startTwin,
  startWorld,
  type User,
  type World,
} from './support/world.ts'

describe('a batch of placements sent again', () => {
  let world: World
  let alice: User
  before(async () => {
    world = await startWorld()
    alice = await createUser(world.db, 'alice')
  })
  after(async () => {
    await expectSound(world.db)
    await world.stop()
  })
  const send = (user: User, orders: unknown, batch?: Batch): Promise<Answer> =>
    sendBatch(world, user, orders, batch)

  it('gives the same answer, whatever has changed since', async () => {
    const ida = await createUser(world.db, 'ida')
    const orders = [
      ...bodies(ida, [{}, { market: future, price: '50' }]),
      { ...signedBody(ida).body, price: '98' },
    ]
    const first = await send(ida, orders, { id: 'again' })
    await world.cancel(ida, first.body.results[0].order.order_hash)
    await world.db.updateTable('markets').set({ mode: 'halted' }).execute()
    const traces = await world.traces()
    const second = await send(ida, orders, { id: 'again' })
    await world.db.updateTable('markets').set({ mode: 'open' }).execute()
    expect(second.status).to.equal(200)
    expect(second.body).to.deep.equal({ ...first.body, is_duplicate: true })
    expect(await world.traces()).to.deep.equal(traces)
  })

  it('knows the same body in whatever order its fields come, and refuses another', async () => {
    const orders = bodies(alice, [{}])
    const id = newId()
    await send(alice, orders, { id })
    const shuffled = {
      orders: orders.map((order) => Object.fromEntries(Object.entries(order).reverse())),
      mode: 'best_effort',
      client_request_id: id,
    }
    expect((await world.send(alice, 'POST', '/v0/orders/place/batch', shuffled)).body.is_duplicate).to.equal(
      true,
    )
    for (const other of [
      send(alice, orders, { id, mode: 'atomic' }),
      send(alice, bodies(alice, [{}]), { id }),
    ]) {
      const { status, body } = await other
      expect([status, body.details.code, body.details.field]).to.deep.equal([
        409,
        'CLIENT_REQUEST_REUSED',
        'client_request_id',
      ])
    }
  })

  it('is done once when it arrives many times at once, on two processes', async () => {
    const jack = await createUser(world.db, 'jack')
    const twin = await startTwin(world)
    const orders = bodies(jack, [{}, { market: future, price: '50' }, { price: '98' }])
    const body = { client_request_id: 'twins', mode: 'atomic', orders }
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, at) =>
        (at % 2 ? world : twin).send(jack, 'POST', '/v0/orders/place/batch', body),
      ),
    )
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(10).fill(200))
    expect(answers.filter(({ body: { is_duplicate } }) => !is_duplicate)).to.have.length(1)
    expect(new Set(answers.map(({ body: { results } }) => JSON.stringify(results))).size).to.equal(1)
    expect(
      await world.db.selectFrom('orders').selectAll().where('user_id', '=', jack.userId).execute(),
    ).to.have.length(3)
    await twin.stop()
  })

  it('belongs to its account', async () => {
    const kate = await createUser(world.db, 'kate')
    await send(alice, bodies(alice, [{}]), { id: 'mine' })
    expect((await send(kate, bodies(kate, [{}]), { id: 'mine' })).body).to.include({
      is_duplicate: false,
      accepted: 1,
    })
  })
})
