import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { FundingUpdatedRow } from '../../../domain/journal/action-rows.ts'
import type { MarketMode } from '../../../domain/market/market.ts'
import { UPDATE_INTERVAL } from '../../../domain/prices/funding-plan.ts'
import { addPremium, NO_PREMIUM } from '../../../domain/prices/premium.ts'
import type { Millis } from '../../../domain/units.ts'
import { e18, perpetual, rate } from '../../support/markets.ts'
import { storeAverages } from '../../support/rows/price-averages.ts'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'
import { append } from '../support/trade-rows.ts'

const HOUR = 3_600_000
const iso = (at: number): string => new Date(at).toISOString()

describe('GET /v0/markets/:market_id/funding-rates', () => {
  let exchange: ExchangeFixture

  /** A rate of 0.001 USDM per step of 0.1 USDM at a price of 100. */
  const updated = (action_id: number, rollback = false): FundingUpdatedRow => ({
    ...{ kind: 'funding_updated', rollback, action_id, as_of: action_id * HOUR },
    ...{ rate: e18('0.001').toString(), valid_until: (action_id + 1) * HOUR, funding_index: '-7' },
    ...{ oracle_price: e18('100').toString(), oracle_at: action_id * HOUR - 5 },
    ...{ block: action_id, tx_hash: `0x0${action_id}`, log_index: 0, at: action_id * HOUR },
  })

  before(async () => {
    exchange = await startExchange()
    await append(exchange, updated(1), updated(2), updated(3), updated(4), updated(4, true))
    await exchange.project()
  })
  after(() => exchange.stop())

  const list = (query = '', market = 1) =>
    exchange.get(null, `/v0/markets/${market}/funding-rates${query && `?${query}`}`)
  const idsOf = async (query: string) =>
    (await list(query)).body.funding_rates.map(({ action_id }: { action_id: number }) => action_id)

  it('when rates are listed, they are newest first, without an update whose block has left the chain', async () => {
    const { status, body } = await list()
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body.next_cursor).to.equal(null)
    expect(body.funding_rates.map(({ action_id }: { action_id: number }) => action_id)).to.deep.equal([
      3, 2, 1,
    ])
    expect(body.funding_rates.at(-1)).to.deep.equal({
      ...{ market_id: 1, symbol: 'BTC-PERP', action_id: 1, tx_hash: '0x01' },
      ...{ effective_at: iso(HOUR), valid_until: iso(2 * HOUR), oracle_price_at: iso(HOUR - 5) },
      ...{ funding_rate: 0.01, funding_rate_e18_raw: e18('0.01').toString() },
      ...{ rate_per_step: 0.001, rate_per_step_e18_raw: e18('0.001').toString() },
      ...{ funding_index: -7e-18, funding_index_e18_raw: '-7' },
      ...{ oracle_price: 100, oracle_price_e18_raw: e18('100').toString() },
    })
  })

  it('when a time range is given, it contains its start and not its end', async () => {
    expect(await idsOf(`from=${iso(2 * HOUR)}`)).to.deep.equal([3, 2])
    expect(await idsOf(`to=${iso(2 * HOUR)}`)).to.deep.equal([1])
    expect(await idsOf(`from=${iso(2 * HOUR)}&to=${iso(3 * HOUR)}`)).to.deep.equal([2])
    expect(await idsOf('from=1970-01-01T03:00:00Z')).to.deep.equal([3])
  })

  it('when they are listed in pages, every rate is on one page', async () => {
    const first = await list('limit=2')
    expect(first.body.funding_rates).to.have.length(2)
    expect(await idsOf(`limit=2&cursor=${first.body.next_cursor}`)).to.deep.equal([1])
    expect(await idsOf(`limit=2&cursor=${first.body.next_cursor}&from=${iso(2 * HOUR)}`)).to.deep.equal([])
  })

  it('when the market has no funding, the list is empty; an unknown market is rejected', async () => {
    expect((await list('', 2)).body).to.deep.equal({ funding_rates: [], next_cursor: null })
    expect((await list('', 99)).body.details.code).to.equal('MARKET_NOT_FOUND')
  })

  it('when a time or a cursor is invalid, it is rejected with the field', async () => {
    for (const from of ['yesterday', '2026-13-01T00:00:00Z', '2026-01-01', '1']) {
      const { status, body } = await list(`from=${from}`)
      expect(status, from).to.equal(400)
      expect(body.details).to.include({ code: 'INVALID_FIELD', field: 'from', received: from })
      expect(body.details.expected).to.include('2026-11-22T13:00:00.000Z')
    }
    const { next_cursor } = (await list('limit=1')).body
    for (const path of ['/v0/markets/2/funding-rates?', '/v0/auctions?market_id=1&']) {
      const { body } = await exchange.get(null, `${path}cursor=${next_cursor}`)
      expect(body.details, path).to.include({ code: 'INVALID_CURSOR' })
    }
  })

  describe('the funding of a market', () => {
    const fundingOf = async (market = 1) => (await exchange.get(null, `/v0/markets/${market}`)).body.funding

    it('when the market has no funding, it is null', async () => {
      expect(await fundingOf(2)).to.equal(null)
    })

    it('when no rate is valid, the rate in force is null, and the next update is due', async () => {
      const none = await fundingOf()
      expect(none).to.include({
        funding_rate: null,
        rate_per_step: null,
        effective_at: null,
        valid_until: null,
      })
      expect(none).to.include({ premium_average: 0, next_update_at: null, funding_cap: 0.01 })
    })

    it('when a rate runs, it is shown with the rate that the average premium would set next', async () => {
      const { db } = exchange
      const now = Date.now()
      const prices = {
        oracle_price: e18('100').toString(),
        mark_price: e18('100').toString(),
        oracle_at: now,
        at: now,
      }
      await append(exchange, { kind: 'prices_updated', ...prices })
      await exchange.project()
      await db
        .insertInto('funding_states')
        .values({
          ...{ market_id: perpetual.marketId, action_id: 1, as_of: now, funding_index: 0n },
          ...{ rate: e18('0.0005'), valid_from: now, valid_until: now + HOUR },
        })
        .execute()
      let premium = NO_PREMIUM
      for (let back = HOUR; back >= 0; back -= 5000) {
        premium = addPremium(premium, rate('0.008'), (now - back) as Millis)
      }
      const averages = { basis: { value: 0n, at: now as Millis }, premium }
      await db.transaction().execute((tx) => storeAverages(tx, perpetual.marketId, averages))
      expect(await fundingOf()).to.deep.equal({
        ...{ funding_rate: 0.005, funding_rate_e18_raw: e18('0.005').toString() },
        ...{ rate_per_step: 0.0005, rate_per_step_e18_raw: e18('0.0005').toString() },
        ...{ effective_at: iso(now), valid_until: iso(now + HOUR) },
        // An eighth of the premium. The slope from the rate before would allow two thirds of the cap in 15 minutes.
        ...{ predicted_rate: 0.001, predicted_rate_e18_raw: e18('0.001').toString() },
        ...{ premium_average: 0.008, premium_average_e18_raw: e18('0.008').toString() },
        next_update_at: iso(now + UPDATE_INTERVAL),
        ...{ impact_notional: 11_111.111111111111, impact_notional_e18_raw: '11111111111111111111111' },
        ...{ funding_cap: 0.01, funding_cap_e18_raw: e18('0.01').toString() },
      })
    })

    it('when the market is halted, settling or settled, no next update is shown', async () => {
      const setMode = (mode: MarketMode, settlingAt = 0) =>
        exchange.db
          .updateTable('markets')
          .set({ mode, settling_at: settlingAt })
          .where('market_id', '=', perpetual.marketId)
          .execute()
      for (const change of [() => setMode('halted'), () => setMode('open', 1), () => setMode('settled')]) {
        await change()
        const { predicted_rate, next_update_at } = await fundingOf()
        expect([predicted_rate, next_update_at]).to.deep.equal([null, null])
      }
      await setMode('cancel_only')
      expect((await fundingOf()).predicted_rate).to.equal(0.001)
      await setMode('open')
    })
  })
})
