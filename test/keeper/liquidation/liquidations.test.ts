/** The life of a liquidation up to the queue: forced orders, their batches, and what queues an inheritance or a deleveraging. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { LiquidationChanged } from '../../../domain/journal/liquidation-row.ts'
import { MOST_WIDENINGS } from '../../../domain/risk/liquidation-plan.ts'
import { createVoids } from '../../../keeper/settlement/store.ts'
import { voidFrom } from '../../../keeper/settlement/void-batches.ts'
import { endActions, noteFailure } from '../../support/rows/actions.ts'
import { loadLiquidating, loadLiquidations } from '../../support/rows/liquidations.ts'
import { expectConsistent, expectSameBook, expectSameReadModel } from '../support/invariants.ts'
import { LiquidationRun } from '../support/liquidation-run.ts'
import { addressOf, SILENT_LOGGER } from '../support/market-fixture.ts'
import { unminePart } from '../support/mine-block.ts'
import { mineOldestPart } from '../support/mine-part.ts'

/** A long at 1,000 with leverage 20 is below the threshold at 975, below MMR at 970, below two thirds of it at 960, and worth nothing at 950. */
describe('a liquidation', () => {
  let run: LiquidationRun

  beforeEach(async () => {
    run = await LiquidationRun.open()
  })

  afterEach(async () => {
    await expectConsistent(run.fixture)
    await expectSameBook(run.fixture)
    await expectSameReadModel(run.fixture)
    await run.fixture.close()
  })

  const mine = () => mineOldestPart(run.fixture)
  const steps = async () =>
    ((await run.fixture.rows('liquidation_changed')) as LiquidationChanged[]).map(
      ({ step, reason }) => `${step} ${reason}`,
    )
  const forcedOrders = async () => (await run.fixture.orders()).filter(({ forced }) => forced)
  const running = () =>
    run.fixture.db.transaction().execute(async (tx) => {
      const { marketId } = run.fixture.spec
      const accounts = (await loadLiquidating(tx, marketId)).map(([account]) => account)
      return loadLiquidations(tx, marketId, accounts)
    })
  const singles = () =>
    run.fixture.db
      .selectFrom('actions')
      .selectAll()
      .where('kind', '<>', 'settle_part')
      .orderBy('queue_no')
      .execute()
  const fail = async (queueNo: number) => {
    const market_id = run.fixture.spec.marketId
    await run.fixture.db.transaction().execute(async (tx) => {
      await endActions(tx, market_id, [queueNo], 'REVERTED')
      await noteFailure(tx, { market_id, queue_no: queueNo }, 'LiquidationTooSoon')
    })
  }
  const voidAll = async () => {
    const { queue_no } = await run.fixture.db
      .selectFrom('actions')
      .select('queue_no')
      .where('status', 'in', ['QUEUED', 'SIGNED', 'SUBMITTED'])
      .orderBy('queue_no')
      .executeTakeFirstOrThrow()
    const ports = {
      voids: createVoids(run.fixture),
      clock: run.fixture.clock,
      logger: SILENT_LOGGER,
    }
    const cause = { kind: 'late', error: 'late' } as const
    await voidFrom(ports, run.fixture.spec, run.settling, { queueNo: queue_no, cause, reverted: null })
  }

  it('when the price crosses the threshold, the orders of the account end and a forced order fills in the same interval', async () => {
    const { alice, bob, carol } = run
    await run.deal(alice, bob, 100, 20)
    await mine()
    const own = await run.fixture.place({ by: alice, side: 'LONG', steps: 20, limit: 900, leverage: 20 })
    await run.fixture.place({ by: carol, side: 'LONG', steps: 60, limit: 980 })
    await run.turn()
    await run.report(975)
    await run.turn()
    const [order] = await forcedOrders()
    expect(order).to.include({
      side: 'SHORT',
      type: 'MARKET',
      reduceOnly: true,
      quantity: 100,
      settling: 60,
      leverage: 0,
    })
    expect(order?.maker).to.equal(addressOf(alice.wallet))
    expect((await run.fixture.orderOf(own)).statusReason).to.equal('LIQUIDATION')
    expect(await steps()).to.deep.equal(['started BELOW_THRESHOLD', 'forced BELOW_THRESHOLD'])
    await mine()
    expect((await forcedOrders())[0]).to.include({ status: 'OPEN', filled: 60 })
    await run.fixture.place({ by: carol, side: 'LONG', steps: 60, limit: 980 })
    await run.turn()
    await mine()
    await run.turn()
    expect((await forcedOrders())[0]).to.include({ status: 'FILLED', filled: 100 })
    expect(await steps()).to.deep.equal(['started BELOW_THRESHOLD', 'forced BELOW_THRESHOLD', 'ended CLOSED'])
    expect(await running()).to.deep.equal([])
  })

  it('when the owner places an order while a forced order rests, it ends with the next step', async () => {
    const { alice, bob } = run
    await run.deal(alice, bob, 100, 20)
    await mine()
    await run.report(975)
    await run.turn()
    const own = await run.fixture.place({ by: alice, side: 'SHORT', steps: 20, limit: 999, reduceOnly: true })
    await run.turn()
    expect((await run.fixture.orderOf(own)).statusReason).to.equal('LIQUIDATION')
    expect((await forcedOrders())[0]).to.include({ status: 'OPEN' })
  })

  it('when the evidence of a step is read, it has the report, the position and the ratio on which it was decided', async () => {
    await run.deal(run.alice, run.bob, 100, 20)
    await run.report(975)
    await run.turn()
    const [started, forced] = (await run.fixture.rows('liquidation_changed')) as LiquidationChanged[]
    expect(started?.evidence).to.deep.equal({
      ...{
        as_of: run.fixture.clock.value,
        oracle_price: String(975n * 10n ** 17n),
        oracle_at: run.fixture.clock.value,
      },
      ...{
        funding_index: '0',
        size: 100,
        entry_notional: String(10n ** 19n),
        margin: String(5n * 10n ** 17n),
      },
      ...{ margin_ratio: '25641025641025641', threshold: '27500000000000000', legs: [] },
    })
    const [order] = await forcedOrders()
    expect([forced?.number, forced?.order_id]).to.deep.equal([started?.number, order?.orderId])
  })

  it('when the position is healthy again, the forced order ends, and a later fall starts another liquidation', async () => {
    await run.deal(run.alice, run.bob, 100, 20)
    await mine()
    await run.report(975)
    await run.turn()
    await run.report(990)
    await run.turn()
    expect((await forcedOrders())[0]).to.include({ status: 'CANCELLED', statusReason: 'LIQUIDATION' })
    expect(await running()).to.deep.equal([])
    await run.report(975)
    await run.turn()
    expect((await forcedOrders()).map(({ status }) => status)).to.deep.equal(['CANCELLED', 'OPEN'])
    const numbers = (await run.fixture.rows('liquidation_changed')).map(({ number }) => number)
    expect(new Set(numbers).size).to.equal(2)
  })

  it('when batches leave the order without a fill, each is counted once, also by another owner, and then the ladder goes on', async () => {
    await run.deal(run.alice, run.bob, 100, 20)
    await mine()
    await run.report(970)
    await run.turn()
    await run.turn()
    await run.turn()
    expect((await running())[0]).to.include({ stage: 'closing', widenings: 2 })
    expect(run.resting()[0]).to.include({ forced: true, widenings: 2 })
    run.restart()
    await run.turn()
    await run.turn()
    await run.turn()
    expect((await running())[0]?.widenings).to.be.within(4, 5)
    await run.turn()
    await run.turn()
    expect(await singles()).to.have.length(1)
    expect((await singles())[0]).to.include({ kind: 'deleverage' })
    expect((await forcedOrders())[0]).to.include({ status: 'CANCELLED', statusReason: 'LIQUIDATION' })
  })

  it('when no batch ever fills the order, its widenings and the rows about them end at a bound', async () => {
    await run.deal(run.alice, run.bob, 100, 20)
    await mine()
    await run.report(975)
    for (let turns = 0; turns < MOST_WIDENINGS + 5; turns++) await run.turn()
    expect((await running())[0]).to.include({ stage: 'closing', widenings: MOST_WIDENINGS })
    expect((await steps()).filter((step) => step.startsWith('widened'))).to.have.length(MOST_WIDENINGS)
  })

  it('when the report is stale or no node responds, nothing starts and a resting order stays; then it goes on', async () => {
    await run.deal(run.alice, run.bob, 100, 20)
    await mine()
    run.headTime = null
    await run.report(975)
    await run.turn()
    expect(await running()).to.deep.equal([])
    run.headTime = run.fixture.clock.value
    await run.turn()
    const [before] = await forcedOrders()
    run.fixture.clock.value += 60_000
    run.headTime = run.fixture.clock.value
    await run.turn()
    expect((await forcedOrders())[0]).to.deep.equal(before)
    await run.fixture.place({ by: run.carol, side: 'LONG', steps: 100, limit: 980 })
    await run.report(975)
    await run.turn()
    expect((await forcedOrders())[0]?.settling).to.equal(100)
  })

  it('when the grace after a pause of the bank runs, nothing starts; after it the liquidation starts by itself', async () => {
    await run.deal(run.alice, run.bob, 100, 20)
    await mine()
    await run.pauseUntil(run.fixture.clock.value)
    await run.report(975)
    await run.turn()
    expect(await steps()).to.deep.equal([])
    run.fixture.clock.value += 600_001
    run.headTime = run.fixture.clock.value
    await run.report(975)
    await run.turn()
    expect(await steps()).to.deep.equal(['started BELOW_THRESHOLD', 'forced BELOW_THRESHOLD'])
  })

  it('when the exchange has restricted the market to cancels, no batch runs, but a position without equity is deleveraged', async () => {
    await run.deal(run.alice, run.bob, 100, 20)
    await mine()
    await run.restrict('exchange')
    await run.fixture.place({ by: run.carol, side: 'LONG', steps: 100, limit: 980 })
    await run.report(975)
    await run.turn()
    expect((await forcedOrders())[0]).to.include({ status: 'OPEN', settling: 0 })
    await run.report(949)
    await run.turn()
    expect((await singles()).map(({ kind }) => kind)).to.deep.equal(['deleverage'])
    expect((await forcedOrders())[0]).to.include({ status: 'CANCELLED', statusReason: 'LIQUIDATION' })
  })

  it('when the contract only allows cancels, forced orders fill against resting orders, and no other orders trade', async () => {
    const dave = await run.fixture.trader('dave')
    await run.deal(run.alice, run.bob, 100, 20)
    await mine()
    await run.restrict('contract')
    const bid = await run.fixture.place({ by: run.carol, side: 'LONG', steps: 150, limit: 980 })
    const ask = await run.fixture.place({ by: dave, side: 'SHORT', steps: 50, limit: 970 })
    await run.turn()
    expect((await run.fixture.orderOf(bid)).settling, 'crossing orders wait').to.equal(0)
    await run.report(975)
    await run.turn()
    expect((await forcedOrders())[0]).to.include({ settling: 100 })
    expect((await run.fixture.orderOf(bid)).settling).to.equal(100)
    expect(await run.fixture.orderOf(ask)).to.include({ status: 'OPEN', settling: 0 })
  })

  it('when the position has no equity, it is deleveraged against the best counterparties in the interval of the report', async () => {
    await run.deal(run.alice, run.bob, 100, 20)
    await run.deal(run.alice, run.carol, 50, 20)
    await mine()
    await mine()
    await run.report(949)
    await run.turn()
    const [action] = await singles()
    expect(action).to.include({ kind: 'deleverage', status: 'QUEUED' })
    const payload = action?.payload as unknown as { legs: { steps: number }[] } | undefined
    expect(payload?.legs.reduce((sum, leg) => sum + leg.steps, 0)).to.equal(150)
    expect(await steps()).to.deep.equal(['started BELOW_THRESHOLD', 'deleverage_queued NO_EQUITY'])
    await run.turn()
    expect(await singles(), 'one action at a time').to.have.length(1)
  })

  it('when a backstop can inherit, it does so below two thirds of MMR; a failed action is decided again, later each time', async () => {
    await run.back('100000')
    await run.deal(run.alice, run.bob, 100, 20)
    await mine()
    await run.report(960)
    await run.turn()
    expect((await singles())[0]).to.include({ kind: 'inherit_position' })
    await fail((await singles())[0]?.queue_no as number)
    await run.turn()
    expect(await singles()).to.have.length(1)
    expect((await running())[0]).to.include({ stage: 'waiting', attempts: 1 })
    await run.wait(1_000)
    await run.report(960)
    await run.turn()
    expect(await singles()).to.have.length(2)
    await fail((await singles())[1]?.queue_no as number)
    await run.turn()
    await run.wait(1_000)
    await run.report(960)
    await run.turn()
    expect(await singles(), 'the pause has grown').to.have.length(2)
    await run.wait(1_000)
    await run.report(960)
    await run.turn()
    expect(await singles()).to.have.length(3)
    expect(await steps()).to.deep.equal([
      ...['started BELOW_THRESHOLD', 'inherit_queued BELOW_MAINTENANCE', 'failed LiquidationTooSoon'],
      ...[
        'inherit_queued BELOW_MAINTENANCE',
        'failed LiquidationTooSoon',
        'inherit_queued BELOW_MAINTENANCE',
      ],
    ])
  })

  it('when inheritances have failed, the pause after them does not delay a deleveraging', async () => {
    await run.back('100000')
    await run.deal(run.alice, run.bob, 100, 20)
    await mine()
    await run.report(960)
    for (const _ of [1, 2, 3]) {
      await run.turn()
      await fail((await singles()).at(-1)?.queue_no as number)
      await run.turn()
      await run.wait(4_000)
      await run.report(960)
    }
    await run.turn()
    await fail((await singles()).at(-1)?.queue_no as number)
    await run.turn()
    expect((await running())[0]).to.include({ stage: 'waiting', attempts: 4 })
    await run.report(949)
    await run.turn()
    expect((await singles()).map(({ kind }) => kind)).to.deep.equal([
      ...Array.from({ length: 4 }, () => 'inherit_position'),
      'deleverage',
    ])
    expect(run.failures).to.deep.equal(Array.from({ length: 4 }, () => 'LiquidationTooSoon'))
  })

  it('when an action is dropped behind a voided batch, it is decided again at once, because nothing of it has failed', async () => {
    await run.back('100000')
    const dave = await run.fixture.trader('dave')
    await run.deal(run.alice, run.bob, 100, 20)
    await mine()
    await run.fixture.place({ by: dave, side: 'LONG', steps: 10, limit: 960 })
    await run.fixture.place({ by: run.carol, side: 'SHORT', steps: 10, limit: 960 })
    await run.report(960)
    await run.auction()
    await run.turn()
    expect((await singles()).map(({ kind, status }) => [kind, status])).to.deep.equal([
      ['inherit_position', 'QUEUED'],
    ])
    await voidAll()
    await run.turn()
    expect((await singles()).map(({ status }) => status)).to.deep.equal(['VOIDED', 'QUEUED'])
    expect((await running())[0]).to.include({ stage: 'inheriting', attempts: 0 })
    expect(run.failures).to.deep.equal(['behind a voided batch'])
  })

  it('when the batch of a forced order is voided after its liquidation ended, the order fills again or ends, by the state of the position', async () => {
    await run.deal(run.alice, run.bob, 100, 20)
    await mine()
    await run.fixture.place({ by: run.carol, side: 'LONG', steps: 100, limit: 980 })
    await run.report(975)
    await run.turn()
    await run.turn()
    expect(await running(), 'the matched position is closed').to.deep.equal([])
    await voidAll()
    await run.auction()
    expect((await forcedOrders()).map(({ settling }) => settling)).to.deep.equal([100])
    await voidAll()
    await run.report(990)
    await run.turn()
    await run.turn()
    expect((await forcedOrders()).map(({ statusReason, filled }) => [statusReason, filled])).to.deep.equal([
      ['LIQUIDATION', 0],
    ])
    expect(await running()).to.deep.equal([])
  })

  it('when the block of a forced fill leaves the chain, the fill waits to be mined again, and nothing is liquidated twice', async () => {
    await run.deal(run.alice, run.bob, 100, 20)
    await mine()
    await run.fixture.place({ by: run.carol, side: 'LONG', steps: 100, limit: 980 })
    await run.report(975)
    await run.turn()
    await mine()
    await run.turn()
    await unminePart(run.fixture.db)
    expect((await forcedOrders())[0]).to.include({ status: 'OPEN', settling: 100, filled: 0 })
    await run.turn()
    await mine()
    await run.turn()
    expect(await forcedOrders()).to.have.length(1)
    expect((await forcedOrders())[0]).to.include({ status: 'FILLED', filled: 100 })
  })
})
