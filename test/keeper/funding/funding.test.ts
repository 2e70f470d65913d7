/** Funding updates of the engine: when one is queued, and what other owners and drops change. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { fundingCapAt, HOUR } from '../../../domain/prices/funding.ts'
import { RETRY_PAUSE, UPDATE_INTERVAL } from '../../../domain/prices/funding-plan.ts'
import { addPremium, NO_PREMIUM } from '../../../domain/prices/premium.ts'
import type { ReportRules } from '../../../domain/prices/report.ts'
import type { Millis, Price, Rate } from '../../../domain/units.ts'
import { AdoptingEngine } from '../../support/adopting-engine.ts'
import { perpetual, rate } from '../../support/markets.ts'
import { storeAverages } from '../../support/rows/price-averages.ts'
import { MarketFixture, RULES } from '../support/market-fixture.ts'

const REPORT_RULES = { ...RULES, kind: perpetual.kind }

describe('the funding updates of a market', () => {
  let fixture: MarketFixture

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    await fixture.report(1000)
  })
  afterEach(() => fixture.close())

  const engineWith = (rules: ReportRules | null) =>
    new AdoptingEngine(fixture.db, { ...fixture.times(), rules: () => rules })

  /** One look of the engine, with the market's present report. */
  const look = (engine: AdoptingEngine, isBankPaused = false) =>
    engine.submit<'update_funding'>({
      kind: 'update_funding',
      marketId: perpetual.marketId,
      interval: UPDATE_INTERVAL,
      isBankPaused,
    })

  /** One look, with a fresh report. */
  async function check({ engine = fixture.engine, isBankPaused = false } = {}): Promise<void> {
    await fixture.report(1000)
    await look(engine, isBankPaused)
  }

  const actions = () =>
    fixture.db
      .selectFrom('actions')
      .select(['kind', 'as_of', 'payload', 'status'])
      .orderBy('queue_no')
      .execute()
  const setStatus = (status: 'MINED' | 'REVERTED') =>
    fixture.db.updateTable('actions').set({ status }).where('status', '=', 'QUEUED').execute()
  const pass = (millis: number): void => {
    fixture.clock.value += millis
  }

  /** The premium of the last hour. */
  async function setPremium(premium: Rate): Promise<void> {
    let average = NO_PREMIUM
    for (let back: number = HOUR; back >= 0; back -= 5000) {
      average = addPremium(average, premium, (fixture.clock.value - back) as Millis)
    }
    const averages = { basis: { value: 0n, at: 0 as Millis }, premium: average }
    await fixture.db.transaction().execute((tx) => storeAverages(tx, perpetual.marketId, averages))
  }

  it('when no rate is valid, it queues an update with the premium, the latest report and the longest validity', async () => {
    await setPremium(rate('0.008'))
    await check()
    const now = fixture.clock.value
    const [action, ...others] = await actions()
    expect(others).to.deep.equal([])
    expect(action).to.deep.include({ kind: 'update_funding', as_of: now, status: 'QUEUED' })
    expect(action?.payload).to.deep.include({
      // 0.1 % of a step of 0.1 USDM.
      ...{ rate: rate('0.0001').toString(), valid_until: now + HOUR, session: null },
    })
  })

  it('when the premium is beyond the cap, the rate is the bound of the contract', async () => {
    await setPremium(rate('0.2'))
    await check()
    const [action] = await actions()
    expect((action?.payload as { rate: string } | undefined)?.rate).to.equal(
      (fundingCapAt(perpetual, (1000n * perpetual.tick) as Price) / 3n).toString(),
    )
  })

  it('when an update is in flight, no second one is queued, also by another owner', async () => {
    await check()
    pass(UPDATE_INTERVAL)
    await check()
    await check({ engine: engineWith(REPORT_RULES) })
    expect(await actions()).to.have.length(1)
  })

  it('when the interval has passed since a mined update, the next one is queued', async () => {
    await check()
    await setStatus('MINED')
    const { as_of } = (await actions())[0] as { as_of: number }
    await fixture.db
      .insertInto('funding_states')
      .values({
        ...{ market_id: perpetual.marketId, action_id: 1, as_of, funding_index: 0n, rate: 0n },
        ...{ valid_from: as_of, valid_until: as_of + HOUR },
      })
      .execute()
    pass(UPDATE_INTERVAL - 1)
    await check()
    expect(await actions()).to.have.length(1)
    pass(1000)
    await check()
    expect(await actions()).to.have.length(2)
  })

  it('when an update is dropped, the next one is queued after a pause', async () => {
    await check()
    await setStatus('REVERTED')
    pass(RETRY_PAUSE - 1)
    await check()
    expect(await actions()).to.have.length(1)
    pass(1000)
    await check()
    expect((await actions()).map(({ status }) => status)).to.deep.equal(['REVERTED', 'QUEUED'])
  })

  it('when the bank is paused, nothing is queued until the pause ends', async () => {
    await check({ isBankPaused: true })
    expect(await actions()).to.deep.equal([])
    pass(10_000)
    await check()
    expect(await actions()).to.have.length(1)
  })

  it('when the rules for reports are not known, or the report is stale, nothing is queued', async () => {
    await look(engineWith(null))
    pass(RULES.maxAge + 1)
    await look(fixture.engine)
    expect(await actions()).to.deep.equal([])
  })
})
