import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { BatchCleared } from '../../../domain/journal/batch-rows.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { e18 } from '../../support/markets.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'
import { append, clearedRow, settledRow, submittedRow, type Trade } from '../support/trade-rows.ts'

describe('GET /v0/auctions', () => {
  let exchange: ExchangeFixture
  let alice: User
  let bob: User
  const trades: Trade[] = []

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
    for (const batch of [1, 2, 3]) {
      const buy = await exchange.place(alice, { quantity: '1' })
      const sell = await exchange.place(bob, { side: 'SHORT', type: 'MARKET', quantity: '1' })
      trades.push({
        ...{ batch, price: 1000 + batch, steps: 100 * batch },
        buy: { orderId: buy.body.order.order_id, user: alice, status: 'OPEN' },
        sell: { orderId: sell.body.order.order_id, user: bob, status: 'OPEN' },
      })
    }
    const [settled, voided, old] = trades as [Trade, Trade, Trade]
    await append(exchange, protectedRow(settled, 985), withVersion(clearedRow(settled)))
    await append(exchange, submittedRow(settled), settledRow(settled))
    await append(exchange, protectedRow(voided, 990), withVersion(clearedRow(voided)), voidedRow(voided))
    await append(exchange, clearedRow(old))
    await exchange.project()
  })
  after(() => exchange.stop())

  const withVersion = (row: BatchCleared): BatchCleared => ({
    ...row,
    rule_version: 2,
    rule: 'limit',
    supply: 900,
  })

  const protectedRow = ({ sell }: Trade, price: number): JournalRow => ({
    kind: 'orders_protected',
    ...{ as_of: 1, rule_version: 2, oracle_price: '1', oracle_at: 1, standing_seq: 1, price_protection: '1' },
    orders: [{ order_id: sell.orderId, user_id: bob.userId, best: null, level: null, reference: '1', price }],
  })

  const voidedRow = (trade: Trade): JournalRow => ({
    kind: 'batch_voided',
    ...{ batch_id: trade.batch, from_part: 1, why: 'reverted', at: 9_000 },
    fills: clearedRow(trade).fills,
    reopened: [trade.sell.orderId],
  })

  const list = (query: string) => exchange.get(null, `/v0/auctions?${query}`)

  it('when the auctions of a market are listed, they are newest first with what decided their price', async () => {
    const { status, body } = await list('market_id=1')
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body.next_cursor).to.equal(null)
    expect(body.auctions.map(({ batch_id }: { batch_id: number }) => batch_id)).to.deep.equal([3, 2, 1])
    expect(body.auctions.at(-1)).to.deep.equal({
      ...{
        market_id: 1,
        symbol: 'BTC-PERP',
        batch_id: 1,
        as_of: '1970-01-01T00:00:02.000Z',
        status: 'SETTLED',
      },
      ...{ price: 100.1, price_e18_raw: e18('100.1').toString(), rule: 'limit', rule_version: 2 },
      ...{ volume: 0.1, volume_e18_raw: e18('0.1').toString() },
      ...{ demand: 0.1, demand_e18_raw: e18('0.1').toString() },
      ...{ supply: 0.9, supply_e18_raw: e18('0.9').toString() },
      ...{ surplus: -0.8, surplus_e18_raw: e18('-0.8').toString(), rationed_side: 'SHORT' },
      ...{ fill_ratio: 0.1111111111111111, fill_ratio_e18_raw: '111111111111111111' },
      transactions: [{ part: 1, status: 'MINED', tx_hash: '0xabc1' }],
      price_band: {
        ...{ lowest: 95, lowest_e18_raw: e18('95').toString() },
        ...{ highest: 105, highest_e18_raw: e18('105').toString() },
      },
      ...{ oracle_price: 100, oracle_price_e18_raw: e18('100').toString() },
      oracle_price_at: '1970-01-01T00:00:01.000Z',
    })
  })

  it('when a batch was voided, or comes from before rule versions were recorded, its auction shows that', async () => {
    const { body } = await list('market_id=1')
    expect(body.auctions[1]).to.include({ batch_id: 2, status: 'VOIDED', rule_version: 2 })
    expect(body.auctions[0]).to.include({ batch_id: 3, status: 'SETTLING', rule_version: null })
  })

  it('when both sides fill whole, no side is rationed; the transactions show what was voided', async () => {
    const { body } = await list('market_id=1')
    expect(body.auctions[0]).to.include({ surplus: 0, rationed_side: null, fill_ratio: 1 })
    expect(body.auctions[1].transactions).to.deep.equal([{ part: 1, status: 'VOIDED', tx_hash: null }])
  })

  it('when a range of times is given, auctions and public fills are those of its batches', async () => {
    const at = (seconds: number) => `1970-01-01T00:00:0${seconds}.000Z`
    for (const [range, ids] of [
      [`from=${at(4)}`, [3, 2]],
      [`to=${at(4)}`, [1]],
      [`from=${at(3)}&to=${at(6)}`, [2]],
      [`from=${at(7)}`, []],
      [`to=${at(9)}`, [3, 2, 1]],
    ] as const) {
      const { auctions } = (await list(`market_id=1&${range}`)).body
      expect(
        auctions.map(({ batch_id }: { batch_id: number }) => batch_id),
        range,
      ).to.deep.equal(ids)
      const { fills } = (await exchange.get(null, `/v0/fills/by-market/1?side=LONG&${range}`)).body
      expect(
        fills.map(({ batch_id }: { batch_id: number }) => batch_id),
        range,
      ).to.deep.equal(ids)
    }
    expect((await list('market_id=1&from=yesterday')).body.details.field).to.equal('from')
  })

  it('when a page of auctions or fills by a cursor is confirmed or voided, the answer may be kept', async () => {
    const cachingOf = async (path: string) => {
      const { next_cursor } = (await exchange.get(null, `${path}limit=1`)).body
      const { headers } = await exchange.get(null, `${path}limit=1&cursor=${next_cursor}`)
      return [headers['cache-control'], typeof headers.etag]
    }
    for (const path of ['/v0/auctions?market_id=1&', '/v0/fills/by-market/1?side=LONG&'])
      expect(await cachingOf(path), path).to.deep.equal(['public, max-age=86400, immutable', 'string'])
    const newest = await list('market_id=1&limit=1')
    expect(newest.headers['cache-control']).to.equal('public, no-cache')
  })

  it('when they are listed in pages, every auction is on one page', async () => {
    const first = await list('market_id=1&limit=2')
    expect(first.body.auctions).to.have.length(2)
    const second = await list(`market_id=1&limit=2&cursor=${first.body.next_cursor}`)
    expect(second.body.auctions.map(({ batch_id }: { batch_id: number }) => batch_id)).to.deep.equal([1])
    expect(second.body.next_cursor).to.equal(null)
  })

  it('when a market has had no batch, its list is empty', async () => {
    expect((await list('market_id=2')).body).to.deep.equal({ auctions: [], next_cursor: null })
  })

  it('when the market is missing or unknown, or the cursor belongs to another list, it is rejected', async () => {
    expect((await list('')).status).to.equal(400)
    expect((await list('market_id=99')).body.details.code).to.equal('MARKET_NOT_FOUND')
    const fills = await exchange.get(null, '/v0/fills/by-market/1?limit=1')
    const { body } = await list(`market_id=1&cursor=${fills.body.next_cursor}`)
    expect(body.details).to.include({ code: 'INVALID_CURSOR', field: 'cursor' })
    const { next_cursor } = (await list('market_id=1&limit=1')).body
    expect((await list(`market_id=2&cursor=${next_cursor}`)).body.details.code).to.equal('INVALID_CURSOR')
  })

  it('when the batch of a market order has run, the order and its fills show its protection price', async () => {
    const orderOf = async (user: User, id: string) => (await exchange.get(user, `/v0/orders/${id}`)).body
    const fillOf = async (user: User, id: string) =>
      (await exchange.get(user, `/v0/orders/${id}/fills`)).body.fills[0]
    const [settled, voided, old] = trades as [Trade, Trade, Trade]
    const shown = { protection_price: 98.5, protection_price_e18_raw: e18('98.5').toString() }
    expect(await orderOf(bob, settled.sell.orderId)).to.include(shown)
    expect(await fillOf(bob, settled.sell.orderId)).to.include(shown)
    expect((await exchange.get(bob, `/v0/fills/by-user/${bob.userId}`)).body.fills.at(-1)).to.include(shown)
    const none = { protection_price: null, protection_price_e18_raw: null }
    expect(await orderOf(alice, settled.buy.orderId)).to.include(none)
    expect(await fillOf(alice, settled.buy.orderId)).to.include(none)
    // The batch was voided: the order waits for its next one, the failed fill keeps the price that it had.
    expect(await orderOf(bob, voided.sell.orderId)).to.include({ status: 'OPEN', ...none })
    expect(await fillOf(bob, voided.sell.orderId)).to.include({ status: 'FAILED', protection_price: 99 })
    expect(await fillOf(bob, old.sell.orderId)).to.include(none)
  })

  it('when fills of a market are public, they do not show protection prices, which would link fills of one order', async () => {
    const { body } = await exchange.get(null, '/v0/fills/by-market/1')
    expect(body.fills[0]).to.not.have.any.keys('protection_price', 'protection_price_e18_raw')
  })
})
