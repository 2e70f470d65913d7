import { expect } from 'chai'
import { getAddress, type Wallet } from 'ethers'
import {
  caller,
  type Exchange,
  type FillInput,
  perpetualExchange,
  settle,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { audit } from '../support/audit.ts'
import { depositFor, INSOLVENCY_WINDOW, pass, trade } from '../support/risk.ts'
import {
  asAnyAccount,
  type CurrentExchange,
  claimAll,
  freeOf,
  freeze,
  fresh,
  poke,
} from '../support/wind-down.ts'

const alice = wallet('alice')
const bob = wallet('bob')
const carol = wallet('carol')
const dave = wallet('dave')
const frank = wallet('frank')
const holders = [alice, bob, carol, dave]

describe('claims', () => {
  const current = {} as CurrentExchange
  afterEach(() => audit(current.exchange))

  /**
   * Alice bought 1 at 100 with 5, Carol 1 at 100 with 100; Bob sold 2 with 40. At 90 Alice owes 5, Carol has 90, Bob 60. The
   * pool holds 145 for claims of 150.
   */
  const insolvent = async (): Promise<Exchange> => {
    const exchange = await perpetualExchange()
    await settle(exchange, {
      price: 1000,
      fills: [
        { by: alice, side: 'LONG', fill: 1000, leverage: 20 },
        { by: carol, side: 'LONG', fill: 1000, leverage: 1 },
        { by: bob, side: 'SHORT', fill: 2000, leverage: 5 },
      ],
    })
    await pass(exchange, 60)
    await poke({ exchange }, e18('90'))
    await freeze({ exchange })
    return exchange
  }

  beforeEach(async () => {
    current.exchange = await fresh(insolvent)
  })

  const cover = async (amount: string): Promise<void> => {
    await depositFor(current.exchange, current.exchange.spec.trader, e18(amount))
    await (await asAnyAccount(current)).coverDeficit(e18(amount))
  }

  it('when deficits are reported, claims share one haircut by value, in any order of claims', async () => {
    const { connection } = current.exchange
    const trader = await asAnyAccount(current)
    await expect(trader.reportInsolvent(holders.map(({ address }) => address)))
      .to.emit(trader, 'InsolvencyReported')
      .withArgs(alice.address, e18('5'))
    await pass(current.exchange, INSOLVENCY_WINDOW)
    const snapshot = await connection.networkHelpers.takeSnapshot()
    const paid = await claimAll(current, holders)
    await audit(current.exchange)
    await snapshot.restore()
    expect(await claimAll(current, [...holders].reverse())).to.deep.equal(new Map([...paid].reverse()))
    // 145 / 150 of each claim.
    expect([...paid]).to.deep.equal(
      [
        [bob.address, e18('58')],
        [carol.address, e18('87')],
      ].sort(
        (a, b) => holders.findIndex((e) => e.address === a[0]) - holders.findIndex((e) => e.address === b[0]),
      ),
    )
    expect((await current.exchange.bank.market(current.exchange.spec.trader)).pool).to.equal(0n)
  })

  it('when an account is reported twice, its deficit counts once', async () => {
    const trader = await asAnyAccount(current)
    await trader.reportInsolvent([alice.address, alice.address])
    await trader.reportInsolvent([alice.address])
    expect((await trader.windDown()).deficit).to.equal(e18('5'))
  })

  it('when a reported account is solvent or flat, it is skipped', async () => {
    const trader = await asAnyAccount(current)
    await expect(trader.reportInsolvent([bob.address, carol.address, dave.address])).to.not.emit(
      trader,
      'InsolvencyReported',
    )
    expect((await trader.windDown()).deficit).to.equal(0n)
    expect((await trader.position(bob.address)).size).to.equal(-2000n)
  })

  it('when the report window of three days is over, reports revert and claims succeed; before, claims revert with ClaimEarly', async () => {
    const { exchange } = current
    const trader = await asAnyAccount(current)
    const { endedAt } = await trader.windDown()
    const { time } = exchange.connection.networkHelpers
    await time.setNextBlockTimestamp(Number(endedAt) / 1000 + INSOLVENCY_WINDOW)
    await expect(trader.claim(bob.address)).to.be.revertedWithCustomError(trader, 'ClaimEarly')
    await trader.reportInsolvent([dave.address])
    await time.setNextBlockTimestamp(Number(endedAt) / 1000 + INSOLVENCY_WINDOW + 1)
    await expect(trader.reportInsolvent([alice.address])).to.be.revertedWithCustomError(
      trader,
      'InsolvencyWindowOver',
    )
    await trader.claim(bob.address)
  })

  it('when claimed twice or without a position, it reverts with NothingToClaim', async () => {
    const trader = await asAnyAccount(current)
    await trader.reportInsolvent([alice.address])
    await pass(current.exchange, INSOLVENCY_WINDOW)
    await trader.claim(bob.address)
    for (const each of [bob, alice, dave]) {
      await expect(trader.claim(each.address)).to.be.revertedWithCustomError(trader, 'NothingToClaim')
    }
  })

  it('when the insolvent account was not reported, the pool pays what it holds and records the rest as unpaid', async () => {
    const trader = await asAnyAccount(current)
    await pass(current.exchange, INSOLVENCY_WINDOW)
    await expect(trader.claim(alice.address)).to.be.revertedWithCustomError(trader, 'NothingToClaim')
    // 60 and 90 are due without a haircut; the pool holds 145.
    await expect(trader.claim(carol.address))
      .to.emit(trader, 'Claimed')
      .withArgs(carol.address, e18('90'), e18('90'), 0n)
    await expect(trader.claim(bob.address))
      .to.emit(trader, 'Claimed')
      .withArgs(bob.address, e18('60'), e18('55'), e18('5'))
    expect(await trader.unpaidClaim(bob.address)).to.equal(e18('5'))
    await expect(trader.claim(bob.address)).to.be.revertedWithCustomError(trader, 'NothingToClaim')

    // A deposit covers the shortfall.
    await cover('6')
    await expect(trader.claim(bob.address)).to.emit(trader, 'Claimed').withArgs(bob.address, 0n, e18('5'), 0n)
    expect(await trader.unpaidClaim(bob.address)).to.equal(0n)
  })

  it('when one wei of a claim is unpaid, it is paid once', async () => {
    const trader = await asAnyAccount(current)
    await depositFor(current.exchange, current.exchange.spec.trader, e18('5'))
    await trader.coverDeficit(e18('5') - 1n)
    await pass(current.exchange, INSOLVENCY_WINDOW)
    await trader.claim(carol.address)
    await expect(trader.claim(bob.address))
      .to.emit(trader, 'Claimed')
      .withArgs(bob.address, e18('60'), e18('60') - 1n, 1n)
    await trader.coverDeficit(1)
    await expect(trader.claim(bob.address)).to.emit(trader, 'Claimed').withArgs(bob.address, 0n, 1n, 0n)
    expect(await trader.unpaidClaim(bob.address)).to.equal(0n)
  })

  it('when the pool is empty and the insolvent account was not reported, the claim is unpaid until the deficit is covered', async () => {
    current.exchange = await fresh(perpetualExchange)
    const { exchange } = current
    const fills = (long: Wallet, short: Wallet, leverage: number): FillInput[] => [
      { by: long, side: 'LONG', fill: 1000, leverage: 20 },
      { by: short, side: 'SHORT', fill: 1000, leverage },
    ]
    await settle(exchange, { price: 1000, fills: fills(alice, bob, 5) })
    // Alice owes 5; Bob's 30 are paid out when Bob closes against Dave, who adds 5.
    await settle(exchange, { price: 900, fills: fills(bob, dave, 18) })
    expect((await exchange.bank.market(exchange.spec.trader)).pool).to.equal(0n)
    await freeze(current)
    const trader = await asAnyAccount(current)
    await pass(exchange, INSOLVENCY_WINDOW)
    await expect(trader.claim(dave.address))
      .to.emit(trader, 'Claimed')
      .withArgs(dave.address, e18('5'), 0n, e18('5'))
    await cover('5')
    await expect(trader.claim(dave.address))
      .to.emit(trader, 'Claimed')
      .withArgs(dave.address, 0n, e18('5'), 0n)
  })

  it('when the deficit is covered before the haircut is fixed, claims are paid in full', async () => {
    const trader = await asAnyAccount(current)
    await trader.reportInsolvent([alice.address])
    await cover('5')
    await pass(current.exchange, INSOLVENCY_WINDOW)
    expect([...(await claimAll(current, [bob, carol])).values()]).to.deep.equal([e18('60'), e18('90')])
  })

  it('when more is covered than is owed, claims are paid in full and no more', async () => {
    const trader = await asAnyAccount(current)
    await trader.reportInsolvent([alice.address])
    await cover('50')
    await pass(current.exchange, INSOLVENCY_WINDOW)
    expect([...(await claimAll(current, [bob, carol])).values()]).to.deep.equal([e18('60'), e18('90')])
  })

  it('when the cover is zero or more than was deposited for the market, it reverts with the error for that case', async () => {
    const { exchange } = current
    const trader = await asAnyAccount(current)
    await expect(trader.coverDeficit(0)).to.be.revertedWithCustomError(trader, 'AmountZero')
    await expect(trader.coverDeficit((1n << 95n) + 1n)).to.be.revertedWithCustomError(
      trader,
      'PositionOutOfRange',
    )
    // Only the market's own free balance pays: the caller's balance may back orders elsewhere.
    const before = await freeOf(current, frank)
    await depositFor(exchange, exchange.spec.trader, 3n)
    await expect(trader.coverDeficit(4))
      .to.be.revertedWithCustomError(exchange.bank, 'FreeBalanceInsufficient')
      .withArgs(getAddress(exchange.spec.trader), 3, 4)
    await expect(trader.coverDeficit(3)).to.emit(trader, 'DeficitCovered').withArgs(3)
    expect(await freeOf(current, frank)).to.equal(before)
  })
})

describe('claims at a price that is not a whole number of wei per step', () => {
  const current = {} as CurrentExchange
  afterEach(() => audit(current.exchange))

  it('rounds deficits up and values down, so the pool covers every claim', async () => {
    current.exchange = await fresh(perpetualExchange)
    const { exchange } = current
    await settle(exchange, {
      price: 1000,
      fills: [
        { by: alice, side: 'LONG', fill: 1001, leverage: 20 },
        { by: bob, side: 'SHORT', fill: 1001, leverage: 5 },
      ],
    })
    await pass(exchange, 60)
    await poke(current, e18('90') + 1n)
    await freeze(current)
    const trader = await asAnyAccount(current)
    // Below 5.005 by 1.001 wei.
    await expect(trader.reportInsolvent([alice.address]))
      .to.emit(trader, 'InsolvencyReported')
      .withArgs(alice.address, e18('5.005') - 1n)
    await pass(exchange, INSOLVENCY_WINDOW)
    const { pool } = await exchange.bank.market(exchange.spec.trader)
    const paid = await claimAll(current, [bob])
    // All of the pool but the rounding dust.
    expect(paid.get(bob.address)).to.be.within(pool - 3n, pool)
  })

  it('when a position is worth one wei, the claim pays it', async () => {
    current.exchange = await fresh(perpetualExchange)
    const { exchange } = current
    await trade(exchange, alice, bob, { steps: 1000, price: 1000, sellerLeverage: 5 })
    await pass(exchange, 60)
    await poke(current, e18('95') + 1n)
    await freeze(current)
    const trader = await asAnyAccount(current)
    await pass(exchange, INSOLVENCY_WINDOW)
    await expect(trader.claim(alice.address)).to.emit(trader, 'Claimed').withArgs(alice.address, 1n, 1n, 0n)
    await expect(trader.claim(alice.address)).to.be.revertedWithCustomError(trader, 'NothingToClaim')
  })
})

describe('before the market has ended', () => {
  it('when the market has not ended, reports, cover and claims revert with MarketNotEnded', async () => {
    const exchange = await fresh(perpetualExchange)
    const { trader } = exchange
    const early = (call: Promise<unknown>) =>
      expect(call).to.be.revertedWithCustomError(trader, 'MarketNotEnded')
    await early(trader.reportInsolvent([alice.address]))
    await early(trader.coverDeficit(1))
    await early(trader.claim(alice.address))
  })

  it('when the sender of a heartbeat is not an operator, it reverts with NotOperator', async () => {
    const exchange = await fresh(perpetualExchange)
    const trader = exchange.trader.connect(await caller(exchange, frank))
    await expect(trader.heartbeat()).to.be.revertedWithCustomError(trader, 'NotOperator')
  })
})
