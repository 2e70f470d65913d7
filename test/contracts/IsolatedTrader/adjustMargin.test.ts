import { expect } from 'chai'
import { binaryExchange, caller, chain, type Exchange, nextSecond, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { adjustMargin, marginCall, setFunding } from '../support/adjust.ts'
import {
  AT_100,
  adjustmentCalls,
  alice,
  bob,
  OPENING_TRADE,
  openPositions,
} from '../support/adjustment-fixture.ts'
import { audit } from '../support/audit.ts'
import { pass, trade } from '../support/risk.ts'

describe('adjustMargin', () => {
  let exchange: Exchange
  const { adjust, refused } = adjustmentCalls(() => exchange, adjustMargin)
  const freeOf = async (address: string): Promise<bigint> => (await exchange.bank.account(address)).free
  const marginOf = async (address: string): Promise<bigint> =>
    (await exchange.trader.position(address)).margin

  beforeEach(async () => {
    exchange = await openPositions()
  })
  afterEach(() => audit(exchange))

  // ---------------------------------------------------------------------- amounts

  it('when margin is added, it moves from the free balance to the position and nothing else changes', async () => {
    const [free, before] = [await freeOf(alice.address), await exchange.trader.position(alice.address)]
    const sent = await adjust({ amount: 7n, nonce: 3n })
    const asOf = BigInt((await sent.getBlock())!.timestamp) * 1000n
    await expect(sent)
      .to.emit(exchange.trader, 'MarginAdjusted')
      .withArgs(alice.address, alice.address, 3n, asOf, 7n, before.margin + 7n)
    expect(await freeOf(alice.address)).to.equal(free - 7n)
    const { size, entryNotional, leverage, margin } = await exchange.trader.position(alice.address)
    expect([size, entryNotional, leverage]).to.deep.equal([
      before.size,
      before.entryNotional,
      before.leverage,
    ])
    expect(margin).to.equal(before.margin + 7n)
    expect(await exchange.trader.isMarginNonceUsed(alice.address, 3n)).to.equal(true)
  })

  it('when margin is removed, it succeeds down to 1 / leverage; 1 wei more reverts with RemovalTooLarge', async () => {
    await adjust({ amount: e18('5') })
    const free = await freeOf(alice.address)
    await refused({ amount: -e18('5') - 1n }, 'RemovalTooLarge', [alice.address, e18('5'), e18('5') + 1n])
    await adjust({ amount: -e18('5') })
    expect(await freeOf(alice.address)).to.equal(free + e18('5'))
    expect(await marginOf(alice.address)).to.equal(e18('20'))
    await refused({ amount: -1n }, 'RemovalTooLarge', [alice.address, 0n, 1n])
  })

  it('when removing up to an amount, it removes the maximum or reverts with AmountBelowMinimum', async () => {
    await adjust({ amount: e18('5') })
    const asked = { amount: -e18('9'), removeMode: 'up_to' as const }
    await refused({ ...asked, minAmount: e18('5') + 1n }, 'AmountBelowMinimum', [
      alice.address,
      e18('5') + 1n,
      e18('5'),
    ])
    await adjust({ ...asked, minAmount: e18('5') })
    expect(await marginOf(alice.address)).to.equal(e18('20'))
    await refused(asked, 'NothingMoves', [alice.address])
  })

  it('when the position has a profit, it pays out margin only', async () => {
    await adjust({ amount: -e18('20'), price: e18('108'), removeMode: 'up_to' })
    // Equity 28 of 108: 21.6 must stay, 6.4 may leave.
    expect(await marginOf(alice.address)).to.equal(e18('13.6'))
  })

  it('when the amount exceeds slot, margin or balance, it reverts with PositionOutOfRange, RemovalTooLarge or FreeBalanceInsufficient', async () => {
    await refused({ amount: (1n << 255n) - 1n }, 'PositionOutOfRange', [alice.address])
    await refused({ amount: -(1n << 255n) }, 'RemovalTooLarge', [alice.address, 0n, 1n << 255n])
    const free = await freeOf(alice.address)
    await expect(adjust({ amount: free + 1n }))
      .to.be.revertedWithCustomError(exchange.bank, 'FreeBalanceInsufficient')
      .withArgs(alice.address, free, free + 1n)
    await adjust({ amount: free })
    expect(await freeOf(alice.address)).to.equal(0n)
  })

  it('when a withdrawal is pending, the pending amount backs no addition', async () => {
    const free = await freeOf(alice.address)
    await exchange.bank.connect(await caller(exchange, alice)).requestWithdrawal(free - 5n)
    await expect(adjust({ amount: 6n }))
      .to.be.revertedWithCustomError(exchange.bank, 'FreeBalanceInsufficient')
      .withArgs(alice.address, 5n, 6n)
    await adjust({ amount: 5n })
  })

  it('when the amount, mode or minimum is invalid or there is no position, it reverts with the error for that case', async () => {
    await refused({ amount: 0n }, 'NothingMoves', [alice.address])
    await refused({ amount: 5n, by: wallet('carol') }, 'NoPosition', [wallet('carol').address])
    await refused({ amount: 5n, removeMode: 'up_to' }, 'RemoveModeInvalid', [alice.address, 1])
    await refused({ amount: 5n, minAmount: 6n }, 'AmountBelowMinimum', [alice.address, 6n, 5n])
    const call = await marginCall(exchange, { by: alice, amount: -1n })
    await expect(
      exchange.trader.adjustMargin(call.asOf, { ...call.struct, removeMode: 2 }, call.report, call.signature),
    ).to.be.revertedWithCustomError(exchange.trader, 'AdjusterUnauthorized')
  })

  // ---------------------------------------------------------------------- near liquidation

  it('when the position is liquidatable, only an addition that reaches IMR succeeds', async () => {
    // Equity 20 + P - 100, liquidatable below 2.75 %: at 82 it is 2 of 82, and IMR requires 3.69.
    await pass(exchange, 5)
    const sick = { price: e18('82') }
    await refused({ amount: e18('1.69') - 1n, ...sick }, 'AdditionInsufficient', [
      alice.address,
      e18('1.69'),
      e18('1.69') - 1n,
    ])
    await refused({ amount: -1n, ...sick }, 'RemovalTooLarge', [alice.address, 0n, 1n])
    await adjust({ amount: e18('1.69'), ...sick })
  })

  it('when the position is not liquidatable, an addition of 1 wei succeeds', async () => {
    await pass(exchange, 5)
    await adjust({ amount: 1n, price: e18('83') })
  })

  it('when accrued funding makes it liquidatable, a small addition reverts with AdditionInsufficient before an action settles it', async () => {
    await pass(exchange, 5)
    // A rate of 0.2 per hour on a thousand steps.
    await setFunding(exchange, { price: e18('82.5'), rate: e18('0.0002') })
    await pass(exchange, 3000)
    // 0.167 have accrued: equity 2.333 of 82.5, liquidatable below 2.269.
    await adjust({ amount: 1n, price: e18('82.5') })
    await setFunding(exchange, { price: e18('82.5'), rate: e18('0.0002') })
    await pass(exchange, 1500)
    await refused({ amount: 1n, price: e18('82.5') }, 'AdditionInsufficient')
    const { margin } = await exchange.trader.position(alice.address)
    expect(
      margin - e18('17.5') > e18('2.26875'),
      'at the last action’s index it is not liquidatable',
    ).to.equal(true)
  })

  it('when no funding rate is active any more, funding accrued earlier still reduces the margin', async () => {
    await pass(exchange, 5)
    await setFunding(exchange, { price: AT_100, rate: e18('0.0002') })
    await pass(exchange, 3000)
    await setFunding(exchange, { price: AT_100, rate: 0n })
    const { funded, fundingIndex } = await exchange.trader.lastReference()
    expect([funded, fundingIndex > 0n]).to.deep.equal([false, true])
    const paid = BigInt(OPENING_TRADE.steps) * fundingIndex
    await adjust({ amount: e18('5') })
    await refused({ amount: -e18('5') }, 'RemovalTooLarge', [alice.address, e18('5') - paid, e18('5')])
    await adjust({ amount: paid - e18('5') })
  })

  // ---------------------------------------------------------------------- the report

  it('when the report is the last used or older, the last used price applies without a proof', async () => {
    await adjustMargin(exchange, { by: alice, amount: e18('5') })
    const older = { price: e18('1000'), observedAt: 1 }
    await refused({ amount: -e18('5') - 1n, ...older }, 'RemovalTooLarge', [
      alice.address,
      e18('5'),
      e18('5') + 1n,
    ])
    await adjust({ amount: -e18('5'), ...older })
    const { oraclePrice, observedAt } = await exchange.trader.lastReference()
    expect(oraclePrice).to.equal(AT_100)
    await adjust({ amount: 1n, price: e18('1000'), observedAt: Number(observedAt) })
    // Exact to the wei, also for the short, for which a higher price is worse.
    await adjustMargin(exchange, { by: bob, amount: e18('5') })
    await adjustMargin(exchange, { by: bob, amount: -e18('5') })
  })

  it('when the last used report has its maximum age, it is accepted; 1 ms later it reverts with ReportStale', async () => {
    const end = Number((await exchange.trader.lastReference()).observedAt) + 10_000
    await pass(exchange, 8)
    await adjustMargin(exchange, { by: alice, amount: 1n, asOf: end })
    await expect(adjustMargin(exchange, { by: alice, amount: 1n, asOf: end + 1 }))
      .to.be.revertedWithCustomError(exchange.trader, 'ReportStale')
      .withArgs(end + 1, end - 10_000, 10_000)
  })

  it('when the last used report is stale, it reverts with ReportStale unless a newer report is supplied', async () => {
    await pass(exchange, 15)
    await expect(adjustMargin(exchange, { by: alice, amount: 1n })).to.be.revertedWithCustomError(
      exchange.trader,
      'ReportStale',
    )
    await adjust({ amount: 1n })
  })

  it('when a newer report is supplied, it passes the checks of a batch’s report and is not stored', async () => {
    const before = await exchange.trader.lastReference()
    const asOf = (await nextSecond(exchange)) * 1000
    await refused({ amount: 1n, asOf, observedAt: asOf + 2001 }, 'ReportAhead')
    await refused({ amount: 1n, price: e18('113') }, 'ReportMoveTooLarge')
    await refused({ amount: 1n, price: 0n }, 'ReportPriceInvalid')
    await adjust({ amount: 1n, price: e18('101') })
    expect(await exchange.trader.lastReference()).to.deep.equal(before)
    await pass(exchange, 15)
    const late = (await nextSecond(exchange)) * 1000
    await refused({ amount: 1n, asOf: late, observedAt: late - 10_001 }, 'ReportStale')
  })

  it('when the report’s price differs from the signed price, it reverts with SignerUnknown', async () => {
    const call = await marginCall(exchange, { by: alice, amount: 1n, price: e18('101') })
    const report = { ...call.report, price: e18('102') }
    await expect(
      exchange.trader.adjustMargin(call.asOf, call.struct, report, call.signature),
    ).to.be.revertedWithCustomError(exchange.oracle, 'SignerUnknown')
  })

  // ---------------------------------------------------------------------- modes

  it('does not consume an actionId and leaves the next batch valid', async () => {
    const { actionId } = await exchange.trader.clock()
    await adjust({ amount: 1n })
    expect((await exchange.trader.clock()).actionId).to.equal(actionId)
    await trade(exchange, alice, bob, { ...OPENING_TRADE, steps: 10 })
  })

  it('when the market is halted, additions succeed and removals revert with MarketNotOpen', async () => {
    const HALTED = 2
    await exchange.trader.connect(exchange.admin).restrictMode(HALTED)
    await pass(exchange, 6)
    await refused({ amount: -1n, removeMode: 'up_to', price: e18('101') }, 'MarketNotOpen', [HALTED])
    await adjust({ amount: 1n })
  })
})

describe('adjustMargin in a binary market', () => {
  let exchange: Exchange
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(binaryExchange)
    // 10 at 0.6: the long posts 6, the short 4, each its maximum loss.
    await trade(exchange, alice, bob, { steps: 10, price: 600, leverage: 1 })
  })
  afterEach(() => audit(exchange))

  it('when a position is fully collateralised, removing 1 wei reverts with RemovalTooLarge at any price', async () => {
    for (const by of [alice, bob]) {
      for (const price of [e18('0.6'), e18('0.62'), e18('0.58')]) {
        const asked = { by, price, amount: -1n } as const
        await expect(adjustMargin(exchange, asked)).to.be.revertedWithCustomError(
          exchange.trader,
          'RemovalTooLarge',
        )
      }
    }
  })

  it('when more than the maximum loss is posted, exactly the excess can be removed', async () => {
    const price = e18('0.6')
    await adjustMargin(exchange, { by: bob, price, amount: 9n })
    const asked = { by: bob, price, amount: -10n } as const
    await expect(adjustMargin(exchange, asked))
      .to.be.revertedWithCustomError(exchange.trader, 'RemovalTooLarge')
      .withArgs(bob.address, 9n, 10n)
    await adjustMargin(exchange, { ...asked, amount: -9n })
  })
})
