import { expect } from 'chai'
import {
  binaryExchange,
  type Exchange,
  futureExchange,
  nextSecond,
  perpetualExchange,
  restart,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { setFunding } from '../support/adjust.ts'
import { audit } from '../support/audit.ts'
import {
  actionOf,
  DAY,
  endAt,
  finalize,
  INSOLVENCY_WINDOW,
  pass,
  passDisputeWindow,
  reportFinal,
  settleMode,
  tick,
  trade,
} from '../support/risk.ts'
import { asAnyAccount, type CurrentExchange, claimAll, poke } from '../support/wind-down.ts'

const alice = wallet('alice')
const bob = wallet('bob')
const DAY_MS = DAY * 1000
const WEEK = 7 * DAY

describe('finalizeMarket', function () {
  this.timeout(60_000)
  const current = {} as CurrentExchange
  afterEach(() => audit(current.exchange))
  after(restart)

  async function opened(fixture: () => Promise<Exchange>, price: number): Promise<void> {
    await restart()
    current.exchange = await fixture()
    await trade(current.exchange, alice, bob, { steps: 1000, price, leverage: 1 })
  }

  const reverts = (call: Promise<unknown>, error: string) =>
    expect(call).to.be.revertedWithCustomError(current.exchange.trader, error)

  /** Waits until the next block has the time of a future's expiry. */
  async function expire(): Promise<number> {
    const { time } = current.exchange.connection.networkHelpers
    const { expiresAt } = await current.exchange.trader.ending()
    await time.increaseTo(Number(expiresAt) / 1000)
    return Number(expiresAt)
  }

  it('when a future has expired, any account ends it at the newest report, and claims are paid by it', async () => {
    await opened(futureExchange, 1000)
    await expire()
    const { trader } = current.exchange
    await reportFinal(current.exchange, { price: e18('700') })
    await reportFinal(current.exchange, { price: e18('600') })
    await passDisputeWindow(current.exchange)
    const { actionId } = await trader.clock()
    const asOf = (await nextSecond(current.exchange)) * 1000
    await tick(current.exchange)
    // Bought and sold 10 at 500, at 1x.
    await expect((await asAnyAccount(current)).finalizeMarket(actionId + 1n, asOf)).to.emit(
      trader,
      'MarketFinalized',
    )
    await pass(current.exchange, INSOLVENCY_WINDOW)
    expect([...(await claimAll(current, [alice, bob])).values()]).to.deep.equal([e18('6000'), e18('4000')])
  })

  it('when a perpetual is delisted, it ends at the report of its own feed that is nearest to the close', async () => {
    await opened(perpetualExchange, 1000)
    const closesAt = await settleMode(current.exchange)
    await reportFinal(current.exchange, { price: e18('130'), observedAt: closesAt + 900 })
    await reportFinal(current.exchange, { price: e18('120'), observedAt: closesAt })
    await reverts(
      reportFinal(current.exchange, { price: e18('110'), observedAt: closesAt + 1 }),
      'FinalReportSuperseded',
    )
    await passDisputeWindow(current.exchange)
    await finalize(current.exchange)
    expect((await current.exchange.trader.windDown()).price).to.equal(e18('120'))
    await pass(current.exchange, INSOLVENCY_WINDOW)
    expect([...(await claimAll(current, [alice, bob])).values()]).to.deep.equal([e18('120'), e18('80')])
  })

  it('when a funding rate outlasts the close of a perpetual, it accrues up to the close only', async () => {
    await opened(perpetualExchange, 1000)
    const { trader, admin, connection } = current.exchange
    const closesAt = ((await nextSecond(current.exchange)) + DAY + 60) * 1000
    await trader.connect(admin).scheduleMode(3, closesAt)
    await connection.networkHelpers.time.increaseTo(closesAt / 1000 - 61)
    // 3.6e9 wei per step and hour: 1,000 wei per millisecond.
    await setFunding(current.exchange, { price: e18('100'), rate: 3_600_000_000n })
    const { validFrom } = await trader.fundingRate()
    await connection.networkHelpers.time.increaseTo(closesAt / 1000)
    await endAt(current.exchange, e18('100'))
    const { fundingIndex } = await trader.lastReference()
    expect(fundingIndex).to.equal((BigInt(closesAt) - validFrom) * 1000n)
  })

  it('when a perpetual’s report moves further than its parameters allow, it reverts with ReportMoveTooLarge', async () => {
    await opened(perpetualExchange, 1000)
    const closesAt = await settleMode(current.exchange)
    // The last report is newer than the close minus 1 s, so that 10 % and 2 % per second are the bound.
    const { report } = await actionOf(current.exchange, { price: e18('100'), observedAt: closesAt - 1000 })
    await tick(current.exchange)
    await (await asAnyAccount(current)).poke(report)
    const high = { price: e18('115'), observedAt: closesAt }
    await reverts(reportFinal(current.exchange, high), 'ReportMoveTooLarge')
    await reportFinal(current.exchange, { price: e18('111'), observedAt: closesAt })
  })

  it('when a binary market ends at 0 or 1, one side receives the whole pool', async () => {
    for (const [price, yes, no] of [
      [0n, 0n, e18('1000')],
      [e18('1'), e18('1000'), 0n],
    ] as const) {
      await opened(binaryExchange, 300)
      await expire()
      await endAt(current.exchange, price)
      await pass(current.exchange, INSOLVENCY_WINDOW)
      const [winner, loser] = yes > 0n ? [alice, bob] : [bob, alice]
      expect((await claimAll(current, [winner])).get(winner.address)).to.equal(yes + no)
      const { trader } = current.exchange
      await expect(trader.claim(loser.address)).to.be.revertedWithCustomError(trader, 'NothingToClaim')
    }
  })

  it('when a binary price is neither 0 nor 1 or a future’s price is out of bounds, it reverts with FinalPriceInvalid', async () => {
    await opened(binaryExchange, 300)
    await expire()
    for (const price of [e18('0.5'), 1n, e18('1') - 1n, e18('1') + 1n]) {
      await reverts(reportFinal(current.exchange, { price }), 'FinalPriceInvalid')
    }
    await opened(futureExchange, 1000)
    await expire()
    const { finalLow, finalHigh } = await current.exchange.trader.grid()
    for (const price of [finalHigh + 1n, ...(finalLow > 0n ? [finalLow - 1n] : [])]) {
      await reverts(reportFinal(current.exchange, { price }), 'FinalPriceInvalid')
    }
  })

  it('when the report is signed for the ordinary feed, it reverts with SignerUnknown', async () => {
    await opened(futureExchange, 1000)
    await expire()
    const { trader, oracle } = current.exchange
    const { report } = await actionOf(current.exchange, { price: e18('600') })
    await tick(current.exchange)
    await expect(trader.submitFinalReport(report)).to.be.revertedWithCustomError(oracle, 'SignerUnknown')
  })

  it('when a report is observed 1 ms before the close or over 2 s ahead of block time, it reverts with FinalReportEarly or ReportAhead', async () => {
    await opened(futureExchange, 1000)
    const closesAt = await expire()
    const at = async () => (await nextSecond(current.exchange)) * 1000
    await reverts(
      reportFinal(current.exchange, { price: e18('600'), observedAt: closesAt - 1 }),
      'FinalReportEarly',
    )
    await reverts(
      reportFinal(current.exchange, { price: e18('600'), observedAt: (await at()) + 2001 }),
      'ReportAhead',
    )
    await reportFinal(current.exchange, { price: e18('600'), observedAt: closesAt })
    await reverts(
      reportFinal(current.exchange, { price: e18('700'), observedAt: closesAt }),
      'FinalReportSuperseded',
    )
    await reportFinal(current.exchange, { price: e18('600'), observedAt: (await at()) + 2000 })
  })

  it('when a report is replaced, the dispute window ends as before: reports succeed until its last second, finalizing after it', async () => {
    await opened(futureExchange, 1000)
    await expire()
    const { trader, operator, connection } = current.exchange
    const { time } = connection.networkHelpers
    await reportFinal(current.exchange, { price: (await trader.grid()).finalHigh })
    const until = ((await time.latest()) + DAY) * 1000
    await time.increaseTo(until / 1000 - 1)
    await reverts(finalize(current.exchange), 'FinalizeEarly')
    await expect(reportFinal(current.exchange, { price: e18('600') }))
      .to.emit(trader, 'FinalPriceReported')
      .withArgs(operator.address, e18('600'), until, until)
    await reverts(reportFinal(current.exchange, { price: e18('700') }), 'FinalReportLate')
    const at = async () => (await nextSecond(current.exchange)) * 1000
    await reverts(finalize(current.exchange, { asOf: (await at()) + 2001 }), 'AsOfAhead')
    await reverts(finalize(current.exchange, { asOf: (await at()) - 10_001 }), 'AsOfStale')
    await finalize(current.exchange)
    expect(await time.latest()).to.equal(until / 1000 + 1)
    expect((await trader.windDown()).price).to.equal(e18('600'))
  })

  it('when the dispute window is extended within it, reports replace the last one until its new end', async () => {
    await opened(futureExchange, 1000)
    await expire()
    await reportFinal(current.exchange, { price: e18('600') })
    const { trader, admin, connection } = current.exchange
    const { reportedAt } = await trader.ending()
    await pass(current.exchange, DAY - 60)
    await expect(trader.connect(admin).extendDisputeWindow(3 * DAY_MS))
      .to.emit(trader, 'DisputeWindowExtended')
      .withArgs(3 * DAY_MS)
    await reverts(trader.connect(admin).extendDisputeWindow(4 * DAY_MS), 'DisputeWindowFixed')
    await connection.networkHelpers.time.increaseTo(Number(reportedAt) / 1000 + 3 * DAY - 60)
    await reportFinal(current.exchange, { price: e18('700') })
    await reverts(finalize(current.exchange), 'FinalizeEarly')
    await passDisputeWindow(current.exchange)
    await finalize(current.exchange)
    expect((await trader.windDown()).price).to.equal(e18('700'))
  })

  it('when the dispute window would not grow or exceed 14 days, extending reverts with DisputeWindowInvalid', async () => {
    await opened(futureExchange, 1000)
    const { trader, admin } = current.exchange
    for (const window of [DAY_MS, 14 * DAY_MS + 1]) {
      await reverts(trader.connect(admin).extendDisputeWindow(window), 'DisputeWindowInvalid')
    }
    await trader.connect(admin).extendDisputeWindow(14 * DAY_MS)
  })

  it('when the expiry is extended a day ahead, batches settle until the new expiry; later, again or by over 30 days it reverts', async () => {
    await opened(futureExchange, 1000)
    const { trader, admin, connection, spec } = current.exchange
    const { time } = connection.networkHelpers
    const extended = spec.expiresAt + 30 * DAY_MS
    const extend = (to: number) => trader.connect(admin).extendExpiry(to)
    for (const to of [spec.expiresAt, extended + 1]) await reverts(extend(to), 'ExpiryInvalid')
    await time.setNextBlockTimestamp(spec.expiresAt / 1000 - DAY + 1)
    await reverts(extend(extended), 'ExtensionTooLate')
    await opened(futureExchange, 1000)
    await time.setNextBlockTimestamp(spec.expiresAt / 1000 - DAY)
    await expect(extend(extended)).to.emit(trader, 'ExpiryExtended').withArgs(extended)
    await reverts(extend(extended + 1), 'ExpiryFixed')
    await time.increaseTo(extended / 1000 - 10)
    await trade(current.exchange, alice, bob, { steps: 1, price: 1000, leverage: 1 })
    await time.increaseTo(extended / 1000)
    await reverts(
      trade(current.exchange, alice, bob, { steps: 1, price: 1000, leverage: 1 }),
      'MarketNotOpen',
    )
    expect((await trader.grid()).expiresAt).to.equal(BigInt(spec.expiresAt))
  })

  it('when a future is settled before its expiry, the earlier time is its close', async () => {
    await opened(futureExchange, 1000)
    const closesAt = await settleMode(current.exchange)
    await reverts(
      reportFinal(current.exchange, { price: e18('600'), observedAt: closesAt - 1 }),
      'FinalReportEarly',
    )
    await endAt(current.exchange, e18('600'))
    expect((await current.exchange.trader.windDown()).price).to.equal(e18('600'))
  })

  it('when another mode replaces a scheduled close, the market goes on', async () => {
    await opened(perpetualExchange, 1000)
    const { trader, admin } = current.exchange
    const at = async () => ((await nextSecond(current.exchange)) + DAY + 60) * 1000
    await trader.connect(admin).scheduleMode(3, await at())
    await trader.connect(admin).scheduleMode(0, await at())
    expect((await trader.ending()).settlingAt).to.equal(0n)
    await pass(current.exchange, 2 * DAY)
    await trade(current.exchange, alice, bob, { steps: 1, price: 1000, leverage: 1 })
  })

  it('when no report comes within a week of the close, any account freezes the market at its last price before the close', async () => {
    await opened(futureExchange, 1000)
    const { trader, connection, spec } = current.exchange
    const { time } = connection.networkHelpers
    await time.setNextBlockTimestamp(spec.expiresAt / 1000)
    await reverts((await asAnyAccount(current)).requestFreeze(), 'MarketClosed')
    const closesAt = await expire()
    await reverts(poke(current, e18('505')), 'MarketClosed')
    await reverts(poke(current, e18('505'), { observedAt: closesAt }), 'MarketClosed')
    await time.setNextBlockTimestamp(closesAt / 1000 + WEEK)
    await reverts((await asAnyAccount(current)).freeze(), 'FreezeEarly')
    await time.setNextBlockTimestamp(closesAt / 1000 + WEEK + 1)
    await (await asAnyAccount(current)).freeze()
    expect((await trader.windDown()).price).to.equal(e18('500'))
    await pass(current.exchange, INSOLVENCY_WINDOW)
    expect([...(await claimAll(current, [alice, bob])).values()]).to.deep.equal([e18('5000'), e18('5000')])
  })

  it('when a freeze was requested before the close, it cannot be executed after it', async () => {
    await opened(futureExchange, 1000)
    const { trader, connection, spec } = current.exchange
    await connection.networkHelpers.time.increaseTo(spec.expiresAt / 1000 - DAY)
    await (await asAnyAccount(current)).requestFreeze()
    await pass(current.exchange, DAY + 10)
    await reverts((await asAnyAccount(current)).freeze(), 'FreezeEarly')
    expect((await trader.windDown()).endedAt).to.equal(0n)
  })
})
