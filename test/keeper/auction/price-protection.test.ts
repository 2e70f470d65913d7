import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { loadProtection } from '../../../db/markets.ts'
import { PROTECTION_NOTICE } from '../../../domain/market/price-protection.ts'
import { perpetual, rate } from '../../support/markets.ts'
import { applySetting } from '../../support/settings.ts'
import { createAuction, createMarketMemory } from '../support/engine-turns.ts'
import { expectConsistent, expectSameBook } from '../support/invariants.ts'
import { MarketFixture, RULES, type Trader } from '../support/market-fixture.ts'

describe('the width of price protection in the auction', () => {
  let fixture: MarketFixture
  let alice: Trader
  let bob: Trader
  let run: () => Promise<number | null>

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    alice = await fixture.trader('alice')
    bob = await fixture.trader('bob')
    const memory = createMarketMemory({ ...RULES, kind: perpetual.kind })
    const auction = createAuction(fixture.turnPorts(), perpetual, memory)
    run = () => auction.run()
  })

  afterEach(async () => {
    await expectConsistent(fixture)
    await expectSameBook(fixture)
    await fixture.close()
  })

  const announce = (width: string) =>
    applySetting(fixture.engine, perpetual.marketId, { kind: 'protection', width: rate(width) })

  /** The protection of a market buy at the oracle price of 1,000 ticks, in an auction with an empty book. */
  async function protectionNow(): Promise<{ price: number; width: string }> {
    await fixture.report(1000)
    await fixture.place({ by: alice, side: 'LONG', steps: 20 })
    await run()
    const { orders, price_protection: width } = (await fixture.rows('orders_protected')).at(-1)
    return { price: orders[0].price, width }
  }

  it('when no change is announced, it is the default of the market', async () => {
    expect(await protectionNow()).to.deep.equal({ price: 1010, width: rate('0.01').toString() })
  })

  it('when a change is announced, the first auction a day later applies it', async () => {
    await announce('0.02')
    fixture.clock.value += PROTECTION_NOTICE - 1
    expect(await protectionNow()).to.deep.equal({ price: 1010, width: rate('0.01').toString() })
    fixture.clock.value += 1
    expect(await protectionNow()).to.deep.equal({ price: 1020, width: rate('0.02').toString() })
  })

  it('when the announcement is replaced before its time, only the new one takes effect', async () => {
    await announce('0.02')
    fixture.clock.value += PROTECTION_NOTICE - 1
    await announce('0.03')
    fixture.clock.value += 1
    expect((await protectionNow()).price).to.equal(1010)
    fixture.clock.value += PROTECTION_NOTICE
    expect((await protectionNow()).price).to.equal(1030)
  })

  it('when a batch has applied a width and the clock of the announcement is behind, that width stays in force', async () => {
    await announce('0.02')
    fixture.clock.value += PROTECTION_NOTICE
    await fixture.report(1000)
    await fixture.place({ by: bob, side: 'SHORT', steps: 50, limit: 1000 })
    await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 1000 })
    expect(await run()).to.equal(1)
    fixture.clock.value -= 5
    await announce('0.05')
    const { inForce, next } = await loadProtection(fixture.db, perpetual.marketId)
    expect(inForce).to.equal(rate('0.02'))
    expect(next?.at).to.equal(fixture.clock.value + 5 + PROTECTION_NOTICE)
    fixture.clock.value += 5
    expect((await protectionNow()).price).to.equal(1020)
  })
})
