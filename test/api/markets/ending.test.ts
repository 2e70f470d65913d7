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
  const set = (times: { expires_at?: number; settling_at?: number }) =>
    exchange.db.updateTable('markets').set(times).where('market_id', '=', future.marketId).execute()
  afterEach(() => set({ expires_at: EXPIRES_AT, settling_at: 0 }))

  const detail = async (marketId: number) => (await exchange.get(null, `/v0/markets/${marketId}`)).body
  const place = async () => {
    const { status, body } = await exchange.place(alice, { market: future, price: '50', quantity: '0.1' })
    return [status, body.details?.code ?? null]
  }

  it('when a market is listed, its detail shows expiry and dispute window, of a perpetual no expiry', async () => {
    expect(await detail(future.marketId)).to.include({
      ...{ mode: 'open', trading_enabled: true, expiry_at: iso(EXPIRES_AT), settling_at: null },
      dispute_window_ms: 86_400_000,
    })
    expect(await detail(perpetual.marketId)).to.include({ expiry_at: null, settling_at: null })
  })

  it('when the expiry or the settling time is reached, the market is settling and rejects orders with MARKET_ENDED', async () => {
    const soon = Date.now() + 3_600_000
    await set({ settling_at: soon })
    expect(await detail(future.marketId)).to.include({ mode: 'open', settling_at: iso(soon) })
    expect(await place()).to.deep.equal([200, null])
    for (const times of [{ expires_at: Date.now() - 1 }, { settling_at: Date.now() - 1 }]) {
      await set({ expires_at: EXPIRES_AT, settling_at: 0, ...times })
      expect(await detail(future.marketId)).to.include({ mode: 'settling', trading_enabled: false })
      expect(await place()).to.deep.equal([400, 'MARKET_ENDED'])
      const { body } = await exchange.get(null, '/v0/status')
      const [status] = body.markets.filter(({ market_id }: { market_id: number }) => market_id === 2)
      expect(status).to.include({ mode: 'settling', placements: false })
    }
  })
})
