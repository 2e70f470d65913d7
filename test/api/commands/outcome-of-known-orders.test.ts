/** Refusals of orders that are placed already: none of them says that the order is not placed. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { perpetual } from '../../support/markets.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  setOracle,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { newRequestId, sendBatch } from '../support/place-batch.ts'

describe('the refusal of an order that is placed already', () => {
  let exchange: ExchangeFixture
  let alice: User

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice', '100000000')
  })
  after(() => exchange.stop())

  const post = (path: string, body: unknown): Promise<Answer> => exchange.send(alice, 'POST', path, body)

  async function placed() {
    const order = signedBody(alice)
    expect((await post('/v0/orders', order.body)).status).to.equal(200)
    return order
  }

  /** The errors of the order by itself and as the only item of both kinds of batch. */
  async function errorsOf(path: string, body: object) {
    const batch = path === '/v0/orders' ? '/v0/orders/place/batch' : `${path}/batch`
    const inMode = (mode: string) => post(batch, { client_request_id: newRequestId(), mode, orders: [body] })
    const [single, atomic, each] = [
      await post(path, body),
      await inMode('atomic'),
      await inMode('best_effort'),
    ]
    return [single.body.details, atomic.body.details, each.body.results[0].error.details] as {
      code: string
      outcome: string
    }[]
  }

  const expectPlaced = (errors: Awaited<ReturnType<typeof errorsOf>>, code: string): void => {
    for (const error of errors) {
      expect(error.code).to.equal(code)
      expect(error.outcome, JSON.stringify(error)).to.be.oneOf(['placed', 'unknown'])
    }
  }

  it('when it is repeated with other flags, the error does not say not_placed', async () => {
    const { body } = await placed()
    expectPlaced(await errorsOf('/v0/orders', { ...body, post_only: true }), 'ORDER_FLAGS_DIFFER')
  })

  it('when it is repeated with other flags after the engine has released it, the error does not say not_placed', async () => {
    const { body, hash } = await placed()
    await exchange.cancel(alice, hash)
    await exchange.project()
    await exchange.engine.release()
    expectPlaced(await errorsOf('/v0/orders', { ...body, post_only: true }), 'ORDER_FLAGS_DIFFER')
  })

  it('when it is sent as a replacement, the error does not say not_placed', async () => {
    const [old, { body }] = [await placed(), await placed()]
    const replacement = { cancel: { order_hash: old.hash }, order: body }
    expectPlaced(await errorsOf('/v0/orders/replace', replacement), 'NOT_A_REPLACEMENT')
  })

  it('when it is sent as a replacement of two orders, the error does not say not_placed', async () => {
    const { body, hash } = await placed()
    const replacement = { cancel: { order_hash: hash, client_order_id: 'two' }, order: body }
    expectPlaced(await errorsOf('/v0/orders/replace', replacement), 'REPLACE_TARGET_REQUIRED')
  })

  it('when a batch that had refused it is repeated, the answer does not say not_placed', async () => {
    const { body } = signedBody(alice, { price: '130' })
    const id = newRequestId()
    await setOracle(exchange.db, perpetual, '100')
    const first = await sendBatch(exchange, alice, [body], { id })
    expect(first.body.results[0].error.details.outcome).to.equal('not_placed')
    await setOracle(exchange.db, perpetual, '130')
    expect((await post('/v0/orders', body)).status).to.equal(200)
    const again = await sendBatch(exchange, alice, [body], { id })
    expect(again.body.is_duplicate).to.equal(true)
    expect(again.body.results[0].error.details.outcome).to.be.oneOf(['placed', 'unknown'])
  })

  it('when a batch of cancels that had missed it is repeated after its cancel, the answer does not say not_placed', async () => {
    const { body, hash } = signedBody(alice)
    const request = { client_request_id: newRequestId(), orderHashes: [hash] }
    const missed = await post('/v0/orders/cancel/batch', request)
    expect(missed.body.results[0].error.details).to.include({
      code: 'ORDER_NOT_FOUND',
      outcome: 'not_placed',
    })
    expect((await post('/v0/orders', body)).status).to.equal(200)
    const before = await post('/v0/orders/cancel/batch', request)
    expect(before.body.results[0].error.details.outcome).to.equal('not_placed')
    expect((await exchange.cancel(alice, hash)).body.cancelled).to.equal(true)
    const after = await post('/v0/orders/cancel/batch', request)
    expect(after.body.results[0].error.details.outcome).to.equal('unknown')
  })
})
