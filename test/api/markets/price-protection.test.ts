import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { PROTECTION_NOTICE } from '../../../domain/market/price-protection.ts'
import type { Millis } from '../../../domain/units.ts'
import { binary, e18, future, perpetual, rate } from '../../support/markets.ts'
import { listMarket } from '../../support/rows/markets.ts'
import { applySetting } from '../../support/settings.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

describe('the price protection of a market', () => {
  let exchange: ExchangeFixture
  let alice: User
  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    await exchange.project()
  })
  after(() => exchange.stop())

  const detail = async ({ marketId }: Pick<MarketSpec, 'marketId'>) =>
    (await exchange.get(null, `/v0/markets/${marketId}`)).body
  const NONE = {
    next_price_protection: null,
    next_price_protection_e18_raw: null,
    next_price_protection_at: null,
  }

  async function announce({ marketId }: MarketSpec, width: string, at: number): Promise<void> {
    await applySetting(exchange.engine, marketId, { kind: 'protection', width: rate(width) }, at as Millis)
    await exchange.project()
  }

  it('when nothing is announced, market detail and list show the default of the kind', async () => {
    expect(await detail(perpetual)).to.include({
      ...{ price_protection: 0.01, price_protection_e18_raw: e18('0.01').toString(), ...NONE },
    })
    const { body } = await exchange.get(null, '/v0/markets')
    const widths = body.map(({ price_protection }: { price_protection: number }) => price_protection)
    expect(widths).to.deep.equal([0.01, 0.02, 0.03])
  })

  it('when a change is announced, both widths and the time are shown, and the old one applies', async () => {
    const at = Date.now()
    await announce(perpetual, '0.02', at)
    expect(await detail(perpetual)).to.include({
      ...{ price_protection: 0.01, next_price_protection: 0.02 },
      next_price_protection_e18_raw: e18('0.02').toString(),
      next_price_protection_at: new Date(at + PROTECTION_NOTICE).toISOString(),
    })
    const { body } = await exchange.place(alice, { type: 'MARKET' })
    expect(body).to.include({ expected_protection_price: 101 })
  })

  it('when its time has come, the new width is in force for expected protection prices and nothing is announced', async () => {
    await announce(future, '0.05', Date.now() - PROTECTION_NOTICE)
    expect(await detail(future)).to.include({ price_protection: 0.05, ...NONE })
    const { body } = await exchange.place(alice, { market: future, type: 'MARKET' })
    expect(body).to.include({ expected_protection_price: 52.5 })
    const { body: estimate } = await exchange.send(alice, 'POST', '/v0/orders/estimate', {
      ...{ market_id: 2, side: 'SHORT', order_type: 'MARKET', sizing_intent: 'max' },
    })
    expect(estimate).to.include({ expected_protection_price: 47.5 })
  })

  it('when a market is listed and not projected yet, its default is shown', async () => {
    const spec = {
      ...binary,
      marketId: 4 as MarketSpec['marketId'],
      symbol: 'NEW-YES',
      trader: '0x44' as never,
    }
    await listMarket(exchange.db, spec)
    // The api reloads its list of markets at most every 500 ms.
    await setTimeout(600)
    expect(await detail(spec)).to.include({ price_protection: 0.03, ...NONE })
  })
})
