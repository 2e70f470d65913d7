/** A pause of the bank leaves time for covering a deficit: reports and claims wait for a day after it. */
import { expect } from 'chai'
import { COVER_TIME } from '../../../domain/risk/wind-down.ts'
import { type Exchange, perpetualExchange, settle, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { audit } from '../support/audit.ts'
import { DAY, depositFor, INSOLVENCY_WINDOW, pass } from '../support/risk.ts'
import { asAnyAccount, type CurrentExchange, freeze, fresh, poke } from '../support/wind-down.ts'

const alice = wallet('alice')
const bob = wallet('bob')
const COVER = COVER_TIME / 1000
const PAUSE = 3 * DAY

/** Alice owes 5 at 90; Bob, short with 20, is owed 30. */
const insolvent = async (): Promise<Exchange> => {
  const exchange = await perpetualExchange()
  await settle(exchange, {
    price: 1000,
    fills: [
      { by: alice, side: 'LONG', fill: 1000, leverage: 20 },
      { by: bob, side: 'SHORT', fill: 1000, leverage: 5 },
    ],
  })
  await pass(exchange, 60)
  await poke({ exchange }, e18('90'))
  await freeze({ exchange })
  return exchange
}

describe('claims around a pause of the bank', () => {
  const current = {} as CurrentExchange
  let endedAt: number
  let trader: Exchange['trader']
  const to = (second: number) => current.exchange.connection.networkHelpers.time.setNextBlockTimestamp(second)
  const pauseAt = async (second: number): Promise<number> => {
    await to(second)
    await current.exchange.bank.pause()
    return Number((await current.exchange.bank.lastPause()).endsAt)
  }
  const early = (opensAfter: number) =>
    expect(trader.claim(bob.address))
      .to.be.revertedWithCustomError(trader, 'ClaimEarly')
      .withArgs(opensAfter * 1000)
  const over = (windowEnd: number) =>
    expect(trader.reportInsolvent([alice.address]))
      .to.be.revertedWithCustomError(trader, 'InsolvencyWindowOver')
      .withArgs(windowEnd * 1000)

  beforeEach(async () => {
    current.exchange = await fresh(insolvent)
    trader = await asAnyAccount(current)
    endedAt = Number((await trader.windDown()).endedAt) / 1000
  })
  afterEach(() => audit(current.exchange))

  it('when a pause covers the whole window, the deficit can be reported and covered for a day after it, before claims open', async () => {
    const endsAt = await pauseAt(endedAt + 2)
    expect(endsAt).to.equal(endedAt + 2 + PAUSE)
    await to(endsAt + 1)
    await early(endsAt + COVER)
    await trader.reportInsolvent([alice.address])
    await depositFor(current.exchange, current.exchange.spec.trader, e18('5'))
    await trader.coverDeficit(e18('5'))
    await to(endsAt + COVER)
    await early(endsAt + COVER)
    await to(endsAt + COVER + 1)
    await expect(trader.claim(bob.address))
      .to.emit(trader, 'Claimed')
      .withArgs(bob.address, e18('30'), e18('30'), 0n)
  })

  it('when a pause began and ended well before the end of the window, claims open as planned', async () => {
    await pauseAt(endedAt + 60)
    await to(endedAt + DAY)
    await current.exchange.bank.unpause()
    await to(endedAt + INSOLVENCY_WINDOW)
    await early(endedAt + INSOLVENCY_WINDOW)
    await to(endedAt + INSOLVENCY_WINDOW + 1)
    await trader.claim(bob.address)
  })

  it('when a pause begins just before the first claim, claims open at most seven days after the end', async () => {
    const endsAt = await pauseAt(endedAt + INSOLVENCY_WINDOW)
    const opensAfter = endsAt + COVER
    expect(opensAfter).to.equal(endedAt + 7 * DAY)
    await to(opensAfter)
    await early(opensAfter)
    await trader.reportInsolvent([alice.address]).catch(() => {})
    await to(opensAfter + 2)
    await over(opensAfter)
    await trader.claim(bob.address)
  })

  it('when the guardian ends the pause early, the day counts from there', async () => {
    await pauseAt(endedAt + INSOLVENCY_WINDOW - 60)
    await to(endedAt + INSOLVENCY_WINDOW + 60)
    await current.exchange.bank.unpause()
    const opensAfter = endedAt + INSOLVENCY_WINDOW + 60 + COVER
    await early(opensAfter)
    await to(opensAfter + 1)
    await trader.claim(bob.address)
  })

  it('when the haircut was fixed before a pause, the pause reopens neither reports nor the haircut', async () => {
    await pass(current.exchange, INSOLVENCY_WINDOW)
    await trader.claim(bob.address)
    const { haircutPool } = await trader.windDown()
    const endsAt = await pauseAt(endedAt + INSOLVENCY_WINDOW + 60)
    await over(endedAt + INSOLVENCY_WINDOW)
    await to(endsAt + 1)
    await over(endedAt + INSOLVENCY_WINDOW)
    // Alice's claim is not early: it has no value.
    await expect(trader.claim(alice.address)).to.be.revertedWithCustomError(trader, 'NothingToClaim')
    expect((await trader.windDown()).haircutPool).to.equal(haircutPool)
  })
})
