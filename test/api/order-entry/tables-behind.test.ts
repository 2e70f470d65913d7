/** The tables of readers follow the engine's answers: for a while they lack the order that a trader has placed, and no answer may be wrong for it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import {
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'

/** Longer than a request that does not wait for the tables. */
const LAG_MS = 300

describe('requests about an order that the tables lack for a while', () => {
  let exchange: ExchangeFixture
  let alice: User
  /** The order that the tables lack behind each answer of the engine. */
  let hidden: string | null = null
  let timer: NodeJS.Timeout | undefined
  let users = 0

  const run = (...texts: string[]): Promise<unknown> =>
    exchange.db.transaction().execute(async (tx) => {
      for (const text of texts) await sql.raw(text).execute(tx)
    })

  /** As behind an append: a group is stored, and the tables do not contain it. */
  async function hide(): Promise<void> {
    await run(
      `update orders set hash = 'zz' || hash, client_order_id = 'zz' || client_order_id where hash = '${hidden}'`,
      `insert into engine_groups (number, token, version, rows, before, digest)
        select written + 1, 0, 1, '[]', '', '' from engine_tables on conflict do nothing`,
    )
    timer = setTimeout(() => void show(), LAG_MS)
  }

  async function show(): Promise<void> {
    clearTimeout(timer)
    await run(
      `update orders set hash = substr(hash, 3), client_order_id = substr(client_order_id, 3) where hash like 'zz%'`,
      'update engine_tables set written = (select coalesce(max(number), 0) from engine_groups)',
    )
  }

  /** An engine answers a barrier behind its write of the tables. */
  async function written(): Promise<void> {
    const isBehind = async (): Promise<boolean> =>
      (
        await sql`select from engine_tables where written < (select max(number) from engine_groups)`.execute(
          exchange.db,
        )
      ).rows.length > 0
    while (await isBehind()) await sleep(10)
  }

  before(async () => {
    exchange = await startExchange()
    const { engine } = exchange
    const submit = engine.submit.bind(engine)
    engine.submit = (async (...args: Parameters<typeof submit>) => {
      if (args[0].kind === 'barrier') {
        await written()
        return submit(...args)
      }
      await show()
      const reply = await submit(...args)
      if (hidden !== null) await hide()
      return reply
    }) as typeof engine.submit
  })
  after(() => exchange.stop())
  beforeEach(async () => {
    alice = await createUser(exchange.db, `trader${users++}`)
  })
  afterEach(async () => {
    hidden = null
    await show()
  })

  async function lack(hash: string): Promise<void> {
    hidden = hash
    await hide()
  }

  it('when a market order is cancelled, the answer has the order', async () => {
    const { body } = await exchange.place(alice, { type: 'MARKET' })
    await lack(body.order.order_hash)
    const cancel = await exchange.cancel(alice, body.order.order_hash)
    expect([cancel.status, cancel.body.order?.order_id]).to.deep.equal([200, body.order.order_id])
  })

  it('when a market order that waits for its trigger is cancelled, the answer does not wait for the tables', async () => {
    const { body } = await exchange.place(alice, { type: 'STOP_MARKET', trigger: '110' })
    await lack(body.order.order_hash)
    const cancel = await exchange.cancel(alice, body.order.order_hash)
    expect([cancel.body.order?.status, cancel.body.order?.protection_price]).to.deep.equal([
      'CANCELLED',
      null,
    ])
    const { rows } = await sql`select from orders where hash = ${body.order.order_hash}`.execute(exchange.db)
    expect(rows).to.deep.equal([])
  })

  it('when a placement is repeated, the answer is the order', async () => {
    const { body: order } = signedBody(alice)
    const { body } = await exchange.send(alice, 'POST', '/v0/orders', order)
    await lack(body.order.order_hash)
    const again = await exchange.send(alice, 'POST', '/v0/orders', order)
    expect([again.status, again.body.is_duplicate]).to.deep.equal([200, true])
  })

  it('when a batch is repeated, the answer is that of the first attempt', async () => {
    const batch = { client_request_id: 'again', mode: 'best_effort', orders: [signedBody(alice).body] }
    const { body } = await exchange.send(alice, 'POST', '/v0/orders/place/batch', batch)
    await lack(body.results[0].order.order_hash)
    const again = await exchange.send(alice, 'POST', '/v0/orders/place/batch', batch)
    expect([again.status, again.body.results?.[0]?.order?.order_id]).to.deep.equal([
      200,
      body.results[0].order.order_id,
    ])
  })

  const placeLabelled = (price: string) =>
    exchange.send(alice, 'POST', '/v0/orders', { ...signedBody(alice, { price }).body, client_order_id: 'L' })

  it('when an order is cancelled by a label that an earlier one had, the present order is cancelled', async () => {
    const { body: earlier } = await placeLabelled('99')
    await exchange.cancel(alice, earlier.order.order_hash)
    const { body: present } = await placeLabelled('98')
    await lack(present.order.order_hash)
    const cancel = await exchange.send(alice, 'POST', '/v0/orders/cancel/by-client-id/L', {})
    expect([cancel.status, cancel.body.order?.order_id]).to.deep.equal([200, present.order.order_id])
  })

  it('when an order is cancelled by its label, it is found', async () => {
    const { body } = await placeLabelled('99')
    await lack(body.order.order_hash)
    const cancel = await exchange.send(alice, 'POST', '/v0/orders/cancel/by-client-id/L', {})
    expect([cancel.status, cancel.body.order?.order_id]).to.deep.equal([200, body.order.order_id])
  })

  it('when all orders are cancelled again before the first cancel is in the tables, the bookmark names their market', async () => {
    const { body } = await exchange.place(alice)
    await exchange.project()
    await exchange.send(alice, 'POST', '/v0/orders/cancel/all', {})
    await lack(body.order.order_hash)
    const again = await exchange.send(alice, 'POST', '/v0/orders/cancel/all', {})
    expect(again.status).to.equal(200)
    expect(again.body.read_after.shard_id).to.equal('m1.1')
  })
})
