import { expect } from 'chai'
import { binaryExchange, caller, chain, type Exchange, nextSecond, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { adjustMargin, marginCall, setFunding } from '../support/adjust.ts'
import { AT_100, adjusting, alice, bob, DEAL, dealt } from '../support/adjusting.ts'
import { audit } from '../support/audit.ts'
import { pass, trade } from '../support/risk.ts'

describe('adjustMargin', () => {
  let exchange: Exchange
  const { adjust, refused } = adjusting(() => exchange, adjustMargin)
  const freeOf = async (address: string): Promise<bigint> => (await exchange.bank.account(address)).free
  const marginOf = async (address: string): Promise<bigint> =>
    (await exchange.trader.position(address)).margin

  beforeEach(async () => {
    exchange = await dealt()
  })
  afterEach(() => audit(exchange))

  // ---------------------------------------------------------------------- what moves

  it('when margin is added, it leaves the free balance and nothing else changes', async () => {
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

  it('when margin is removed, up to the last wei above 1 / leverage', async () => {
    await adjust({ amount: e18('5') })
    const free = await freeOf(alice.address)
    await refused({ amount: -e18('5') - 1n }, 'RemovalTooLarge', [alice.address, e18('5'), e18('5') + 1n])
    await adjust({ amount: -e18('5') })
    expect(await freeOf(alice.address)).to.equal(free + e18('5'))
    expect(await marginOf(alice.address)).to.equal(e18('20'))
    await refused({ amount: -1n }, 'RemovalTooLarge', [alice.address, 0n, 1n])
  })

  it('when up to an amount is removed, what can be is, if it reaches the minimum', async () => {
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

  it('when profit stands behind the position, only margin is paid out', async () => {
    await adjust({ amount: -e18('20'), price: e18('108'), removeMode: 'up_to' })
    // Equity 28 of 108: 21.6 must stay, 6.4 may go.
    expect(await marginOf(alice.address)).to.equal(e18('13.6'))
  })

  it('when the amount is what no balance or slot holds', async () => {
    await refused({ amount: (1n << 255n) - 1n }, 'PositionOutOfRange', [alice.address])
    await refused({ amount: -(1n << 255n) }, 'RemovalTooLarge', [alice.address, 0n, 1n << 255n])
    const free = await freeOf(alice.address)
    await expect(adjust({ amount: free + 1n }))
      .to.be.revertedWithCustomError(exchange.bank, 'FreeBalanceInsufficient')
      .withArgs(alice.address, free, free + 1n)
    await adjust({ amount: free })
    expect(await freeOf(alice.address)).to.equal(0n)
  })

  it('when a withdrawal is pending, it backs no adjustment, however fresh', async () => {
    const free = await freeOf(alice.address)
    await exchange.bank.connect(await caller(exchange, alice)).requestWithdrawal(free - 5n)
    await expect(adjust({ amount: 6n }))
      .to.be.revertedWithCustomError(exchange.bank, 'FreeBalanceInsufficient')
      .withArgs(alice.address, 5n, 6n)
    await adjust({ amount: 5n })
  })

  it('when nothing is asked for, or there is nothing to ask of', async () => {
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

  it('when the position can be liquidated, only an addition that reaches IMR is taken', async () => {
    // Equity 20 + P - 100, liquidatable below 2.75 %: at 82 it is 2 of 82, and IMR asks for 3.69.
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

  it('when it cannot, any addition is', async () => {
    await pass(exchange, 5)
    await adjust({ amount: 1n, price: e18('83') })
  })

  it('when funding that is due makes it liquidatable, it counts before any action has settled it', async () => {
    await pass(exchange, 5)
    // 0.2 an hour on a thousand steps.
    await setFunding(exchange, { price: e18('82.5'), rate: e18('0.0002') })
    await pass(exchange, 3000)
    // 0.167 are due: equity 2.333 of 82.5, eligible below 2.269.
    await adjust({ amount: 1n, price: e18('82.5') })
    await setFunding(exchange, { price: e18('82.5'), rate: e18('0.0002') })
    await pass(exchange, 1500)
    await refused({ amount: 1n, price: e18('82.5') }, 'AdditionInsufficient')
    const { margin } = await exchange.trader.position(alice.address)
    expect(margin - e18('17.5') > e18('2.26875'), 'by the last action’s index it is not eligible').to.equal(
      true,
    )
  })

  it('when no rate runs any more, what funding took still counts', async () => {
    await pass(exchange, 5)
    await setFunding(exchange, { price: AT_100, rate: e18('0.0002') })
    await pass(exchange, 3000)
    await setFunding(exchange, { price: AT_100, rate: 0n })
    const { funded, fundingIndex } = await exchange.trader.lastReference()
    expect([funded, fundingIndex > 0n]).to.deep.equal([false, true])
    const paid = BigInt(DEAL.steps) * fundingIndex
    await adjust({ amount: e18('5') })
    await refused({ amount: -e18('5') }, 'RemovalTooLarge', [alice.address, e18('5') - paid, e18('5')])
    await adjust({ amount: paid - e18('5') })
  })

  // ---------------------------------------------------------------------- the report

  it('when the report is the market’s last, or older, the market’s last counts and needs no proof', async () => {
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
    // To the wei, also for whom a higher price is worse.
    await adjustMargin(exchange, { by: bob, amount: e18('5') })
    await adjustMargin(exchange, { by: bob, amount: -e18('5') })
  })

  it('when the market’s last is as old as may be, it still counts', async () => {
    const end = Number((await exchange.trader.lastReference()).observedAt) + 10_000
    await pass(exchange, 8)
    await adjustMargin(exchange, { by: alice, amount: 1n, asOf: end })
    await expect(adjustMargin(exchange, { by: alice, amount: 1n, asOf: end + 1 }))
      .to.be.revertedWithCustomError(exchange.trader, 'ReportStale')
      .withArgs(end + 1, end - 10_000, 10_000)
  })

  it('when the market’s last has gone stale, one must be brought', async () => {
    await pass(exchange, 15)
    await expect(adjustMargin(exchange, { by: alice, amount: 1n })).to.be.revertedWithCustomError(
      exchange.trader,
      'ReportStale',
    )
    await adjust({ amount: 1n })
  })

  it('when the report is brought, it is checked like a batch’s and kept nowhere', async () => {
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

  it('when the report is signed by strangers', async () => {
    const call = await marginCall(exchange, { by: alice, amount: 1n, price: e18('101') })
    const report = { ...call.report, price: e18('102') }
    await expect(
      exchange.trader.adjustMargin(call.asOf, call.struct, report, call.signature),
    ).to.be.revertedWithCustomError(exchange.oracle, 'SignerUnknown')
  })

  // ---------------------------------------------------------------------- modes

  it('takes no action number and does not hold up a batch', async () => {
    const { actionId } = await exchange.trader.clock()
    await adjust({ amount: 1n })
    expect((await exchange.trader.clock()).actionId).to.equal(actionId)
    await trade(exchange, alice, bob, { ...DEAL, steps: 10 })
  })

  it('when the market is halted, margin can be added and not removed', async () => {
    const HALTED = 2
    await exchange.trader.connect(exchange.admin).restrictMode(HALTED)
    await pass(exchange, 6)
    await refused({ amount: -1n, removeMode: 'up_to', price: e18('101') }, 'MarketNotOpen', [HALTED])
    await adjust({ amount: 1n })
  })
})

describe('adjustMargin, binary', () => {
  let exchange: Exchange
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(binaryExchange)
    // 10 at 0.6: the long posts 6, the short 4, and nobody can lose more.
    await trade(exchange, alice, bob, { steps: 10, price: 600, leverage: 1 })
  })
  afterEach(() => audit(exchange))

  it('when a position is fully collateralised, not a wei can leave, whatever the price', async () => {
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

  it('when more than the largest loss is posted, the rest can', async () => {
    const price = e18('0.6')
    await adjustMargin(exchange, { by: bob, price, amount: 9n })
    const asked = { by: bob, price, amount: -10n } as const
    await expect(adjustMargin(exchange, asked))
      .to.be.revertedWithCustomError(exchange.trader, 'RemovalTooLarge')
      .withArgs(bob.address, 9n, 10n)
    await adjustMargin(exchange, { ...asked, amount: -9n })
  })
})
