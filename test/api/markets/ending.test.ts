import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { EXPIRES_AT, future, perpetual } from '../../support/markets.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

const iso = (at: number): string => new Date(at).toISOString()

describe('the close of a market', () => {
  let exchange: ExchangeFixture
  let alice: User
  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    await exchange.project()
  })
  after(() => exchange.stop())
  const set = (columns: {
    readonly expires_at?: number
    readonly settling_at?: number
    readonly final_report?: string | null
    readonly ended?: string | null
  }) => exchange.db.updateTable('markets').set(columns).where('market_id', '=', future.marketId).execute()
  afterEach(() => set({ expires_at: EXPIRES_AT, settling_at: 0, final_report: null, ended: null }))

  const detail = async (marketId: number) => (await exchange.get(null, `/v0/markets/${marketId}`)).body
  const place = async () => {
    const { status, body } = await exchange.place(alice, { market: future, price: '50', quantity: '0.1' })
    return [status, body.details?.code ?? null]
  }

  it('when a market is listed, its detail shows expiry and dispute window, of a perpetual no expiry', async () => {
    expect(await detail(future.marketId)).to.include({
      ...{ mode: 'open', trading_enabled: true, expires_at: iso(EXPIRES_AT), settling_at: null },
      dispute_window_ms: 86_400_000,
    })
    expect(await detail(perpetual.marketId)).to.include({ expires_at: null, settling_at: null })
  })

  it('when a final price is reported, and when the market has ended, its detail and the list show its life', async () => {
    const closed = Date.now() - 600_000
    const report = {
      price: '123000000000000000000',
      observed_at: closed + 1_000,
      reported_at: closed + 5_000,
    }
    await set({ expires_at: closed, final_report: JSON.stringify(report) })
    const shown = {
      ...{ closes_at: iso(closed), final_price: 123, final_price_e18_raw: report.price },
      ...{ final_price_at: iso(closed + 1_000), dispute_until: iso(closed + 5_000 + 86_400_000) },
    }
    const open = { ended_at: null, ended_by: null, claims_from: null, payout_ratio: null }
    expect(await detail(future.marketId)).to.include({ ...shown, ...open })
    const end = {
      ...{
        how: 'finalized',
        price: report.price,
        price_at: report.observed_at,
        ended_at: closed + 90_000_000,
      },
      ...{ pool: '300', deficit: '100', haircut: { pool: '300', owed: '400' } },
    }
    await set({ ended: JSON.stringify(end) })
    const { body } = await exchange.get(null, '/v0/markets')
    const [listed] = body.filter(({ market_id }: { market_id: number }) => market_id === future.marketId)
    expect(listed).to.include({
      ...{ ...shown, ended_by: 'finalized', ended_at: iso(end.ended_at), payout_ratio: 0.75 },
      claims_from: iso(end.ended_at + 259_200_000),
    })
  })

  it('when the expiry or the settling time is reached, the market is settling and rejects orders with MARKET_ENDED', async () => {
    const soon = Date.now() + 3_600_000
    await set({ settling_at: soon })
    expect(await detail(future.marketId)).to.include({ mode: 'open', settling_at: iso(soon) })
    expect(await place()).to.deep.equal([200, null])
    for (const times of [{ expires_at: Date.now() - 1_000 }, { settling_at: Date.now() - 1_000 }]) {
      await set({ expires_at: EXPIRES_AT, settling_at: 0, ...times })
      expect(await detail(future.marketId)).to.include({ mode: 'settling', trading_enabled: false })
      expect(await place()).to.deep.equal([400, 'MARKET_ENDED'])
      const { body } = await exchange.get(null, '/v0/status')
      const [status] = body.markets.filter(({ market_id }: { market_id: number }) => market_id === 2)
      expect(status).to.include({ mode: 'settling', placements: false })
    }
  })
})
