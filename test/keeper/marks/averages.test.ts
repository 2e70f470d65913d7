/** The averages behind the mark and the funding rate are the market's, not those of one keeper process. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { publishReports } from '../../../db/oracle-reports.ts'
import type { PriceAverages } from '../../../domain/prices/averages.ts'
import { averagePremium } from '../../../domain/prices/premium.ts'
import type { Millis, Price } from '../../../domain/units.ts'
import { perpetual, rate } from '../../support/markets.ts'
import { loadAverages } from '../../support/rows/price-averages.ts'
import { createAuction, createMarketMemory, createMarks } from '../support/engine-turns.ts'
import { MarketFixture, RULES, type Trader } from '../support/market-fixture.ts'

describe('the averages of a market', () => {
  let fixture: MarketFixture
  let alice: Trader
  let bob: Trader

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    await fixture.report(1000)
    alice = await fixture.trader('alice')
    bob = await fixture.trader('bob')
  })
  afterEach(() => fixture.close())

  /** A process that owns the market. Its first turn only loads the book. */
  async function owner() {
    const memory = createMarketMemory({ ...RULES, kind: perpetual.kind })
    const marks = createMarks(fixture.turnPorts(), perpetual, memory)
    const auction = createAuction(fixture.turnPorts(), perpetual, memory)
    const turn = async (): Promise<void> => {
      await marks.update()
      await auction.run()
    }
    await turn()
    return turn
  }

  /** A book above the oracle price, a second at a time, with a price that moves. Another process takes over at each time of `takeovers`. */
  async function run(seconds: number, takeovers: readonly number[]): Promise<PriceAverages[]> {
    await fixture.place({ by: alice, side: 'LONG', steps: 200_000, limit: 1010, leverage: 10 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 200_000, limit: 1012, leverage: 10 })
    let turn = await owner()
    const stored: PriceAverages[] = []
    for (let at = 1; at <= seconds; at++) {
      fixture.clock.value += 1000
      await fixture.report(1000 + (at % 3))
      await turn()
      stored.push(await loadAverages(fixture.db, perpetual.marketId))
      if (!takeovers.includes(at)) continue
      turn = await owner()
    }
    return stored
  }

  it('when other processes take over, they are those of one owner, second by second', async () => {
    const interrupted = await run(20, [3, 4, 11])
    await fixture.close()
    fixture = await MarketFixture.open(perpetual)
    await fixture.report(1000)
    alice = await fixture.trader('alice')
    bob = await fixture.trader('bob')
    const whole = await run(20, [])
    expect(interrupted).to.deep.equal(whole)
    const { basis, premium } = whole.at(-1) as PriceAverages
    expect(basis?.value).to.be.greaterThan(0n as never)
    expect(premium.intervals.reduce((sum, { sampled }) => sum + sampled, 0)).to.equal(25_000)
    expect(averagePremium(premium, fixture.clock.now() as Millis)).to.be.greaterThan(rate('0.0002') as never)
  })

  it('when no report is fresh or the market is not open, no premium is sampled', async () => {
    await run(2, [])
    const before = await loadAverages(fixture.db, perpetual.marketId)
    const turn = await owner()
    const sampled = ({ premium }: PriceAverages): number =>
      premium.intervals.reduce((sum, interval) => sum + interval.sampled, 0)
    await fixture.db.updateTable('markets').set({ mode: 'cancel_only' }).execute()
    fixture.clock.value += 1000
    await fixture.report(1001)
    await turn()
    const cancelOnly = await loadAverages(fixture.db, perpetual.marketId)
    expect([sampled(cancelOnly), cancelOnly.premium.at]).to.deep.equal([sampled(before), fixture.clock.value])
    await fixture.db.updateTable('markets').set({ mode: 'open' }).execute()
    fixture.clock.value += 1000
    await fixture.report(1002, fixture.clock.value - RULES.maxAge - 1)
    await turn()
    expect(sampled(await loadAverages(fixture.db, perpetual.marketId))).to.equal(sampled(before))
  })

  it('when no batch can run, because no node responds or settlement is behind, no premium is sampled', async () => {
    await fixture.place({ by: alice, side: 'LONG', steps: 200_000, limit: 1010, leverage: 10 })
    const memory = createMarketMemory({ ...RULES, kind: perpetual.kind })
    let responds = true
    const ports = { ...fixture.turnPorts(), headTime: () => (responds ? fixture.clock.now() : null) }
    const marks = createMarks(ports, perpetual, memory)
    await createAuction(ports, perpetual, memory).run()
    const sampledAfter = async (): Promise<number> => {
      fixture.clock.value += 1000
      await fixture.report(1000 + (fixture.clock.value % 7))
      await marks.update()
      const { premium } = await loadAverages(fixture.db, perpetual.marketId)
      return premium.intervals.reduce((sum, { sampled }) => sum + sampled, 0)
    }
    const running = await sampledAfter()
    responds = false
    expect(await sampledAfter()).to.equal(running)
    responds = true
    expect(await sampledAfter()).to.equal(running + 1000)
  })

  it('when an adjustment keeps an account out of the auctions, its quotes decide neither mark nor premium', async () => {
    const attempt = {
      ...{ adjustment_id: '1-1', market_id: perpetual.marketId, user_id: alice.account, digest: '0x' },
      ...{ nonce: 1, request: '{}', hold: 0n, held: 0n, pays: 0n, cancelled_orders: 0 },
      ...({ kind: 'add_margin', status: 'PREPARED', seq: 1, created_at: 1, updated_at: 1 } as const),
    }
    await fixture.db.insertInto('adjustment_attempts').values(attempt).execute()
    const { basis, premium } = (await run(5, [])).at(-1) as PriceAverages
    expect(basis?.value).to.equal(0n)
    expect(premium.intervals.map(({ sum }) => sum)).to.deep.equal([0n])
  })

  it('when the market has sessions, a premium is sampled within one only', async () => {
    const stock = { ...perpetual, fundingSession: true }
    const memory = createMarketMemory({ ...RULES, kind: stock.kind })
    const marks = createMarks(fixture.turnPorts(), stock, memory)
    await createAuction(fixture.turnPorts(), stock, memory).run()
    const sampledAfter = async (endsIn: number | null): Promise<number> => {
      fixture.clock.value += 1000
      await fixture.report(1000 + (fixture.clock.value % 7))
      const observedAt = fixture.clock.now()
      const report = {
        ...{ price: BigInt(endsIn === null ? 0 : fixture.clock.value + endsIn) as Price },
        ...{ observedAt, signatures: '0x' as const },
      }
      await publishReports(fixture.db, [{ marketId: 1, feed: 'session', report, readings: [] }])
      await marks.update()
      const { premium } = await loadAverages(fixture.db, perpetual.marketId)
      return premium.intervals.reduce((sum, { sampled }) => sum + sampled, 0)
    }
    expect(await sampledAfter(null)).to.equal(0)
    expect(await sampledAfter(60_000)).to.equal(1000)
    expect(await sampledAfter(0)).to.equal(1000)
  })
})
