import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { expectConsistentAccounting } from '../support/accounting.ts'
import {
  type Answer,
  codeOf,
  createUser,
  type ExchangeFixture,
  type OrderTerms,
  setOracle,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { runAuction } from '../support/keeper-turns.ts'

let users = 0

describe('POST /v0/positions/close', () => {
  let exchange: ExchangeFixture
  let alice: User
  let bob: User

  before(async () => {
    exchange = await startExchange()
  })
  after(async () => {
    await expectConsistentAccounting(exchange.db)
    await exchange.stop()
  })
  beforeEach(async () => {
    alice = await createUser(exchange.db, `alice ${users++}`)
    bob = await createUser(exchange.db, `bob ${users++}`)
  })

  /** Later tests meet no order of this one. */
  afterEach(async () => {
    for (const user of [alice, bob]) await exchange.send(user, 'POST', '/v0/orders/cancel/all', {})
  })

  const place = async (user: User, terms: OrderTerms) => {
    const { status, body } = await exchange.send(user, 'POST', '/v0/orders', signedBody(user, terms).body)
    expect(status, JSON.stringify(body)).to.equal(200)
    return body.order
  }
  const CLOSE = { type: 'MARKET', price: '0', side: 'SHORT', reduceOnly: true } as const
  const closing = (user: User, terms: OrderTerms = {}): Record<string, unknown> => {
    const { price: _, ...body } = signedBody(user, { ...CLOSE, ...terms }).body as Record<string, unknown>
    return body
  }
  const close = (user: User, body: unknown): Promise<Answer> =>
    exchange.send(user, 'POST', '/v0/positions/close', body)
  const auction = async (): Promise<number | null> => {
    await setOracle(exchange.db, perpetual, '100')
    return runAuction(exchange)
  }
  /** Alice is long this quantity, against Bob. */
  const open = async (quantity: string): Promise<void> => {
    await place(bob, { side: 'SHORT', price: '100', quantity })
    await place(alice, { side: 'LONG', price: '100', quantity })
    expect(await auction()).to.not.equal(null)
  }
  const sizeOf = async ({ userId }: User): Promise<number> => {
    const row = await withMirror(exchange.db)
      .selectFrom('positions')
      .select('matched_size')
      .where('user_id', '=', userId)
      .where('market_id', '=', perpetual.marketId)
      .executeTakeFirst()
    return row?.matched_size ?? 0
  }
  const read = async (user: User, id: string) => {
    await exchange.project()
    return (await exchange.get(user, `/v0/orders/${id}`)).body
  }

  it('when the signed quantity exceeds the position, the auction closes the position and never flips it', async () => {
    await open('3')
    await place(bob, { side: 'LONG', price: '100', quantity: '10' })
    const { status, body } = await close(alice, closing(alice, { quantity: '10' }))
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body).to.include({ position_quantity: 3, closing_quantity: 3, staying_quantity: 0 })
    expect(body.order).to.include({ order_type: 'MARKET', reduce_only: true, reserved_margin: 0 })
    expect(await auction()).to.not.equal(null)
    expect(await sizeOf(alice)).to.equal(0)
    expect(await read(alice, body.order.order_id)).to.include({ settling_quantity: 3 })
  })

  it('when the position has grown beyond the signed quantity, the rest of it stays and the answer states it', async () => {
    await open('3')
    await open('2')
    await place(bob, { side: 'LONG', price: '100', quantity: '10' })
    const { body } = await close(alice, closing(alice, { quantity: '3' }))
    expect(body).to.include({ position_quantity: 5, closing_quantity: 3, staying_quantity: 2 })
    await auction()
    const unit = (await sizeOf(bob)) / -2
    expect(await sizeOf(alice)).to.equal(2 * unit)
  })

  it('when two closes of the whole position meet one auction, together they close it once', async () => {
    await open('3')
    await place(bob, { side: 'LONG', price: '100', quantity: '10' })
    for (let count = 0; count < 2; count++)
      expect((await close(alice, closing(alice, { quantity: '3' }))).status).to.equal(200)
    await auction()
    expect(await sizeOf(alice)).to.equal(0)
  })

  it('when a close is repeated, it answers with the same order and closes nothing twice', async () => {
    await open('3')
    const body = closing(alice, { quantity: '3' })
    const first = await close(alice, body)
    const again = await close(alice, body)
    expect(again.body.is_duplicate).to.equal(true)
    expect(again.body.order.order_id).to.equal(first.body.order.order_id)
    await place(bob, { side: 'LONG', price: '100', quantity: '10' })
    await auction()
    const settled = await close(alice, body)
    expect(settled.body).to.include({ is_duplicate: true, position_quantity: 0, closing_quantity: 0 })
  })

  it('when order_type and reduce_only are left out, the signed order is a reduce-only market order', async () => {
    await open('1')
    const { order_type: _, reduce_only: __, ...body } = closing(alice)
    const { status, body: answer } = await close(alice, body)
    expect(status, JSON.stringify(answer)).to.equal(200)
    expect(answer.order).to.include({ order_type: 'MARKET', reduce_only: true })
  })

  it('when a quantity is below the minimum order size, it is accepted only if it closes the whole position', async () => {
    await open('1')
    const small = { market_id: 1, quantity: '0.001' }
    const { status, body } = await close(alice, closing(alice, small as OrderTerms))
    expect([status, body.details.code]).to.deep.equal([400, 'MIN_ORDER_SIZE'])
    expect(body.details).to.include.keys('field', 'received', 'expected', 'nearest_valid')
  })

  it('when a body is not that of a close, the answer names the field, the value and what would be valid', async () => {
    await open('1')
    const valid = closing(alice)
    for (const [change, code, field] of [
      [{ order_type: 'LIMIT' }, 'CLOSE_NOT_MARKET', 'order_type'],
      [{ order_type: 'STOP_LOSS_MARKET' }, 'CLOSE_NOT_MARKET', 'order_type'],
      [{ reduce_only: false }, 'CLOSE_NOT_REDUCE_ONLY', 'reduce_only'],
      [{ quantity: '1000000000' }, 'MAX_ORDER_SIZE', 'quantity'],
    ] as const) {
      const { quantity_e18_raw: _, ...rest } = valid
      const body = 'quantity' in change ? { ...rest, ...change } : { ...valid, ...change }
      const answer = await close(alice, body)
      expect(codeOf(answer), JSON.stringify(answer.body)).to.deep.equal([400, code])
      expect(answer.body.details).to.include({ field })
      expect(answer.body.details).to.include.keys('received', 'expected', 'nearest_valid')
    }
    for (const field of ['price', 'trigger_price', 'time_in_force', 'post_only'])
      expect(codeOf(await close(alice, { ...valid, [field]: 1 }))).to.deep.equal([400, 'UNKNOWN_FIELD'])
  })

  it('when there is no position, or one on the other side, it is 400 REDUCE_ONLY_NO_POSITION', async () => {
    expect(codeOf(await close(alice, closing(alice)))).to.deep.equal([400, 'REDUCE_ONLY_NO_POSITION'])
    await open('1')
    expect(codeOf(await close(bob, closing(bob)))).to.deep.equal([400, 'REDUCE_ONLY_NO_POSITION'])
  })

  it('when the signature is one of an order that is not reduce-only, the close is rejected', async () => {
    await open('1')
    const plain = signedBody(alice, { ...CLOSE, reduceOnly: false }).body as Record<string, unknown>
    const { price: _, ...body } = plain
    const answer = await close(alice, { ...body, reduce_only: true })
    expect(codeOf(answer)).to.deep.equal([400, 'SIGNATURE_MISMATCH'])
  })
})
