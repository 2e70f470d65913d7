/** What an auction may pay while actions in the queue, or positions without equity, draw on the pool. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Millis, Price, Steps } from '../../../domain/units.ts'
import { expectConsistent } from '../support/invariants.ts'
import { LiquidationRun } from '../support/liquidation-run.ts'
import { addressOf, type Trader } from '../support/market-fixture.ts'
import { mineOldestPart } from '../support/mine-part.ts'

/**
 * Two longs and two shorts at 1,000 with leverage 20; the price is 900. Per step of 100, in ticks: the longs are worth -50, the shorts 150,
 * the pool has 200, a deleveraging pays 100, and a new short at leverage 20 adds 45.
 */
describe('the pool in the auction', () => {
  let run: LiquidationRun
  let dave: Trader

  beforeEach(async () => {
    run = await LiquidationRun.open()
    dave = await run.fixture.trader('dave')
    const { fixture } = run
    for (const [buyer, seller] of [
      [run.alice, run.bob],
      [run.carol, dave],
    ] as const) {
      await fixture.place({ by: buyer, side: 'LONG', steps: 100, limit: 1000, leverage: 20 })
      await fixture.place({ by: seller, side: 'SHORT', steps: 100, limit: 1000, leverage: 20 })
      await run.auction()
      await mineOldestPart(fixture)
    }
    await run.report(900)
  })

  afterEach(async () => {
    await expectConsistent(run.fixture)
    await run.fixture.close()
  })

  /** Queues the deleveraging of alice against bob. */
  async function deleverage(): Promise<void> {
    const { fixture } = run
    const queued = await fixture.enqueue(({ asOf }) => ({
      ...{ kind: 'deleverage', asOf, account: addressOf(run.alice.wallet) },
      legs: [{ counterparty: addressOf(run.bob.wallet), steps: 100 as Steps }],
      report: {
        price: (900n * fixture.spec.tick) as Price,
        observedAt: fixture.clock.value as Millis,
        signatures: '0x',
      },
    }))
    expect(queued.ok).to.equal(true)
  }

  async function close(by: Trader, from: Trader): Promise<void> {
    await run.fixture.place({ by: from, side: 'SHORT', steps: 100, limit: 900, leverage: 20 })
    await run.fixture.place({ by, side: 'LONG', steps: 100, limit: 900, reduceOnly: true })
  }

  it('when the pool has what a close is due, the close is matched', async () => {
    await close(dave, await run.fixture.trader('erin'))
    expect(await run.auction()).to.not.equal(null)
  })

  it('when a deleveraging in the queue is paid before, a close that the rest of the pool cannot pay waits', async () => {
    await deleverage()
    await close(dave, await run.fixture.trader('erin'))
    expect(await run.auction()).to.equal(null)
    expect((await run.fixture.orders()).filter(({ status }) => status === 'OPEN')).to.have.length(2)
  })
})
