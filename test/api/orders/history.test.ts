import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { JournalRow, OrderPlaced } from '../../../domain/journal/journal-row.ts'
import { e18 } from '../../support/markets.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'
import {
  append,
  clearedRow,
  confirmedRow,
  settledRow,
  submittedRow,
  type Trade,
} from '../support/trade-rows.ts'

describe('the history of orders and fills', () => {
  let exchange: ExchangeFixture
  let alice: User
  let bob: User
  const ids: Record<string, string> = {}
  const hashes: Record<string, string> = {}
  let trades: Trade[] = []

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
    const allTerms = [
      ['buy', alice, { price: '99', quantity: '2' }],
      ['sell', bob, { side: 'SHORT', price: '101', quantity: '1' }],
      ['other', bob, { side: 'SHORT', price: '102', quantity: '3' }],
      ['gone', alice, { price: '98', quantity: '1' }],
    ] as const
    for (const [name, user, terms] of allTerms) {
      const { body } = await exchange.place(user, terms)
      ids[name] = body.order.order_id
      hashes[name] = body.order.order_hash
    }
    await exchange.cancel(alice, hashes.gone ?? '', { reason: 'enough' })
    const leg = (name: string, user: User, status: 'OPEN' | 'FILLED') => ({
      orderId: ids[name] ?? '',
      user,
      status,
    })
    trades = [
      {
        ...{ batch: 1, price: 995, steps: 1_000 },
        ...{ buy: leg('buy', alice, 'OPEN'), sell: leg('sell', bob, 'FILLED') },
      },
      {
        ...{ batch: 2, price: 1_000, steps: 500 },
        ...{ buy: leg('buy', alice, 'OPEN'), sell: leg('other', bob, 'OPEN') },
      },
      {
        ...{ batch: 3, price: 1_001, steps: 100 },
        ...{ buy: leg('buy', alice, 'OPEN'), sell: leg('other', bob, 'OPEN') },
      },
    ]
    const [first, second, third] = trades as [Trade, Trade, Trade]
    await append(
      exchange,
      ...[clearedRow(first), submittedRow(first), settledRow(first), confirmedRow(first)],
      ...[clearedRow(second), submittedRow(second)],
      clearedRow(third),
      stopRow(),
      triggeredRow(),
      endedRow(),
    )
    await exchange.project()
  })
  after(() => exchange.stop())

  /** Event ids by the sequence of their journal row. */
  const STOP = '1-14'
  const stopRow = (): OrderPlaced => ({
    ...{
      kind: 'order_placed',
      order_id: STOP,
      user_id: alice.userId,
      maker: alice.address,
      signer: alice.address,
    },
    ...{
      hash: `0x${'5a'.repeat(32)}`,
      salt: 900,
      side: 'SHORT',
      type: 'STOP_LOSS_MARKET',
      price: 0,
      quantity: 500,
    },
    ...{
      trigger: 950,
      leverage: 1,
      reduce_only: true,
      expiration: 0,
      alive_until: 0,
      status: 'PENDING_TRIGGER',
    },
    ...{ accepted_at: 9_000, openable: 0, reserved: '0', reserved_price: 0 },
  })
  const triggeredRow = (): JournalRow => ({
    ...{ kind: 'order_triggered', order_id: STOP, user_id: alice.userId, openable: 0, reserved_price: 0 },
    ...{
      reserved_delta: '0',
      at: 9_100,
      mark_price: e18('94.9').toString(),
      oracle_price: e18('95').toString(),
    },
    ...{ oracle_at: 9_050, batch_id: 4 },
  })
  const endedRow = (): JournalRow => ({
    ...{ kind: 'order_ended', order_id: STOP, user_id: alice.userId, status: 'CANCELLED' },
    ...{ reason: 'REDUCE_ONLY_NO_POSITION', note: null, reserved_delta: '0', at: 9_101 },
  })
  const kinds = (body: { events: { kind: string }[] }) => body.events.map(({ kind }) => kind)

  describe('events of an order', () => {
    it('when an order has ended, its events are listed newest first with their details', async () => {
      const { status, body } = await exchange.get(alice, `/v0/orders/${ids.gone}/events`)
      expect(status, JSON.stringify(body)).to.equal(200)
      expect(kinds(body)).to.deep.equal(['CANCELLED', 'CREATED'])
      const [cancelled, created] = body.events
      expect(cancelled).to.include({
        order_id: ids.gone,
        order_hash: hashes.gone,
        market_id: 1,
        symbol: 'BTC-PERP',
      })
      expect(cancelled.details).to.include({
        status: null,
        status_reason: 'USER_CANCELLED',
        cancel_reason: 'enough',
      })
      expect(created.details).to.include({ status: 'OPEN', status_reason: null, fill_id: null, price: null })
      expect(Number(cancelled.shard_seq)).to.be.greaterThan(Number(created.shard_seq))
    })

    it('when an order has filled, the event has price, quantity, fee, batch and transaction', async () => {
      const { body } = await exchange.get(bob, `/v0/orders/${ids.sell}/events`)
      expect(kinds(body)).to.deep.equal(['FILLED', 'CREATED'])
      expect(body.events[0].details.status_reason).to.equal('FILLED')
      expect(body.events[0].details).to.deep.include({
        ...{ batch_id: 1, part: 1, action_id: 1, tx_hash: '0xabc1', price: 99.5, quantity: 1 },
        ...{ quantity_e18_raw: e18('1').toString(), fee: 0.04975, fee_e18_raw: e18('0.04975').toString() },
        ...{ trigger: null },
      })
    })

    it('when an order was triggered, its events and the order contain the trigger', async () => {
      const evidence = {
        ...{ at: '1970-01-01T00:00:09.100Z', mark_price: 94.9, mark_price_e18_raw: e18('94.9').toString() },
        ...{ oracle_price: 95, oracle_price_e18_raw: e18('95').toString() },
        ...{ oracle_price_at: '1970-01-01T00:00:09.050Z', batch_id: 4 },
      }
      const { body: order } = await exchange.get(alice, `/v0/orders/${STOP}`)
      expect(order).to.deep.include({ trigger: evidence, trigger_price: 95, status: 'CANCELLED' })
      const { body } = await exchange.get(alice, `/v0/orders/${STOP}/events`)
      expect(kinds(body)).to.deep.equal(['CANCELLED', 'CREATED'])
      expect(body.events[0].details.trigger).to.deep.equal(evidence)
      expect(body.events[1].details.trigger).to.equal(null)
      const { body: plain } = await exchange.get(alice, `/v0/orders/${ids.buy}`)
      expect(plain.trigger).to.equal(null)
    })

    it('when the events are read in pages, the pages contain every event once', async () => {
      const path = `/v0/orders/${ids.gone}/events`
      const all = (await exchange.get(alice, path)).body
      const first = (await exchange.get(alice, `${path}?limit=1`)).body
      const second = (await exchange.get(alice, `${path}?limit=1&cursor=${first.next_cursor}`)).body
      expect([...first.events, ...second.events]).to.deep.equal(all.events)
      expect(second.next_cursor).to.equal(null)
    })
  })

  describe('events of a user', () => {
    it('when the events of a user are listed, they cover all orders, newest first, filtered and in pages', async () => {
      const path = `/v0/users/${alice.userId}/order-events`
      const { body } = await exchange.get(alice, path)
      expect(kinds(body).sort()).to.deep.equal(
        ['CANCELLED', 'CANCELLED', 'CREATED', 'CREATED', 'CREATED', 'PARTIALLY_FILLED'].sort(),
      )
      // The journal decides the order, not the times: the chain and the api have different clocks.
      const places = body.events.map(({ shard_seq }: { shard_seq: string }) => Number(shard_seq))
      expect(places).to.deep.equal([...places].sort((a, b) => b - a))

      const paged: unknown[] = []
      let cursor = ''
      do {
        const page = (await exchange.get(alice, `${path}?limit=2${cursor}`)).body
        paged.push(...page.events)
        cursor = page.next_cursor === null ? '' : `&cursor=${page.next_cursor}`
      } while (cursor !== '')
      expect(paged).to.deep.equal(body.events)

      const created = (await exchange.get(alice, `${path}?kind=CREATED&market_id=1`)).body
      expect(kinds(created)).to.deep.equal(['CREATED', 'CREATED', 'CREATED'])
      expect((await exchange.get(alice, `${path}?market_id=2`)).body.events).to.deep.equal([])
      expect((await exchange.get(alice, `${path}?market_id=9007199254740991`)).body.events).to.deep.equal([])
    })

    it('when a range of times is asked for, the events of those times come by time, in pages', async () => {
      const path = `/v0/users/${alice.userId}/order-events`
      type Event = { event_id: string; created_at: string }
      const events: Event[] = (await exchange.get(alice, path)).body.events
      const times = [...new Set(events.map(({ created_at }) => created_at))].sort()
      for (const from of times) {
        for (const to of times) {
          const range = `from=${from}&to=${to}`
          const expected = events
            .filter(({ created_at: at }) => at >= from && at < to)
            .map((event) => event.event_id)
          const found: Event[] = []
          let cursor = ''
          do {
            const { status, body } = await exchange.get(alice, `${path}?${range}&limit=1${cursor}`)
            expect(status, JSON.stringify(body)).to.equal(200)
            found.push(...body.events)
            cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
          } while (cursor !== '')
          expect(found.map((event) => event.event_id)).to.have.members(expected)
          expect(found).to.have.length(expected.length)
          const order = found.map(({ created_at }) => created_at)
          expect(order).to.deep.equal([...order].sort().reverse())
        }
      }
      const created = (await exchange.get(alice, `${path}?from=${times[0]}&kind=CREATED&market_id=1`)).body
      expect(kinds(created)).to.deep.equal(['CREATED', 'CREATED', 'CREATED'])
      expect((await exchange.get(alice, `${path}?from=${times[0]}&market_id=2`)).body.events).to.deep.equal(
        [],
      )
      const byArrival = (await exchange.get(alice, `${path}?limit=1`)).body.next_cursor
      const { status } = await exchange.get(alice, `${path}?from=${times[0]}&cursor=${byArrival}`)
      expect(status).to.equal(400)
    })

    it('when events or fills of one order are asked for by time, those of other times are left out', async () => {
      const events = (await exchange.get(alice, `/v0/orders/${ids.gone}/events`)).body.events
      const [last] = events
      const earlier = (await exchange.get(alice, `/v0/orders/${ids.gone}/events?to=${last.created_at}`)).body
      expect(earlier.events).to.deep.equal(
        events.filter(({ created_at }: { created_at: string }) => created_at < last.created_at),
      )
      const fills = (await exchange.get(alice, `/v0/orders/${ids.buy}/fills`)).body.fills
      const from = fills[0].created_at
      const later = (await exchange.get(alice, `/v0/orders/${ids.buy}/fills?from=${from}`)).body
      expect(later.fills).to.deep.equal(
        fills.filter(({ created_at }: { created_at: string }) => created_at >= from),
      )
      expect(later.fills.length).to.be.lessThan(fills.length)
    })

    for (const query of [
      'cursor=nonsense',
      `cursor=${Buffer.from('5:m1-x').toString('base64url')}`,
      'kind=DONE',
    ]) {
      it(`when the query is ?${query}, it is rejected`, async () => {
        const { status, body } = await exchange.get(alice, `/v0/users/${alice.userId}/order-events?${query}`)
        expect([status, body.details.field]).to.deep.equal([400, query.split('=')[0]])
      })
    }
  })

  describe('the settlement stages of fills', () => {
    it('when fills are settling, it returns their stage, transaction, batch and times, and what is pending', async () => {
      const { status, body } = await exchange.get(alice, `/v0/orders/${ids.buy}/fill-processing-status`)
      expect(status, JSON.stringify(body)).to.equal(200)
      expect(body).to.deep.include({
        ...{ order_id: ids.buy, status: 'OPEN', settlement_pending: true, confirmation_pending: true },
        ...{ quantity: 2, filled_quantity: 1, settling_quantity: 0.6 },
        stages: { MATCHED: 1, SUBMITTED: 1, MINED: 0, CONFIRMED: 1, RETRYING: 0, FAILED: 0 },
      })
      const [matched, submitted, confirmed] = body.fills
      expect(matched).to.include({ stage: 'MATCHED', batch_id: 3, part: 1, action_id: null, tx_hash: null })
      expect(matched).to.include({ submitted_at: null, mined_at: null, confirmed_at: null, failed_at: null })
      expect(submitted).to.include({ stage: 'SUBMITTED', action_id: 2, tx_hash: '0xabc2', mined_at: null })
      expect(confirmed).to.include({
        ...{ stage: 'CONFIRMED', action_id: 1, tx_hash: '0xabc1', block_number: 7 },
        ...{ matched_at: '1970-01-01T00:00:02.000Z', submitted_at: '1970-01-01T00:00:02.500Z' },
        ...{ mined_at: '1970-01-01T00:00:03.000Z', confirmed_at: '1970-01-01T00:00:03.500Z' },
      })
    })

    it('when all fills are confirmed, or there are none, nothing is pending', async () => {
      const done = (await exchange.get(bob, `/v0/orders/${ids.sell}/fill-processing-status`)).body
      expect(done).to.include({ settlement_pending: false, confirmation_pending: false, status: 'FILLED' })
      const none = (await exchange.get(alice, `/v0/orders/${ids.gone}/fill-processing-status`)).body
      expect(none).to.deep.include({ settlement_pending: false, fills: [], next_cursor: null })
    })

    it('when a block is rolled back, a part retried or failed, it returns the new stages', async () => {
      const second = trades[1] as Trade
      const path = `/v0/orders/${ids.buy}/fill-processing-status`
      const stageOf = async () => (await exchange.get(alice, path)).body.fills[1]
      await append(exchange, settledRow(second))
      await exchange.project()
      expect(await stageOf()).to.include({ stage: 'MINED', block_number: 7 })
      await append(exchange, settledRow(second, true))
      await exchange.project()
      expect(await stageOf()).to.include({
        stage: 'RETRYING',
        block_number: null,
        mined_at: null,
        tx_hash: '0xabc2',
      })
      const { fills } = clearedRow(second)
      await append(exchange, {
        ...{
          kind: 'batch_voided',
          batch_id: 2,
          from_part: 1,
          why: `MarginInsufficient(${bob.address}, 5, -3)`,
          at: 9_999,
          reopened: [],
        },
        fills,
      })
      await exchange.project()
      expect(await stageOf()).to.include({
        stage: 'FAILED',
        // Of another account's order: its arguments are not for this owner.
        failure: 'MarginInsufficient',
        failed_at: '1970-01-01T00:00:09.999Z',
      })
    })
  })

  describe('fills of a market', () => {
    it('when they are listed without a credential, they are newest first and do not identify owners', async () => {
      const { status, body } = await exchange.get(null, '/v0/fills/by-market/1')
      expect(status, JSON.stringify(body)).to.equal(200)
      expect(body.fills.map(({ batch_id }: { batch_id: number }) => batch_id)).to.deep.equal([
        3, 3, 2, 2, 1, 1,
      ])
      expect(body.fills.at(-1)).to.deep.equal({
        ...{ fill_id: '1-1-1-0', market_id: 1, symbol: 'BTC-PERP', batch_id: 1, part: 1, side: 'LONG' },
        forced: false,
        ...{ status: 'CONFIRMED', price: 99.5, price_e18_raw: e18('99.5').toString() },
        ...{ quantity: 1, quantity_e18_raw: e18('1').toString() },
        ...{ taker_quantity: 0, taker_quantity_e18_raw: '0', tx_hash: '0xabc1', block_number: 7 },
        ...{ created_at: '1970-01-01T00:00:02.000Z', updated_at: '1970-01-01T00:00:03.500Z' },
      })
      const text = JSON.stringify(body)
      for (const secret of [
        ...Object.values(ids),
        ...Object.values(hashes),
        alice.address,
        bob.address,
        'user_id',
      ]) {
        expect(text).to.not.include(JSON.stringify(secret))
      }
    })

    it('when they are listed in pages, the cursors do not identify owners', async () => {
      const all = (await exchange.get(null, '/v0/fills/by-market/1')).body.fills
      const paged: unknown[] = []
      let cursor: string | null = null
      do {
        const at: string = cursor === null ? '' : `&cursor=${cursor}`
        const { body } = await exchange.get(null, `/v0/fills/by-market/1?limit=1${at}`)
        paged.push(...body.fills)
        cursor = body.next_cursor
        if (cursor !== null) {
          expect(Buffer.from(cursor, 'base64url').toString()).to.match(/^market-fills:\d+:\d+-\d+$/)
        }
      } while (cursor !== null)
      expect(paged).to.deep.equal(all)
      const sells = (await exchange.get(null, '/v0/fills/by-market/1?side=SHORT')).body.fills
      expect(sells).to.have.length(3)
    })

    it('when the market does not exist or the cursor belongs to another list, it is rejected', async () => {
      const unknown = await exchange.get(null, '/v0/fills/by-market/99')
      expect([unknown.status, unknown.body.details.code]).to.deep.equal([404, 'MARKET_NOT_FOUND'])
      const cursor = Buffer.from('5:1-1-1-7').toString('base64url')
      const { body } = await exchange.get(null, `/v0/fills/by-market/1?cursor=${cursor}`)
      expect(body.details).to.include({ code: 'INVALID_CURSOR', field: 'cursor' })
    })
  })

  it("when the order is another user's, unknown, or the credential is missing, the read is rejected", async () => {
    const paths = [
      `/v0/orders/${ids.buy}/events`,
      `/v0/orders/${ids.buy}/fill-processing-status`,
      `/v0/users/${alice.userId}/order-events`,
    ]
    for (const path of paths) {
      const others = await exchange.get(bob, path)
      expect([others.status, others.body.details.code], path).to.deep.equal([403, 'NOT_YOURS'])
      expect((await exchange.get(null, path)).body.details.code, path).to.equal('CREDENTIAL_MISSING')
    }
    for (const path of ['/v0/orders/1-999/events', '/v0/orders/1-999/fill-processing-status']) {
      const { status, body } = await exchange.get(alice, path)
      expect([status, body.details.code], path).to.deep.equal([404, 'ORDER_NOT_FOUND'])
    }
  })
})
