import { expect } from 'chai'
import {
  binaryExchange,
  type Exchange,
  futureExchange,
  nextSecond,
  perpetualExchange,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { audit } from '../support/audit.ts'
import { actionOf, DAY, finalize, INSOLVENCY_WINDOW, pass, tick, trade } from '../support/risk.ts'
import { type CurrentExchange, claimAll, freeze, fresh } from '../support/wind-down.ts'

const alice = wallet('alice')
const bob = wallet('bob')

describe('finalizeMarket', () => {
  const current = {} as CurrentExchange
  afterEach(() => audit(current.exchange))
  const SETTLING = 3

  /** A market that is settling after a day's notice. */
  async function settling(exchange: Exchange): Promise<void> {
    const later = (await nextSecond(exchange)) * 1000 + DAY * 1000
    await exchange.trader.connect(exchange.admin).scheduleMode(SETTLING, later)
    await pass(exchange, DAY)
  }

  async function opened(fixture: () => Promise<Exchange>, price: number): Promise<void> {
    current.exchange = await fresh(fixture)
    await trade(current.exchange, alice, bob, { steps: 1000, price, leverage: 1 })
  }

  it('when the final price is reported, claims are paid by it', async () => {
    await opened(futureExchange, 1000)
    await settling(current.exchange)
    const { trader } = current.exchange
    // Bought and sold 10 at 500, at 1x.
    await expect(finalize(current.exchange, { price: e18('600') })).to.emit(trader, 'MarketFinalized')
    await pass(current.exchange, INSOLVENCY_WINDOW)
    expect([...(await claimAll(current, [alice, bob])).values()]).to.deep.equal([e18('6000'), e18('4000')])
  })

  it('when a binary market ends at 0 or 1, one side receives the whole pool', async () => {
    for (const [price, yes, no] of [
      [0n, 0n, e18('1000')],
      [e18('1'), e18('1000'), 0n],
    ] as const) {
      await opened(binaryExchange, 300)
      await settling(current.exchange)
      await finalize(current.exchange, { price })
      await pass(current.exchange, INSOLVENCY_WINDOW)
      const [winner, loser] = yes > 0n ? [alice, bob] : [bob, alice]
      expect((await claimAll(current, [winner])).get(winner.address)).to.equal(yes + no)
      const { trader } = current.exchange
      await expect(trader.claim(loser.address)).to.be.revertedWithCustomError(trader, 'NothingToClaim')
    }
  })

  it('when a binary price is neither 0 nor 1 or a future’s price is out of bounds, it reverts with FinalPriceInvalid', async () => {
    await opened(binaryExchange, 300)
    await settling(current.exchange)
    for (const price of [e18('0.5'), 1n, e18('1') - 1n, e18('1') + 1n]) {
      await expect(finalize(current.exchange, { price })).to.be.revertedWithCustomError(
        current.exchange.trader,
        'FinalPriceInvalid',
      )
    }
    await opened(futureExchange, 1000)
    await settling(current.exchange)
    const { finalLow, finalHigh } = await current.exchange.trader.grid()
    for (const price of [finalHigh + 1n, ...(finalLow > 0n ? [finalLow - 1n] : [])]) {
      await expect(finalize(current.exchange, { price })).to.be.revertedWithCustomError(
        current.exchange.trader,
        'FinalPriceInvalid',
      )
    }
  })

  it('when the report is signed for the ordinary feed or is stale, it reverts with SignerUnknown or ReportStale', async () => {
    await opened(futureExchange, 1000)
    await settling(current.exchange)
    const { trader, oracle } = current.exchange
    const { report, asOf, actionId } = await actionOf(current.exchange, { price: e18('600') })
    await tick(current.exchange)
    await expect(trader.finalizeMarket(actionId, asOf, report)).to.be.revertedWithCustomError(
      oracle,
      'SignerUnknown',
    )
    await expect(
      finalize(current.exchange, { price: e18('600'), observedAt: asOf - 60_000 }),
    ).to.be.revertedWithCustomError(trader, 'ReportStale')
  })

  it('when the market is not settling or is a perpetual, it reverts with MarketNotOpen or MarketWithoutExpiry', async () => {
    await opened(futureExchange, 1000)
    await expect(finalize(current.exchange, { price: e18('600') })).to.be.revertedWithCustomError(
      current.exchange.trader,
      'MarketNotOpen',
    )
    await opened(perpetualExchange, 1000)
    await settling(current.exchange)
    await expect(finalize(current.exchange, { price: e18('100') })).to.be.revertedWithCustomError(
      current.exchange.trader,
      'MarketWithoutExpiry',
    )
  })

  it('when the operator stops before the final price, the market can still be frozen and claimed', async () => {
    await opened(futureExchange, 1000)
    await settling(current.exchange)
    await freeze(current)
    await pass(current.exchange, INSOLVENCY_WINDOW)
    expect([...(await claimAll(current, [alice, bob])).values()]).to.deep.equal([e18('5000'), e18('5000')])
  })
})
