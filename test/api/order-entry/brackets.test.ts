import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { perpetual } from '../../support/markets.ts'
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
import { minePart, runAuction, updateMarks } from '../support/keeper-turns.ts'
import { newRequestId } from '../support/place-batch.ts'

let users = 0
let brackets = 0

const ENTRY = { side: 'LONG', price: '100', quantity: '3' } as const
const EXIT = { side: 'SHORT', reduceOnly: true, quantity: '3' } as const
/** The mark of 100 has reached its trigger already. */
const PROFIT = { ...EXIT, type: 'TAKE_PROFIT_LIMIT', trigger: '98', price: '99' } as const
const LOSS = { ...EXIT, type: 'STOP_LOSS_MARKET', trigger: '90', price: '0' } as const

describe('brackets', () => {
  let exchange: ExchangeFixture
  let alice: User
  let bob: User
  let bracket: number

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
    bracket = ++brackets
  })
  afterEach(async () => {
    for (const user of [alice, bob]) await exchange.send(user, 'POST', '/v0/orders/cancel/all', {})
  })

  const bodyOf = (user: User, terms: OrderTerms, id: number | undefined = bracket) => ({
    ...signedBody(user, terms).body,
    ...(id !== undefined && { bracket_id: id }),
  })
  const send = (user: User, terms: OrderTerms, id?: number): Promise<Answer> =>
    exchange.send(user, 'POST', '/v0/orders', bodyOf(user, terms, id))
  const place = async (user: User, terms: OrderTerms, id?: number) => {
    const { status, body } = await send(user, terms, id)
    expect(status, JSON.stringify(body)).to.equal(200)
    return body.order
  }
  const plain = async (user: User, terms: OrderTerms) => {
    const { status, body } = await exchange.send(user, 'POST', '/v0/orders', signedBody(user, terms).body)
    expect(status, JSON.stringify(body)).to.equal(200)
    return body.order
  }
  /** Entry, take profit and stop loss in one atomic batch. */
  const placeAll = async (entry: OrderTerms = ENTRY) => {
    const orders = [entry, PROFIT, LOSS].map((terms) => bodyOf(alice, terms))
    const { status, body } = await exchange.send(alice, 'POST', '/v0/orders/place/batch', {
      client_request_id: newRequestId(),
      mode: 'atomic',
      orders,
    })
    expect(status, JSON.stringify(body)).to.equal(200)
    return body.results.map(({ order }: { order: { order_id: string; order_hash: string } }) => order)
  }
  const auction = async (): Promise<number | null> => {
    await setOracle(exchange.db, perpetual, '100')
    return runAuction(exchange)
  }
  const marks = async (price = '100'): Promise<void> => {
    await setOracle(exchange.db, perpetual, price)
    await updateMarks(exchange)
  }
  const stateOf = async (user: User, { order_id }: { order_id: string }) => {
    await exchange.project()
    const { status, status_reason } = (await exchange.get(user, `/v0/orders/${order_id}`)).body
    return [status, status_reason]
  }
  const cancel = (user: User, { order_hash }: { order_hash: string }) =>
    exchange.send(user, 'POST', `/v0/orders/cancel/by-hash/${order_hash}`, {})

  it('when exits are placed with their entry, no mark triggers them before the entry has matched', async () => {
    const [entry, profit, loss] = await placeAll()
    expect([entry, profit, loss].map(({ bracket_id }) => bracket_id)).to.deep.equal([
      bracket,
      bracket,
      bracket,
    ])
    await marks()
    expect(await stateOf(alice, profit)).to.deep.equal(['PENDING_TRIGGER', null])
    await plain(bob, { side: 'SHORT', price: '100', quantity: '1' })
    expect(await auction()).to.not.equal(null)
    await marks()
    expect(await stateOf(alice, profit)).to.deep.equal(['OPEN', null])
    expect(await stateOf(alice, loss)).to.deep.equal(['PENDING_TRIGGER', null])
    // Further fills of the entry would have no exit.
    expect(await stateOf(alice, entry)).to.deep.equal(['CANCEL_PENDING_FINALIZE', 'EXIT_TRIGGERED'])
    await minePart(exchange)
    expect(await stateOf(alice, entry)).to.deep.equal(['CANCELLED', 'EXIT_TRIGGERED'])
  })

  it('when an entry ends without a fill, its exits end with it', async () => {
    const [entry, profit, loss] = await placeAll()
    expect((await cancel(alice, entry)).status).to.equal(200)
    for (const exit of [profit, loss])
      expect(await stateOf(alice, exit)).to.deep.equal(['CANCELLED', 'ENTRY_ENDED'])
  })

  it('when an exit has filled, the other one ends with the block that settles it', async () => {
    await plain(bob, { side: 'SHORT', price: '100', quantity: '5' })
    await plain(alice, { side: 'LONG', price: '100', quantity: '5' })
    expect(await auction()).to.not.equal(null)
    await minePart(exchange)
    const profit = await place(alice, PROFIT)
    const loss = await place(alice, LOSS)
    await marks()
    expect(await stateOf(alice, profit)).to.deep.equal(['OPEN', null])
    await plain(bob, { side: 'LONG', price: '100', quantity: '3' })
    expect(await auction()).to.not.equal(null)
    expect(await stateOf(alice, loss)).to.deep.equal(['PENDING_TRIGGER', null])
    await minePart(exchange)
    expect(await stateOf(alice, profit)).to.deep.equal(['FILLED', 'FILLED'])
    expect(await stateOf(alice, loss)).to.deep.equal(['CANCELLED', 'EXIT_FILLED'])
  })

  it('when an exit closes the whole position, the other one leaves with it', async () => {
    await plain(bob, { side: 'SHORT', price: '100', quantity: '3' })
    await plain(alice, { side: 'LONG', price: '100', quantity: '3' })
    expect(await auction()).to.not.equal(null)
    await minePart(exchange)
    const profit = await place(alice, PROFIT)
    const loss = await place(alice, LOSS)
    await marks()
    await plain(bob, { side: 'LONG', price: '100', quantity: '3' })
    expect(await auction()).to.not.equal(null)
    await minePart(exchange)
    expect(await stateOf(alice, profit)).to.deep.equal(['FILLED', 'FILLED'])
    expect(await stateOf(alice, loss)).to.deep.equal(['CANCELLED', 'POSITION_CLOSED'])
  })

  it('when the mark reaches the second exit, it takes the place of the first one in the book', async () => {
    await plain(bob, { side: 'SHORT', price: '100', quantity: '5' })
    await plain(alice, { side: 'LONG', price: '100', quantity: '5' })
    expect(await auction()).to.not.equal(null)
    await minePart(exchange)
    const profit = await place(alice, PROFIT)
    await marks()
    const loss = await place(alice, { ...LOSS, trigger: '101' })
    await marks()
    expect(await stateOf(alice, loss)).to.deep.equal(['OPEN', null])
    expect(await stateOf(alice, profit)).to.deep.equal(['CANCELLED', 'EXIT_TRIGGERED'])
  })

  it('when an entry is replaced, its exits follow the new one, and a repetition is the same replacement', async () => {
    const [entry, profit, loss] = await placeAll()
    const body = {
      cancel: { order_hash: entry.order_hash },
      order: signedBody(alice, { ...ENTRY, price: '99' }).body,
    }
    const first = await exchange.send(alice, 'POST', '/v0/orders/replace', body)
    expect(first.status, JSON.stringify(first.body)).to.equal(200)
    expect(first.body.order).to.include({ bracket_id: bracket })
    const again = await exchange.send(alice, 'POST', '/v0/orders/replace', body)
    expect(again.body).to.include({ is_duplicate: true })
    for (const exit of [profit, loss])
      expect(await stateOf(alice, exit)).to.deep.equal(['PENDING_TRIGGER', null])
    await cancel(alice, first.body.order)
    for (const exit of [profit, loss])
      expect(await stateOf(alice, exit)).to.deep.equal(['CANCELLED', 'ENTRY_ENDED'])
  })

  it('when one exit is cancelled, the entry and the other exit stay, and its role is free', async () => {
    const [entry, profit, loss] = await placeAll()
    await cancel(alice, profit)
    expect(await stateOf(alice, entry)).to.deep.equal(['OPEN', null])
    expect(await stateOf(alice, loss)).to.deep.equal(['PENDING_TRIGGER', null])
    expect((await send(alice, PROFIT)).status).to.equal(200)
  })

  it('when all orders are cancelled, each ends for its own reason or with its entry', async () => {
    const orders = await placeAll()
    const { body } = await exchange.send(alice, 'POST', '/v0/orders/cancel/all', {})
    expect(body.cancelled_count).to.be.within(1, 3)
    for (const order of orders) expect((await stateOf(alice, order))[0]).to.equal('CANCELLED')
  })

  it('when an order does not fit its bracket, the answer names the field, the value and the order in its way', async () => {
    const entry = await place(alice, ENTRY)
    const profit = await place(alice, PROFIT)
    for (const [terms, status, code, field] of [
      [ENTRY, 409, 'BRACKET_TAKEN', 'bracket_id'],
      [PROFIT, 409, 'BRACKET_TAKEN', 'bracket_id'],
      [{ ...LOSS, side: 'LONG', trigger: '110' }, 400, 'BRACKET_MISMATCH', 'side'],
      [{ ...ENTRY, reduceOnly: true, side: 'SHORT' }, 400, 'BRACKET_NOT_ALLOWED', 'bracket_id'],
    ] as const) {
      const answer = await send(alice, terms)
      expect(codeOf(answer), JSON.stringify(answer.body)).to.deep.equal([status, code])
      expect(answer.body.details).to.include({ field })
      expect(answer.body.details).to.include.keys('received', 'expected')
    }
    const taken = await send(alice, PROFIT)
    expect(taken.body.details).to.include({ order_id: profit.order_id, received: bracket })
    // The number is the account's own, per market.
    expect((await send(bob, ENTRY)).status).to.equal(200)
    await cancel(alice, entry)
    expect((await send(alice, ENTRY)).status).to.equal(200)
  })

  it('when the exits come before the entry, the entry is 409 BRACKET_TAKEN', async () => {
    await place(alice, PROFIT)
    expect(codeOf(await send(alice, ENTRY))).to.deep.equal([409, 'BRACKET_TAKEN'])
  })

  it('when bracket_id is not a whole number from 1 to 4294967295, it is 400 INVALID_FIELD', async () => {
    for (const id of [0, -1, 1.5, 2 ** 32, '7', null]) {
      const answer = await exchange.send(alice, 'POST', '/v0/orders', {
        ...signedBody(alice, ENTRY).body,
        bracket_id: id,
      })
      expect(codeOf(answer), String(id)).to.deep.equal([400, 'INVALID_FIELD'])
      expect(answer.body.details).to.include({ field: 'bracket_id' })
    }
  })

  it('when a signed order is repeated with another bracket_id, it is 409 ORDER_FLAGS_DIFFER', async () => {
    const body = bodyOf(alice, ENTRY)
    expect((await exchange.send(alice, 'POST', '/v0/orders', body)).status).to.equal(200)
    expect((await exchange.send(alice, 'POST', '/v0/orders', body)).body.is_duplicate).to.equal(true)
    const other = await exchange.send(alice, 'POST', '/v0/orders', { ...body, bracket_id: bracket + 1_000 })
    expect(codeOf(other)).to.deep.equal([409, 'ORDER_FLAGS_DIFFER'])
    expect(other.body.details).to.include({ field: 'bracket_id' })
  })

  it('when a replacement names another bracket, it is 400 REPLACE_MISMATCH and the old order stays', async () => {
    const entry = await place(alice, ENTRY)
    const order = { ...signedBody(alice, ENTRY).body, bracket_id: bracket + 1_000 }
    const answer = await exchange.send(alice, 'POST', '/v0/orders/replace', {
      cancel: { order_hash: entry.order_hash },
      order,
    })
    expect(codeOf(answer)).to.deep.equal([400, 'REPLACE_MISMATCH'])
    expect(answer.body.details).to.include({ field: 'bracket_id', nearest_valid: String(bracket) })
    expect(await stateOf(alice, entry)).to.deep.equal(['OPEN', null])
  })
})
