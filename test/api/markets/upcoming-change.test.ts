import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { type ChainTerms, listedTerms, NO_CHANGES } from '../../../domain/market/changes.ts'
import { toStoredFees } from '../../../domain/market/fee-periods.ts'
import { listedParameters } from '../../../domain/market/parameters.ts'
import { toStoredTerms } from '../../../domain/market/stored-terms.ts'
import type { Millis } from '../../../domain/units.ts'
import { perpetual, rate } from '../../support/markets.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

const HOUR = 3_600_000
const iso = (at: number): string => new Date(at).toISOString()
const LISTED = listedParameters(perpetual, null)

describe('announced changes of a market', () => {
  let exchange: ExchangeFixture
  let alice: User
  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    await exchange.project()
  })
  after(() => exchange.stop())

  const set = (columns: { terms?: string | null; fee_periods?: string; settling_at?: number }) =>
    exchange.db.updateTable('markets').set(columns).where('market_id', '=', perpetual.marketId).execute()
  const announce = (pending: Partial<ChainTerms['pending']>) =>
    set({
      terms: JSON.stringify(
        toStoredTerms({ ...listedTerms(LISTED), pending: { ...NO_CHANGES, ...pending } }),
      ),
    })
  afterEach(() => set({ terms: null, fee_periods: '[]', settling_at: 0 }))
  const detail = async () => (await exchange.get(null, `/v0/markets/${perpetual.marketId}`)).body
  const place = async (more: object = {}) => {
    const { status, body } = await exchange.place(alice, { price: '50', quantity: '0.1', ...more })
    return [status, body.details?.code ?? null]
  }

  it('when nothing is announced, the detail shows no change, and the fees are the highest', async () => {
    const market = await detail()
    expect([market.upcoming_change, market.later_changes]).to.deep.equal([null, []])
    expect(market.fees).to.include({ taker: 0.0005, highest_taker: 0.0005, until: null, free_until: null })
  })

  it('when parameters are announced, the detail shows what changes and when, and from then on applies it', async () => {
    const next = { ...LISTED, maxLeverage: 4, mtbLong: rate('0.01') }
    const activeFrom = (Date.now() + HOUR) as Millis
    await announce({ parameters: { parameters: next, activeFrom } })
    const before = await detail()
    expect(before).to.include({ max_leverage: 20, mtb_long: 0.05 })
    expect(before.upcoming_change).to.deep.equal({
      ...{ kind: 'parameters', active_from: iso(activeFrom), mode: null },
      values: { max_leverage: 4, mtb_long: 0.01, mtb_long_e18_raw: rate('0.01').toString() },
    })
    expect(await place({ leverage: 5 })).to.deep.equal([200, null])
    await announce({ parameters: { parameters: next, activeFrom: (Date.now() - 1) as Millis } })
    // The specification in the cache is older; admission reads the market under its lock.
    expect(await place({ leverage: 5 })).to.deep.equal([400, 'LEVERAGE_CAP'])
    expect(await place({ leverage: 4 })).to.deep.equal([200, null])
    const since = await detail()
    expect(since).to.include({ max_leverage: 4, mtb_long: 0.01, upcoming_change: null })
  })

  it('when a mode and a close are announced, both are shown in their order, and the mode applies at its time', async () => {
    const soon = (Date.now() + HOUR) as Millis
    await announce({ restriction: { mode: 'halted', activeFrom: soon } })
    await set({ settling_at: soon + HOUR })
    const market = await detail()
    expect(market).to.include({ mode: 'open', trading_enabled: true })
    expect(market.upcoming_change).to.include({ kind: 'mode', mode: 'halted', active_from: iso(soon) })
    expect(market.later_changes).to.have.length(1)
    expect(market.later_changes[0]).to.include({
      kind: 'wind_down',
      mode: 'settling',
      active_from: iso(soon + HOUR),
    })
    await announce({ restriction: { mode: 'halted', activeFrom: (Date.now() - 1) as Millis } })
    expect(await detail()).to.include({ mode: 'halted', trading_enabled: false })
    expect(await place()).to.deep.equal([503, 'MARKET_NOT_OPEN'])
    const { body } = await exchange.get(null, '/v0/status')
    expect(body.markets[0]).to.include({ mode: 'halted', placements: false })
  })

  it('when a period without fees runs, the rates in force are 0 until its end, and reservations include the highest rate', async () => {
    const [from, until] = [Date.now() - HOUR, Date.now() + HOUR] as [Millis, Millis]
    const period = { makerFee: rate('0'), takerFee: rate('0'), from, until }
    await set({ fee_periods: JSON.stringify(toStoredFees([period])) })
    const market = await detail()
    expect(market).to.include({ maker_fee: 0, taker_fee: 0, taker_fee_e18_raw: '0' })
    expect(market.fees).to.include({
      taker: 0,
      highest_taker: 0.0005,
      until: iso(until),
      free_until: iso(until),
    })
    expect(market.upcoming_change).to.include({ kind: 'fees', active_from: iso(until) })
    expect(market.upcoming_change.values).to.include({ taker_fee: 0.0005 })
    const { body } = await exchange.place(alice, { price: '50', quantity: '1', leverage: 1 })
    // 50 of margin, and 5 bps of it.
    expect(body.order.reserved_margin).to.equal(50.025)
    const order = { market_id: 1, side: 'LONG', order_type: 'LIMIT', price: '50', leverage: 1 }
    const sized = { ...order, sizing_intent: 'units', size: '1' }
    const { body: estimated } = await exchange.send(alice, 'POST', '/v0/orders/estimate', sized)
    expect(estimated.estimate.fee).to.equal(0)
    expect(estimated.estimate.reservation.fee_allowance).to.equal(0.025)
  })
})
