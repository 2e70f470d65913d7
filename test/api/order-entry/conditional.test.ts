import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { ORDER_TYPES } from '../../../domain/orders/order.ts'
import { binary, e18 } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { expectConsistentAccounting } from '../support/accounting.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

const CONDITIONAL = ORDER_TYPES.filter((type) => type !== 'MARKET' && type !== 'LIMIT')

describe('placing conditional orders', () => {
  let exchange: ExchangeFixture
  let alice: User
  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
  })
  after(async () => {
    await expectConsistentAccounting(exchange.db)
    await exchange.stop()
  })

  for (const type of CONDITIONAL) {
    for (const side of ['LONG', 'SHORT'] as const) {
      it(`when a ${type} ${side} is placed, it waits with its margin reserved`, async () => {
        const reduceOnly =
          !type.startsWith('STOP_L') && !type.startsWith('STOP_M') ? true : type.startsWith('STOP_LOSS')
        const price = type.endsWith('LIMIT') ? { price: '110' } : {}
        const { status, body } = await exchange.place(alice, {
          type,
          side,
          trigger: '110',
          reduceOnly,
          ...price,
        })
        expect(status, JSON.stringify(body)).to.equal(200)
        expect(body.order).to.include({
          status: 'PENDING_TRIGGER',
          order_type: type,
          trigger_price: 110,
          reduce_only: reduceOnly,
        })
        // A market stop is reserved at the band's edge around its trigger, 110 x 1.05.
        const at = type === 'STOP_MARKET' ? 115.5 : 110
        // A limit sell may fill above its limit, so its fee allowance is computed at that edge x 1.05, rounded up to a tick.
        const feeAt = side === 'LONG' ? at : type === 'STOP_LIMIT' ? 121.3 : 115.5
        const allowance = feeAt * 0.0005
        const margined = reduceOnly ? 0 : at + allowance
        expect(body.order.reserved_margin).to.be.closeTo(margined, 1e-9)
      })
    }
  }

  it('when a stop of a binary market is placed, it reserves the maximum loss of its side', async () => {
    const { body } = await exchange.place(alice, {
      market: binary,
      type: 'STOP_LIMIT',
      side: 'SHORT',
      trigger: '0.4',
      price: '0.4',
      quantity: '10',
    })
    expect(body.order, JSON.stringify(body)).to.include({ status: 'PENDING_TRIGGER' })
    expect(body.order.reserved_margin).to.be.closeTo(10 * (0.6 + 0.25 * 0.02), 1e-9)
  })

  it('when a waiting order is repeated, it is a duplicate; when it is cancelled, it ends', async () => {
    const first = await exchange.place(alice, { type: 'STOP_MARKET', trigger: '120', salt: 42n })
    const again = await exchange.place(alice, { type: 'STOP_MARKET', trigger: '120', salt: 42n })
    expect(again.body).to.include({ is_duplicate: true })
    expect(again.body.order).to.deep.equal(first.body.order)
    const cancelled = await exchange.cancel(alice, first.body.order.order_hash)
    expect(cancelled.body.order).to.include({
      status: 'CANCELLED',
      status_reason: 'USER_CANCELLED',
      reserved_margin: 0,
    })
  })

  it('when waiting orders reduce a position, they count against it, so that it is not closed twice', async () => {
    const bob = await createUser(exchange.db, 'bob', '1')
    const matched = {
      matched_entry_notional: e18('100'),
      matched_folded_margin: e18('100'),
      matched_leverage: 1,
    }
    await withMirror(exchange.db)
      .insertInto('positions')
      .values({ user_id: bob.userId, market_id: 1, matched_size: 1000, ...matched })
      .execute()
    const stop = await exchange.place(bob, { type: 'STOP_MARKET', side: 'SHORT', trigger: '90' })
    expect(stop.body.order, JSON.stringify(stop.body)).to.include({
      status: 'PENDING_TRIGGER',
      reserved_margin: 0,
    })
    expect((await exchange.place(bob, { side: 'SHORT' })).body.details.code).to.equal('INSUFFICIENT_MARGIN')
  })
})
