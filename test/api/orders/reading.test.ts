import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { fillsOfUser } from '../../../api/fills/query.ts'
import { eventsOfUserByTime } from '../../../api/order-events/query.ts'
import { ordersOfUser } from '../../../api/orders/query.ts'
import { createExplainedDb } from '../../support/explained-db.ts'
import { e18, perpetual } from '../../support/markets.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'
import { append, clearedRow, settledRow, type Trade } from '../support/trade-rows.ts'

describe('reads', () => {
  let exchange: ExchangeFixture
  let alice: User
  let bob: User
  const placed: Record<string, { order_id: string; order_hash: string }> = {}

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
    const allTerms = [
      ['low', alice, { price: '99', quantity: '1' }],
      ['same', alice, { price: '99', quantity: '0.5' }],
      ['high', alice, { price: '99.5', quantity: '2' }],
      ['ask', bob, { side: 'SHORT', price: '101', quantity: '3' }],
      ['gone', alice, { price: '98', quantity: '1' }],
      ['market', bob, { side: 'SHORT', type: 'MARKET', quantity: '0.5' }],
    ] as const
    for (const [name, user, terms] of allTerms) {
      const { body } = await exchange.place(user, terms)
      placed[name] = body.order
    }
    await exchange.cancel(alice, placed.gone?.order_hash ?? '', { reason: 'enough' })
    // Half of alice's best buy against bob's market sell.
    const trade: Trade = {
      ...{ batch: 1, price: 995, steps: 500 },
      buy: { orderId: placed.high?.order_id ?? '', user: alice, status: 'OPEN' },
      sell: { orderId: placed.market?.order_id ?? '', user: bob, status: 'FILLED' },
    }
    await append(
      exchange,
      {
        kind: 'prices_updated',
        oracle_price: e18('100').toString(),
        oracle_at: 1_000,
        mark_price: e18('100.5').toString(),
        at: 1_000,
      },
      clearedRow(trade),
      settledRow(trade),
    )
    await exchange.project()
  })
  after(() => exchange.stop())

  /** The list from the time of one item, and up to it, for every item; in pages of one. */
  async function expectRange(user: User, path: string, list: string): Promise<void> {
    const read = async (query: string) => {
      const items = []
      for (let cursor = ''; ; ) {
        const { status, body } = await exchange.get(user, `${path}?limit=1&${query}${cursor}`)
        expect(status, JSON.stringify(body)).to.equal(200)
        items.push(...body[list])
        if (body.next_cursor === null) return items
        cursor = `&cursor=${body.next_cursor}`
      }
    }
    const all: { created_at: string }[] = (await exchange.get(user, path)).body[list]
    expect(all).not.to.deep.equal([])
    for (const { created_at: at } of all) {
      expect(await read(`from=${at}`)).to.deep.equal(all.filter(({ created_at }) => created_at >= at))
      expect(await read(`to=${at}`)).to.deep.equal(all.filter(({ created_at }) => created_at < at))
      expect(await read(`from=${at}&to=${at}`)).to.deep.equal([])
    }
  }

  describe('orders', () => {
    it('when an order is read by id or hash, it has every amount twice', async () => {
      const { order_id, order_hash } = placed.high as { order_id: string; order_hash: string }
      const byId = await exchange.get(alice, `/v0/orders/${order_id}`)
      expect(byId.status, JSON.stringify(byId.body)).to.equal(200)
      expect(byId.body).to.include({
        ...{
          order_id,
          order_hash,
          status: 'OPEN',
          quantity: 2,
          filled_quantity: 0.5,
          remaining_quantity: 1.5,
        },
        ...{ average_price: 99.5, average_price_e18_raw: e18('99.5').toString(), settling_quantity: 0 },
      })
      const byHash = await exchange.get(alice, `/v0/orders/by-hash/${order_hash}`)
      expect(byHash.body).to.deep.equal(byId.body)
    })

    it('when an order has ended, it has a status_reason', async () => {
      const { body } = await exchange.get(alice, `/v0/orders/${placed.gone?.order_id}`)
      expect(body).to.include({
        status: 'CANCELLED',
        status_reason: 'USER_CANCELLED',
        cancel_reason: 'enough',
      })
    })

    it('when orders are listed, they are newest first, filtered and in pages', async () => {
      const path = `/v0/orders/by-user/${alice.userId}`
      const all = (await exchange.get(alice, path)).body
      expect(all.orders).to.have.length(4)
      expect(all.next_cursor).to.equal(null)
      const times = all.orders.map(({ created_at }: { created_at: string }) => created_at)
      expect([...times].sort().reverse()).to.deep.equal(times)

      const ids = all.orders.map(({ order_id }: { order_id: string }) => order_id)
      const first = (await exchange.get(alice, `${path}?limit=3`)).body
      const second = (await exchange.get(alice, `${path}?limit=3&cursor=${first.next_cursor}`)).body
      const paged = [...first.orders, ...second.orders].map(({ order_id }: { order_id: string }) => order_id)
      expect(paged).to.deep.equal(ids)
      expect(second.next_cursor).to.equal(null)

      const counts: readonly [string, number][] = [
        ['status=OPEN', 3],
        ['status=CANCELLED', 1],
        ['side=SHORT', 0],
        ['market_id=1', 4],
        ['market_id=2', 0],
        ['status=OPEN&side=LONG&market_id=1', 3],
      ]
      for (const [query, count] of counts) {
        expect((await exchange.get(alice, `${path}?${query}`)).body.orders, query).to.have.length(count)
      }
    })

    it('when orders are listed with from and to, from is inclusive, to exclusive, and cursors stay within', async () => {
      await expectRange(alice, `/v0/orders/by-user/${alice.userId}`, 'orders')
    })

    it('when a cursor was not issued, it is rejected with INVALID_CURSOR', async () => {
      const { body } = await exchange.get(alice, `/v0/orders/by-user/${alice.userId}?cursor=nonsense`)
      expect(body.details).to.include({ code: 'INVALID_CURSOR', field: 'cursor', received: 'nonsense' })
    })

    for (const [query, field] of [
      ['status=DONE', 'status'],
      ['limit=0', 'limit'],
      ['limit=1001', 'limit'],
      ['market_id=one', 'market_id'],
      ['cursor=nonsense', 'cursor'],
      ['from=yesterday', 'from'],
      ['to=2026-13-01T00:00:00Z', 'to'],
      ['marketid=1', 'marketid'],
    ]) {
      it(`when the query is ?${query}, it is rejected`, async () => {
        const { status, body } = await exchange.get(alice, `/v0/orders/by-user/${alice.userId}?${query}`)
        expect([status, body.details.field], JSON.stringify(body)).to.deep.equal([400, field])
      })
    }
  })

  describe('fills', () => {
    it('when fills of an order or a user are listed, they have the fee of the own side', async () => {
      const ofOrder = (await exchange.get(bob, `/v0/orders/${placed.market?.order_id}/fills`)).body
      expect(ofOrder.fills).to.have.length(1)
      expect(ofOrder.fills[0]).to.include({
        ...{ order_id: placed.market?.order_id, market_id: 1, batch_id: 1, side: 'SHORT', status: 'MINED' },
        ...{
          price: 99.5,
          quantity: 0.5,
          taker_quantity: 0.5,
          fee: 0.024875,
          fee_e18_raw: e18('0.024875').toString(),
        },
        ...{ tx_hash: '0xabc1', block_number: 7, part: 1, action_id: 1 },
      })
      expect((await exchange.get(bob, `/v0/fills/by-user/${bob.userId}`)).body).to.deep.equal(ofOrder)
      const alices = (await exchange.get(alice, `/v0/fills/by-user/${alice.userId}?market_id=1&side=LONG`))
        .body
      expect(alices.fills[0]).to.include({ fee: 0, fee_e18_raw: '0', taker_quantity: 0 })
      await expectRange(alice, `/v0/fills/by-user/${alice.userId}`, 'fills')
      expect(
        (await exchange.get(alice, `/v0/fills/by-user/${alice.userId}?side=SHORT`)).body.fills,
      ).to.deep.equal([])
    })
  })

  describe('positions and balance', () => {
    it('when positions are listed, they are valued at mark and oracle price', async () => {
      const { body } = await exchange.get(bob, `/v0/positions/by-user/${bob.userId}`)
      expect(body.positions).to.have.length(1)
      expect(body.positions[0]).to.include({
        ...{ market_id: 1, side: 'SHORT', size: -0.5, size_e18_raw: e18('-0.5').toString(), pending_size: 0 },
        ...{ entry_price: 99.5, margin: 49.75, leverage: 1, oracle_price: 100, mark_price: 100.5 },
        // (99.5 - 100.5) x 0.5; equity 49.75 - 0.25 at the oracle price, notional 50.
        ...{ unrealized_pnl: -0.5, notional: 50, margin_ratio: 0.99, fees: 0.024875 },
      })
      const none = await exchange.get(bob, `/v0/positions/by-user/${bob.userId}?market_id=2`)
      expect(none.body.positions).to.deep.equal([])
    })

    it('when the balance is read, it has total, available and their components', async () => {
      const { body } = await exchange.get(alice, `/v0/balance/${alice.userId}/margin`)
      expect(body).to.include({ user_id: alice.userId, asset: 'USDM' })
      expect(body.balance.position_margin).to.equal(49.75)
      expect(body.balance.available).to.be.closeTo(body.balance.free - body.balance.reserved, 1e-9)
      expect(BigInt(body.balance.total_e18_raw)).to.equal(BigInt(body.balance.free_e18_raw) + e18('49.75'))
    })
  })

  describe('ownership', () => {
    it('when data belongs to another user, it answers 403; without a credential, 401', async () => {
      const mine = placed.high as { order_id: string; order_hash: string }
      const paths = [
        `/v0/orders/${mine.order_id}`,
        `/v0/orders/by-hash/${mine.order_hash}`,
        `/v0/orders/${mine.order_id}/fills`,
        `/v0/orders/by-user/${alice.userId}`,
        `/v0/fills/by-user/${alice.userId}`,
        `/v0/positions/by-user/${alice.userId}`,
        `/v0/balance/${alice.userId}/margin`,
      ]
      for (const path of paths) {
        expect((await exchange.get(alice, path)).status, path).to.equal(200)
        const others = await exchange.get(bob, path)
        expect([others.status, others.body.details.code], path).to.deep.equal([403, 'NOT_YOURS'])
        const nobody = await exchange.get(null, path)
        expect([nobody.status, nobody.body.details.code], path).to.deep.equal([401, 'CREDENTIAL_MISSING'])
      }
    })

    it('when an order or a user does not exist, it answers 404', async () => {
      for (const path of [
        '/v0/orders/1-999',
        `/v0/orders/by-hash/0x${'00'.repeat(32)}`,
        '/v0/orders/1-999/fills',
      ]) {
        const { status, body } = await exchange.get(alice, path)
        expect([status, body.details.code], path).to.deep.equal([404, 'ORDER_NOT_FOUND'])
      }
      const unknown = await exchange.get(null, `/v0/users/by-eoa/0x${'00'.repeat(20)}`)
      expect([unknown.status, unknown.body.details.code]).to.deep.equal([404, 'USER_NOT_FOUND'])
    })
  })

  describe('public data', () => {
    it('when markets are listed, they are an array, filtered and limited', async () => {
      const { body } = await exchange.get(null, '/v0/markets')
      expect(body.map(({ symbol }: { symbol: string }) => symbol)).to.deep.equal([
        'BTC-PERP',
        'ACME-VALUATION',
        'ELECTION-YES',
      ])
      expect(body[0]).to.include({
        ...{
          market_id: 1,
          type: 'perpetual',
          trading_enabled: true,
          mode: 'open',
          trader_address: perpetual.trader,
          chain_id: 6343,
        },
        ...{
          tick_size: 0.1,
          tick_size_e18_raw: e18('0.1').toString(),
          step_size_e18_raw: e18('0.001').toString(),
        },
        ...{
          min_order_size: 0.01,
          max_order_size: 10_000,
          min_order_price_e18_raw: e18('1').toString(),
          max_leverage: 20,
        },
        ...{
          mtb_long: 0.05,
          mtb_short: 0.05,
          maker_fee: 0,
          taker_fee: 0.0005,
          taker_fee_e18_raw: '500000000000000',
        },
        ...{ oracle_price: 100, mark_price: 100.5, last_price: 99.5, initial_margin_requirement: 0.045 },
      })
      expect((await exchange.get(null, '/v0/markets?type=binary_future')).body).to.have.length(1)
      expect((await exchange.get(null, '/v0/markets?limit=2')).body).to.have.length(2)
      expect((await exchange.get(null, '/v0/markets?type=spot')).status).to.equal(400)
      expect((await exchange.get(null, '/v0/markets/1')).body).to.deep.equal(body[0])
      expect((await exchange.get(null, '/v0/markets/99')).body.details.code).to.equal('MARKET_NOT_FOUND')
    })

    it('when the book is read by market or symbol, it is best first with exactly six fields per level', async () => {
      const { body } = await exchange.get(null, '/v0/orderbook/by-market/1')
      const levels = [
        {
          side: 'LONG',
          price: 99.5,
          price_e18_raw: e18('99.5').toString(),
          quantity: 1.5,
          quantity_e18_raw: e18('1.5').toString(),
          order_count: 1,
        },
        {
          side: 'LONG',
          price: 99,
          price_e18_raw: e18('99').toString(),
          quantity: 1.5,
          quantity_e18_raw: e18('1.5').toString(),
          order_count: 2,
        },
      ]
      expect(body.long_levels).to.deep.equal(levels)
      expect(body.short_levels.map(({ price }: { price: number }) => price)).to.deep.equal([101])
      const bySymbol = (await exchange.get(null, '/v0/orderbook?symbol=BTC-PERP')).body
      expect(bySymbol.bids).to.deep.equal(body.long_levels)
      expect(bySymbol.asks).to.deep.equal(body.short_levels)
      expect((await exchange.get(null, '/v0/orderbook/by-market/1?depth=1')).body.long_levels).to.have.length(
        1,
      )
      expect((await exchange.get(null, '/v0/orderbook?symbol=NONE')).status).to.equal(404)
      expect((await exchange.get(null, '/v0/orderbook')).body.details).to.include({
        code: 'MISSING_FIELD',
        field: 'symbol',
      })
    })

    it('when contracts, time, users and status are read, they are complete', async () => {
      expect((await exchange.get(null, '/v0/contracts/shared')).body).to.deep.equal({
        addressCollateralToken: `0x${'aa'.repeat(20)}`,
        addressMarginBank: `0x${'bb'.repeat(20)}`,
        addressAccountManager: `0x${'cc'.repeat(20)}`,
        addressForwarder: `0x${'dd'.repeat(20)}`,
        chain_id: 6343,
      })
      const time = (await exchange.get(null, '/v0/time')).body
      expect(Math.abs(time.unix_ms - Date.now())).to.be.lessThan(60_000)
      const user = await exchange.get(null, `/v0/users/by-eoa/${alice.wallet.address}`)
      expect(user.body).to.include({ user_id: alice.userId, address: alice.address })
      const { body } = await exchange.get(null, '/v0/status')
      expect(body.status).to.equal('ok')
      expect(body.markets[0]).to.include({
        market_id: 1,
        placements: true,
        oracle_fresh: true,
        read_model_lag: 0,
      })
    })
  })

  /** The last one, because it leaves its rows behind. */
  describe('ranges of long histories', () => {
    it('when an account has many orders and fills, a page of a range of times reads few database pages', async () => {
      const grow = async (
        table: 'orders' | 'fills' | 'order_changes',
        changed: Readonly<Record<string, string>>,
      ) => {
        const { rows } = await sql<{ name: string }>`
        select column_name as name from information_schema.columns
        where table_schema = 'read' and table_name = ${table} and is_generated = 'NEVER'
      `.execute(exchange.db)
        const names = rows.map(({ name }) => name)
        const values = names.map((name) => changed[name] ?? `t."${name}"`)
        await sql
          .raw(`
        insert into read.${table} (${names.map((name) => `"${name}"`).join()}) select ${values.join()}
        from generate_series(1, 20000) n, (select * from read.${table} where user_id = ${alice.userId} limit 1) t
      `)
          .execute(exchange.db)
      }
      await grow('orders', { order_id: `'9-' || n`, accepted_at: 'n' })
      const [event] = await exchange.db
        .selectFrom('read.order_changes')
        .select('order_id')
        .where('user_id', '=', alice.userId)
        .execute()
      expect(event).to.not.equal(undefined)
      await grow('order_changes', { shard: `'m9'`, seq: 'n', at: 'n', arrival: '1000000 + n' })
      await grow('fills', { fill_id: `'9-' || n`, matched_at: 'n' })
      await sql`analyze`.execute(exchange.db)
      const explained = createExplainedDb(exchange.url)
      const page = { from: 5_000, to: 9_000, limit: 20, cursor: null }
      const orders = await ordersOfUser(explained.db, alice.userId, page)
      const fills = await fillsOfUser(explained.db, alice.userId, page)
      const filter = { from: 5_000, to: 9_000, limit: 20, after: null }
      const events = await eventsOfUserByTime(explained.db, alice.userId, filter)
      const statements = explained.drain()
      await explained.db.destroy()
      expect([events[0]?.at, events.length]).to.deep.equal([8_999, 21])
      expect([orders[0]?.accepted_at, fills[0]?.matched_at]).to.deep.equal([8_999, 8_999])
      expect(statements).to.have.length(3)
      expect(statements.filter(({ pages }) => pages > 100)).to.deep.equal([])
    })
  })
})
