/** Funding updates of the engine on a real chain with the real contracts. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import { publishReports } from '../../../db/oracle-reports.ts'
import { BANK } from '../../../domain/exchange/tables/chain.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { fundingBounds, fundingCapAt, HOUR } from '../../../domain/prices/funding.ts'
import { addPremium, NO_PREMIUM } from '../../../domain/prices/premium.ts'
import { CANCEL_GRACE } from '../../../domain/settlement/durations.ts'
import type { Millis, Price, Rate } from '../../../domain/units.ts'
import { sessionFeedIdOf } from '../../../stack/deploy.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { passTime } from '../../support/chain-faults.ts'
import { perpetual, rate } from '../../support/markets.ts'
import { storeAverages } from '../../support/rows/price-averages.ts'
import { type ChainFixture, type Deployed, useChain } from '../support/chain-fixture.ts'
import { expectConsistent } from '../support/invariants.ts'
import { openTrading } from '../support/trading.ts'

/** Between two updates: one is due at once, or none is during the test. */
const DUE = 1 as Millis
const NOT_DUE = HOUR as Millis
const ORACLE = (1000n * perpetual.tick) as Price

describe('the funding updates of the engine', function () {
  this.timeout(60_000)
  let fixture: ChainFixture
  let settling: Fence

  function useMarket(spec: MarketSpec): () => Deployed {
    const chain = useChain(spec)
    beforeEach(async () => {
      ;({ fixture, settling } = await openTrading(chain()))
    })
    afterEach(async () => {
      await expectConsistent(fixture)
      await fixture.close()
    })
    return chain
  }

  /** One look of the engine, and the settlement of what it queued. Returns the number of updates so far. */
  async function check(interval: Millis): Promise<number> {
    await fixture.report(1000)
    await fixture.readHead()
    await fixture.follow()
    const { engine, spec, clock } = fixture
    const pausedUntil = (engine.state.bank.get(BANK)?.pause_ends_at ?? 0) * 1_000
    await engine.submit<'update_funding'>({
      kind: 'update_funding',
      marketId: spec.marketId,
      interval,
      isBankPaused: clock.now() < pausedUntil,
    })
    await fixture.settle(settling)
    return (await fixture.rows('funding_updated')).length
  }

  async function setPremium(premium: Rate): Promise<void> {
    let average = NO_PREMIUM
    for (let back: number = HOUR; back >= 0; back -= 5000) {
      average = addPremium(average, premium, (fixture.clock.value - back) as Millis)
    }
    const averages = { basis: { value: 0n, at: 0 as Millis }, premium: average }
    await fixture.db.transaction().execute((tx) => storeAverages(tx, perpetual.marketId, averages))
  }

  describe('of a market around the clock', () => {
    const chain = useMarket(perpetual)

    it('when the premium exceeds the slope, each update goes as far as the contract allows, also after a restart', async () => {
      const cap = fundingCapAt(perpetual, ORACLE)
      await setPremium(rate('0.2'))
      expect(await check(NOT_DUE), 'the first update').to.equal(1)
      const first = await fixture.trading().fundingRate()
      expect(first.rate).to.equal(cap / 3n)
      expect(await check(NOT_DUE), 'an update that is not due').to.equal(1)
      for (const [at, premium] of [rate('0.2'), rate('-0.2'), rate('-0.2')].entries()) {
        await setPremium(premium as Rate)
        const before = await fixture.trading().fundingRate()
        expect(await check(DUE)).to.equal(at + 2)
        const after = await fixture.trading().fundingRate()
        const running = {
          ...{ rate: before.rate as never, validFrom: Number(before.validFrom) as Millis },
          validUntil: Number(before.validUntil) as Millis,
        }
        const bounds = fundingBounds(perpetual, running, ORACLE, Number(after.validFrom) as Millis)
        expect(after.rate).to.equal(premium > 0n ? bounds.highest : bounds.lowest)
        expect(after.validUntil - after.validFrom).to.equal(BigInt(HOUR))
      }
      const statuses = (await fixture.actions()).map(({ kind, status }) => `${kind} ${status}`)
      expect(statuses).to.deep.equal(Array(4).fill('update_funding MINED'))
      const { fundingIndex } = await fixture.trading().lastReference()
      const [newest] = await fixture.db
        .selectFrom('funding_states')
        .selectAll()
        .orderBy('action_id', 'desc')
        .limit(1)
        .execute()
      expect([newest?.funding_index, newest?.rate]).to.deep.equal([
        fundingIndex,
        (await fixture.trading().fundingRate()).rate,
      ])
      expect(fundingIndex).to.not.equal(0n)
    })

    it('when the bank is paused, no update is sent; once the pause has ended, one is due at once', async () => {
      const bank = MarginBank__factory.connect(fixture.chainSide.shared.marginBank, fixture.chainSide.admin)
      await (await bank.pause()).wait()
      expect(await check(DUE)).to.equal(0)
      expect(await fixture.actions()).to.deep.equal([])
      await (await bank.unpause()).wait()
      expect(await check(DUE)).to.equal(1)
    })

    it('when the market is cancel-only, updates go on; when it is halted, none is queued', async () => {
      const market = fixture.trading().connect(fixture.chainSide.admin)
      const restrict = async (mode: 'cancel_only' | 'halted'): Promise<void> => {
        await (await market.restrictMode(mode === 'halted' ? 2 : 1)).wait()
        await fixture.db.updateTable('markets').set({ mode }).execute()
        await passTime(chain(), CANCEL_GRACE + 1000)
        fixture.clock.value += CANCEL_GRACE + 1000
      }
      await restrict('cancel_only')
      expect(await check(DUE)).to.equal(1)
      await restrict('halted')
      expect(await check(DUE)).to.equal(1)
      const statuses = (await fixture.actions()).map(({ status }) => status)
      expect(statuses).to.deep.equal(['MINED'])
    })
  })

  describe('of a market with sessions', () => {
    useMarket({ ...perpetual, fundingSession: true })

    /** Stores the signed report of a session that ends so long from now; 0: none runs. Returns its end. */
    async function reportSession(endsIn: number): Promise<bigint> {
      const observedAt = fixture.clock.now()
      const price = BigInt(endsIn === 0 ? 0 : observedAt + endsIn) as Price
      const signatures = fixture.signFeed(
        sessionFeedIdOf(perpetual.marketId),
        price,
        observedAt,
      ) as `0x${string}`
      const report = { price, observedAt, signatures }
      await publishReports(fixture.db, [
        { marketId: perpetual.marketId, feed: 'session', report, readings: [] },
      ])
      return price
    }

    it('when no session runs, no update is sent; within one, rates end with it, also when it closes early', async () => {
      await setPremium(rate('0.008'))
      await reportSession(0)
      expect(await check(DUE)).to.equal(0)
      const end = await reportSession(1_800_000)
      expect(await check(NOT_DUE)).to.equal(1)
      const first = await fixture.trading().fundingRate()
      expect([first.rate, first.validUntil]).to.deep.equal([rate('0.0001'), end])
      // A closure is announced that begins in ten minutes: the running rate must not outlast it.
      const closure = await reportSession(600_000)
      expect(await check(NOT_DUE), 'an update before the interval').to.equal(2)
      expect((await fixture.trading().fundingRate()).validUntil).to.equal(closure)
      await reportSession(0)
      expect(await check(DUE)).to.equal(2)
    })
  })
})
