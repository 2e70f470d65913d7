/** The funding job against the database: when it queues an update, and what kills, other owners and drops change. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import { storeAverages } from '../../../db/price-averages.ts'
import { fundingCapAt, HOUR } from '../../../domain/prices/funding.ts'
import { RETRY_PAUSE, UPDATE_INTERVAL } from '../../../domain/prices/funding-plan.ts'
import { addPremium, NO_PREMIUM } from '../../../domain/prices/premium.ts'
import type { Millis, Price, Rate } from '../../../domain/units.ts'
import { createActionQueue } from '../../../keeper/actions/store.ts'
import { createFunding, type FundingPorts } from '../../../keeper/funding/funding.ts'
import { createFundingStore } from '../../../keeper/funding/store.ts'
import { perpetual, rate } from '../../support/markets.ts'
import { comparedFunding } from '../support/compared-queue.ts'
import { MarketFixture, RULES, SILENT_LOGGER } from '../support/market-fixture.ts'

const REPORT_RULES = { ...RULES, kind: perpetual.kind }

describe('the funding job', () => {
  let fixture: MarketFixture
  let fence: Fence
  let woken: number

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    fence = await fixture.lease('auction:m1')
    await fixture.report(1000)
    woken = 0
  })
  afterEach(() => fixture.close())

  /** A process that owns the market. */
  function job(changes: Partial<FundingPorts> = {}) {
    return createFunding(
      {
        ...comparedFunding(
          {
            stored: fixture.stored,
            funding: createFundingStore(fixture.db, fixture.databaseTime),
            actions: createActionQueue(fixture.db, fixture.databaseTime),
            now: () => fixture.clock.now(),
          },
          { interval: UPDATE_INTERVAL, rules: REPORT_RULES },
        ),
        chain: { isBankPaused: async () => false },
        headTime: () => fixture.clock.now(),
        clock: fixture.clock,
        logger: SILENT_LOGGER,
        killPoint: () => {},
        wakeSettlement: () => void woken++,
        ...changes,
      },
      perpetual,
    )
  }

  /** One check, with a fresh report. */
  async function check(own = job(), owned = fence): Promise<void> {
    await fixture.report(1000)
    own.poll(owned, REPORT_RULES)
    await own.settled()
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
    expect(woken).to.equal(1)
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
    const own = job()
    await check(own)
    pass(UPDATE_INTERVAL)
    await check(own)
    await check(job())
    expect(await actions()).to.have.length(1)
  })

  it('when the interval has passed since a mined update, the next one is queued', async () => {
    const own = job()
    await check(own)
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
    await check(own)
    expect(await actions()).to.have.length(1)
    pass(1000)
    await check(own)
    expect(await actions()).to.have.length(2)
  })

  it('when an update is dropped, the next one is queued after a pause', async () => {
    const own = job()
    await check(own)
    await setStatus('REVERTED')
    pass(RETRY_PAUSE - 1)
    await check(own)
    expect(await actions()).to.have.length(1)
    pass(1000)
    await check(own)
    expect((await actions()).map(({ status }) => status)).to.deep.equal(['REVERTED', 'QUEUED'])
  })

  it('when the bank is paused, nothing is queued until the pause ends', async () => {
    let isPaused = true
    const own = job({ chain: { isBankPaused: async () => isPaused } })
    await check(own)
    expect(await actions()).to.deep.equal([])
    isPaused = false
    pass(10_000)
    await check(own)
    expect(await actions()).to.have.length(1)
  })

  it('when the process is killed before or after the write, exactly one update is queued', async () => {
    const queue = createActionQueue(fixture.db, fixture.databaseTime)
    const killed: FundingPorts['actions'] = {
      enqueue: (...args) =>
        fixture.db.transaction().execute(async () => {
          await Promise.resolve(args)
          throw new Error('killed before the write')
        }),
    }
    await check(job({ actions: killed }))
    expect(await actions()).to.deep.equal([])
    const silent: FundingPorts['actions'] = {
      enqueue: async (...args) => {
        await queue.enqueue(...args)
        throw new Error('killed after the write')
      },
    }
    await check(job({ actions: silent }))
    await check(job())
    expect(await actions()).to.have.length(1)
  })

  it('when the owner has lost its lease, it queues nothing', async () => {
    await fixture.db.updateTable('leases').set({ expires_at: 0 }).execute()
    const next = await fixture.lease('auction:m1', 'two')
    await check(job())
    expect(await actions()).to.deep.equal([])
    await check(job(), next)
    expect(await actions()).to.have.length(1)
  })

  it('when the chain does not answer, a poll returns at once and starts no second check', async () => {
    let asked = 0
    let answer = (_isPaused: boolean): void => {}
    const own = job({
      chain: {
        isBankPaused: () => {
          asked++
          return new Promise((resolve) => {
            answer = resolve
          })
        },
      },
    })
    own.poll(fence, REPORT_RULES)
    while (asked === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    pass(5_000)
    await fixture.report(1000)
    own.poll(fence, REPORT_RULES)
    expect([asked, (await actions()).length]).to.deep.equal([1, 0])
    answer(false)
    await own.settled()
    expect(await actions()).to.have.length(1)
  })

  it('when the rules for reports are not known, or the report is stale, nothing is queued', async () => {
    const own = job()
    own.poll(fence, null)
    await own.settled()
    pass(RULES.maxAge + 1)
    own.poll(fence, REPORT_RULES)
    await own.settled()
    expect(await actions()).to.deep.equal([])
  })
})
