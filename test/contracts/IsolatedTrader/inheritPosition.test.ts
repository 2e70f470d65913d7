import { expect } from 'chai'
import { ONE } from '../../../domain/units.ts'
import { Backstop__factory } from '../../../typechain-types/factories/Backstop__factory.ts'
import {
  caller,
  chain,
  type Exchange,
  futureExchange,
  perpetualExchange,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { audit } from '../support/audit.ts'
import { actionOf, byAddress, inherit, pass, tick, trade, withBackstop } from '../support/risk.ts'

const alice = wallet('alice')
const bob = wallet('bob')
const carol = wallet('carol')

/** Prices in ticks of 0.1: 1,000 is 100. Steps of 0.001: 1,000 are 1. */
const BOUGHT = { steps: 1000, price: 1000, sellerLeverage: 1 }
const RICH = e18('1000')
const NO_BACKSTOP = 1
const CAP_EXCEEDED = 2
const FREE_BALANCE_SHORT = 3

const fixture = async (): Promise<Exchange> => {
  const exchange = await perpetualExchange()
  await withBackstop(exchange, e18('10000'), RICH)
  return exchange
}

/** Bought at 100 with 5 of margin: the ratio is at maintenance (2.25 %) at 97.187 (equity 2.187 of 97.187). */
const BELOW = e18('97')

describe('inheritPosition', () => {
  let exchange: Exchange
  const freeOf = async (address: string) => (await exchange.bank.account(address)).free

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(fixture)
    await trade(exchange, alice, bob, BOUGHT)
  })
  afterEach(() => audit(exchange))

  it('when the ratio is below maintenance, the whole position moves and the backstop posts its initial margin', async () => {
    const { shared, trader } = exchange
    const sent = await inherit(exchange, alice, { price: BELOW })
    const held = await trader.position(shared.backstop)
    // Equity 2 of 97: 4.365 are required, 2.365 came from the backstop's free balance.
    expect([held.size, held.entryNotional, held.margin]).to.deep.equal([1000n, e18('100'), e18('7.365')])
    expect(await freeOf(shared.backstop)).to.equal(RICH - e18('2.365'))
    const gone = await trader.position(alice.address)
    expect([gone.size, gone.entryNotional, gone.margin, gone.leverage]).to.deep.equal([0n, 0n, 0n, 20n])
    await expect(sent).to.emit(trader, 'PositionInherited')
    expect((await trader.lastReference()).oraclePrice).to.equal(BELOW)
  })

  it('when the ratio is at maintenance, it reverts with NotLiquidatable; 1 wei of price lower it succeeds', async () => {
    // equity = 5 + P - 100 = 0.0225 P  <=>  P = 95 / 0.9775, between two wei.
    const edge = (95n * 10n ** 22n) / 9775n
    await expect(inherit(exchange, alice, { price: edge + 1n })).to.be.revertedWithCustomError(
      exchange.trader,
      'NotLiquidatable',
    )
    await inherit(exchange, alice, { price: edge })
  })

  it('when equity equals the maintenance requirement to the wei, it reverts with NotLiquidatable and both amounts', async () => {
    // Bought 1 at 103.5 with a margin of 5.75: at 100 the equity is 2.25, which is 2.25 % of the notional.
    await trade(exchange, carol, bob, { steps: 1000, price: 1035, leverage: 18, sellerLeverage: 1 })
    await expect(inherit(exchange, carol, { price: e18('100') }))
      .to.be.revertedWithCustomError(exchange.trader, 'NotLiquidatable')
      .withArgs(carol.address, e18('2.25') * ONE, e18('2.25') * ONE)
  })

  it('when the account is flat, healthy or fully collateralised, it reverts with NotLiquidatable', async () => {
    for (const account of [carol, bob]) {
      await expect(inherit(exchange, account, { price: BELOW })).to.be.revertedWithCustomError(
        exchange.trader,
        'NotLiquidatable',
      )
    }
  })

  it('when the account is the backstop itself, it reverts with BackstopItself', async () => {
    const { shared, trader } = exchange
    await inherit(exchange, alice, { price: BELOW })
    await pass(exchange, 10)
    await expect(inherit(exchange, { address: shared.backstop }, { price: e18('80') }))
      .to.be.revertedWithCustomError(trader, 'BackstopItself')
      .withArgs(exchange.connection.ethers.getAddress(shared.backstop))
  })

  it('when the account’s equity is negative, the backstop pays the deficit', async () => {
    const { shared, trader } = exchange
    await pass(exchange, 10)
    await inherit(exchange, alice, { price: e18('90') })
    const held = await trader.position(shared.backstop)
    // Equity -5 of 90: 4.05 are required.
    expect(held.margin).to.equal(e18('14.05'))
    expect(await freeOf(shared.backstop)).to.equal(RICH - e18('9.05'))
  })

  it('when the backstop holds the opposite position, both cancel out and the rest is credited to the backstop', async () => {
    const { shared, trader } = exchange
    await inherit(exchange, alice, { price: BELOW })
    const before = await freeOf(shared.backstop)
    // Bob sold at 100 with 100 of margin; at 197 Bob has 3 left of 197.
    await pass(exchange, 60)
    await inherit(exchange, bob, { price: e18('197') })
    const held = await trader.position(shared.backstop)
    expect([held.size, held.entryNotional, held.margin]).to.deep.equal([0n, 0n, 0n])
    // The backstop's 7.365 plus Bob's 100; the entries agree.
    expect(await freeOf(shared.backstop)).to.equal(before + e18('107.365'))
  })

  it('when the backstop holds a smaller opposite position, its position flips', async () => {
    const { shared, trader } = exchange
    await trade(exchange, carol, wallet('dave'), { steps: 400, price: 1000, sellerLeverage: 1 })
    await inherit(exchange, carol, { price: BELOW })
    await pass(exchange, 60)
    await inherit(exchange, bob, { price: e18('197') })
    const held = await trader.position(shared.backstop)
    expect([held.size, held.entryNotional]).to.deep.equal([-600n, e18('60')])
  })

  describe('failed inheritance', () => {
    async function expectFailure(reason: number, needed: bigint, available: bigint, price = BELOW) {
      const { trader, shared } = exchange
      const backstop = (await trader.riskTerms()).backstop
      const before = [
        await trader.position(alice.address),
        await trader.position(shared.backstop),
        await freeOf(shared.backstop),
      ]
      const { actionId } = await trader.clock()
      const sent = await inherit(exchange, alice, { price })
      const receipt = await sent.wait()
      const event = trader.interface.parseLog(receipt!.logs[0]!)
      expect(event?.name).to.equal('BackstopInheritanceFailed')
      const { args } = event!
      expect([args.account, args.backstop, args.reason, args.needed, args.available]).to.deep.equal([
        alice.address,
        backstop,
        BigInt(reason),
        needed,
        available,
      ])
      expect([
        await trader.position(alice.address),
        await trader.position(shared.backstop),
        await freeOf(shared.backstop),
      ]).to.deep.equal(before)
      expect((await trader.clock()).actionId).to.equal(actionId + 1n)
      expect((await trader.lastReference()).oraclePrice).to.equal(price)
    }

    it('when the market has no backstop, it emits BackstopInheritanceFailed and consumes the action', async () => {
      await exchange.trader.connect(exchange.admin).setBackstop(`0x${'00'.repeat(20)}`, 0)
      await expectFailure(NO_BACKSTOP, 0n, 0n)
    })

    it('when the backstop’s cap is 1 wei short, it emits BackstopInheritanceFailed; at the cap it succeeds', async () => {
      const { trader, admin, shared } = exchange
      await trader.connect(admin).setBackstop(shared.backstop, BELOW - 1n)
      await expectFailure(CAP_EXCEEDED, BELOW, BELOW - 1n)
      await trader.connect(admin).setBackstop(shared.backstop, BELOW)
      await inherit(exchange, alice, { price: BELOW })
      expect((await trader.position(alice.address)).size).to.equal(0n)
    })

    it('when the backstop’s free balance is 1 wei short, it emits BackstopInheritanceFailed; with that wei it succeeds', async () => {
      const { bank, usdm, admin, shared } = exchange
      const backstop = Backstop__factory.connect(shared.backstop, admin)
      await backstop.requestWithdrawal(RICH - e18('2.365') + 1n)
      // A pending withdrawal still backs batches but does not back an inheritance.
      await expectFailure(FREE_BALANCE_SHORT, e18('2.365'), e18('2.365') - 1n)
      await usdm.connect(admin).mint(await admin.getAddress(), 1n)
      await usdm.connect(admin).approve(shared.marginBank, 1n)
      await bank.connect(admin).depositFor(shared.backstop, 1n)
      await inherit(exchange, alice, { price: BELOW })
      expect((await exchange.trader.position(alice.address)).size).to.equal(0n)
      expect(await freeOf(shared.backstop)).to.equal(0n)
    })
  })

  describe('sequence of actions', () => {
    it('when its actionId is not the next, it reverts with ActionOutOfOrder', async () => {
      await inherit(exchange, alice, { price: BELOW })
      const { actionId } = await exchange.trader.clock()
      for (const given of [Number(actionId), Number(actionId) + 2]) {
        await expect(
          inherit(exchange, alice, { price: BELOW, actionId: given }),
        ).to.be.revertedWithCustomError(exchange.trader, 'ActionOutOfOrder')
      }
    })

    it('when asOf is before the last action, too far ahead or stale, it reverts with AsOfDecreased, AsOfAhead or AsOfStale', async () => {
      const { asOf } = await exchange.trader.clock()
      await expect(
        inherit(exchange, alice, { price: BELOW, asOf: Number(asOf) - 1 }),
      ).to.be.revertedWithCustomError(exchange.trader, 'AsOfDecreased')
      const { asOf: now } = await actionOf(exchange, { price: BELOW })
      await expect(
        inherit(exchange, alice, { price: BELOW, asOf: now + 2001 }),
      ).to.be.revertedWithCustomError(exchange.trader, 'AsOfAhead')
      const late = await actionOf(exchange, { price: BELOW })
      await pass(exchange, 11)
      await tick(exchange)
      await expect(
        exchange.trader.inheritPosition(late.actionId, late.asOf, alice.address, late.report),
      ).to.be.revertedWithCustomError(exchange.trader, 'AsOfStale')
    })

    it('when its report is stale, too far off or not signed, it reverts with ReportStale, ReportMoveTooLarge or SignerUnknown', async () => {
      const { trader, oracle } = exchange
      const { asOf } = await actionOf(exchange, { price: BELOW })
      await expect(inherit(exchange, alice, { price: e18('50') })).to.be.revertedWithCustomError(
        trader,
        'ReportMoveTooLarge',
      )
      await expect(
        inherit(exchange, alice, {
          price: BELOW,
          signers: [wallet('mallory'), wallet('mallet')].sort(byAddress),
        }),
      ).to.be.revertedWithCustomError(oracle, 'SignerUnknown')
      await pass(exchange, 20)
      await expect(
        inherit(exchange, alice, { price: BELOW, observedAt: asOf }),
      ).to.be.revertedWithCustomError(trader, 'ReportStale')
    })

    it('when the caller is not an operator, it reverts with NotOperator', async () => {
      const { actionId, asOf, report } = await actionOf(exchange, { price: BELOW })
      const unauthorized = await caller(exchange, carol)
      await expect(
        exchange.trader.connect(unauthorized).inheritPosition(actionId, asOf, alice.address, report),
      ).to.be.revertedWithCustomError(exchange.trader, 'NotOperator')
    })
  })
})

describe('setBackstop', () => {
  it('when the account does not back the market, it reverts with BackstopUnwilling', async () => {
    const exchange = await (await chain()).networkHelpers.loadFixture(futureExchange)
    const { trader, admin, shared } = exchange
    await expect(trader.connect(admin).setBackstop(shared.backstop, 1))
      .to.be.revertedWithCustomError(trader, 'BackstopUnwilling')
      .withArgs(exchange.connection.ethers.getAddress(shared.backstop))
    // A trader's account cannot be made a backstop.
    await expect(trader.connect(admin).setBackstop(alice.address, 1)).to.revert(exchange.connection.ethers)
  })

  it('when the caller lacks the role, it reverts with AccessManagedUnauthorized', async () => {
    const exchange = await (await chain()).networkHelpers.loadFixture(futureExchange)
    const unauthorized = await caller(exchange, carol)
    await expect(
      exchange.trader.connect(unauthorized).setBackstop(exchange.shared.backstop, 1),
    ).to.be.revertedWithCustomError(exchange.trader, 'AccessManagedUnauthorized')
  })

  it('when the backstop is removed, it keeps its position', async () => {
    const exchange = await (await chain()).networkHelpers.loadFixture(fixture)
    const { trader, admin, shared } = exchange
    await trade(exchange, alice, bob, BOUGHT)
    await inherit(exchange, alice, { price: BELOW })
    await expect(trader.connect(admin).setBackstop(`0x${'00'.repeat(20)}`, 0)).to.emit(
      trader,
      'BackstopChanged',
    )
    expect((await trader.position(shared.backstop)).size).to.equal(1000n)
    await audit(exchange)
  })
})
