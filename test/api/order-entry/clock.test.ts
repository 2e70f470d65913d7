import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { readClock } from '../../../db/clock.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

const HOUR = 3_600_000
const systemTime = Date.now

describe("a step of the api's system clock", () => {
  let exchange: ExchangeFixture
  let alice: User
  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
  })
  after(() => exchange.stop())

  for (const [step, name] of [
    [HOUR, 'an hour ahead'],
    [-HOUR, 'an hour back'],
  ] as const) {
    describe(`when it goes ${name}`, () => {
      beforeEach(() => {
        Date.now = () => systemTime() + step
      })
      afterEach(() => {
        Date.now = systemTime
      })

      it('orders are accepted, and expire, by the time of the database', async () => {
        const now = await readClock(exchange.db)
        const terms = { price: '99', quantity: '0.01' }
        const { status, body } = await exchange.place(alice, {
          ...terms,
          expiration: Math.floor(now / 1000) + 60,
        })
        expect(status, JSON.stringify(body)).to.equal(200)
        expect(Date.parse(body.order.created_at)).to.be.closeTo(now, 5_000)
        const late = await exchange.place(alice, { ...terms, expiration: Math.floor(now / 1000) - 60 })
        expect([late.status, late.body.details.code]).to.deep.equal([400, 'ORDER_EXPIRED'])
      })

      it('a dead-man switch is due by the time of the database', async () => {
        const now = await readClock(exchange.db)
        const armed = await exchange.send(alice, 'POST', '/v0/orders/cancel/all-after', {
          timeout_seconds: 60,
        })
        expect(armed.status, JSON.stringify(armed.body)).to.equal(200)
        const { fire_at } = await exchange.db
          .selectFrom('cancel_switches')
          .select('fire_at')
          .executeTakeFirstOrThrow()
        expect(fire_at).to.be.closeTo(now + 60_000, 5_000)
      })
    })
  }
})
