import { expect } from 'chai'
import {
  caller,
  chain,
  type Exchange,
  perpetualExchange,
  settle,
  wallet,
  wideExchange,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { setFunding } from '../support/adjust.ts'
import { audit } from '../support/audit.ts'
import {
  actionOf,
  byAddress,
  deleverage,
  inherit,
  pass,
  type RequestedLeg,
  tick,
  trade,
  withBackstop,
} from '../support/risk.ts'

const alice = wallet('alice')
const bob = wallet('bob')
const carol = wallet('carol')
const dave = wallet('dave')
const erin = wallet('erin')

/**
 * Alice bought 1 at 100 with 5 of margin: bankrupt at 95. Carol sold 0.6 with 3 of margin, Bob 0.4 with 20: Carol's leverage is
 * higher, so Carol precedes Bob in the order.
 */
const opening = {
  price: 1000,
  fills: [
    { by: alice, side: 'LONG', fill: 1000, leverage: 20 },
    { by: carol, side: 'SHORT', fill: 600, leverage: 20 },
    { by: bob, side: 'SHORT', fill: 400, leverage: 2 },
  ],
} as const
const BANKRUPT = e18('94')
/** Funding in wei per step and hour, at which longs pay. */
const RATE = 2n * 10n ** 13n
const legs = (...asked: [RequestedLeg['of'], number | bigint][]): RequestedLeg[] =>
  asked.map(([of, steps]) => ({ of, steps }))

describe('deleverage', () => {
  let exchange: Exchange
  const freeOf = async (of: { address: string }) => (await exchange.bank.account(of.address)).free
  const sizeOf = async (of: { address: string }) => (await exchange.trader.position(of.address)).size
  const run = (listed: readonly RequestedLeg[], price = BANKRUPT) =>
    deleverage(exchange, alice, listed, { price })
  const refused = (listed: readonly RequestedLeg[], error: string, price = BANKRUPT) =>
    expect(run(listed, price)).to.be.revertedWithCustomError(exchange.trader, error)

  /** Steps and payouts from the event. */
  async function legsOf(sent: ReturnType<typeof run>): Promise<[string, bigint, bigint][]> {
    const receipt = await (await sent).wait()
    const event = exchange.trader.interface.parseLog(receipt!.logs[0]!)
    expect(event?.name).to.equal('PositionsDeleveraged')
    return event!.args.legs.map((leg: { counterparty: string; steps: bigint; payout: bigint }) => [
      leg.counterparty,
      leg.steps,
      leg.payout,
    ])
  }

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    await settle(exchange, opening)
  })
  afterEach(() => audit(exchange))

  it('when equity is negative, it closes the position at its bankruptcy price without fees', async () => {
    const before = [await freeOf(alice), await freeOf(bob), await freeOf(carol)]
    const closed = await legsOf(run(legs([carol, 600], [bob, 400])))
    // Sold at 100 and bought back at 95: 3 of profit on 0.6, 2 on 0.4, plus their margins.
    expect(closed).to.deep.equal([
      [carol.address, 600n, e18('6')],
      [bob.address, 400n, e18('22')],
    ])
    expect([await freeOf(alice), await freeOf(bob), await freeOf(carol)]).to.deep.equal([
      before[0],
      before[1]! + e18('22'),
      before[2]! + e18('6'),
    ])
    for (const each of [alice, bob, carol]) expect(await sizeOf(each)).to.equal(0n)
    expect((await exchange.bank.market(exchange.spec.trader)).pool).to.equal(0n)
  })

  it('when fewer steps are requested than the position has, the rest keeps its entry and margin in proportion', async () => {
    await run(legs([carol, 100]))
    const held = await exchange.trader.position(alice.address)
    expect([held.size, held.entryNotional, held.margin]).to.deep.equal([900n, e18('90'), e18('4.5')])
    await run(legs([carol, 500], [bob, 400]))
    expect(await sizeOf(alice)).to.equal(0n)
  })

  it('when more steps are requested than exist, it cuts them to the counterparties’ sizes', async () => {
    const closed = await legsOf(run(legs([carol, 10n ** 30n], [bob, 10n ** 30n])))
    expect(closed.map(([, steps]) => steps)).to.deep.equal([600n, 400n])
    await trade(exchange, dave, erin, { steps: 100, price: 940 })
    expect(await sizeOf(alice)).to.equal(0n)
  })

  it('when the position is smaller than the counterparties’, the last one keeps its rest', async () => {
    await trade(exchange, erin, alice, { steps: 500, price: 1000, leverage: 20 })
    const closed = await legsOf(run(legs([carol, 600], [bob, 400])))
    expect(closed).to.deep.equal([
      [carol.address, 500n, e18('5')],
      [bob.address, 0n, 0n],
    ])
    expect([await sizeOf(carol), await sizeOf(bob)]).to.deep.equal([-100n, -400n])
  })

  it('when the position is short, it closes against a long in the same way', async () => {
    // Erin is short from 100 with 5, bankrupt at 105; Dave is long from 100.
    await trade(exchange, dave, erin, { steps: 1000, price: 1000, leverage: 2, sellerLeverage: 20 })
    const before = await freeOf(dave)
    await deleverage(exchange, erin, legs([dave, 1000]), { price: e18('106') })
    // 50 of margin and 5 of profit.
    expect(await freeOf(dave)).to.equal(before + e18('55'))
    expect(await sizeOf(erin)).to.equal(0n)
  })

  it('when a long of one step is bankrupt, it closes against a short of one step', async () => {
    await trade(exchange, dave, erin, { steps: 1, price: 1000, leverage: 20, sellerLeverage: 2 })
    await deleverage(exchange, dave, legs([erin, 1]), { price: BANKRUPT })
    expect([await sizeOf(dave), await sizeOf(erin)]).to.deep.equal([0n, 0n])
  })

  it('when a short of one step is bankrupt, it closes against a long of one step', async () => {
    await trade(exchange, dave, erin, { steps: 1, price: 1000, leverage: 2, sellerLeverage: 20 })
    await deleverage(exchange, erin, legs([dave, 1]), { price: e18('106') })
    expect([await sizeOf(dave), await sizeOf(erin)]).to.deep.equal([0n, 0n])
  })

  it('when funding brings the ratio below maintenance, it succeeds', async () => {
    await refused(legs([carol, 600]), 'NotLiquidatable', e18('97.2'))
    await setFunding(exchange, { price: e18('100'), rate: RATE })
    await pass(exchange, 3600)
    await run(legs([carol, 600]), e18('97.2'))
  })

  it('when its asOf is more than ten seconds old, it reverts with AsOfStale', async () => {
    const { actionId, asOf, report } = await actionOf(exchange, { price: BANKRUPT })
    await pass(exchange, 11)
    await tick(exchange)
    await expect(
      exchange.trader.deleverage(actionId, asOf, alice.address, [carol.address], [1], report),
    ).to.be.revertedWithCustomError(exchange.trader, 'AsOfStale')
  })

  describe('counterparties that do not qualify', () => {
    const expectSkipped = async (counterparty: { address: string }) => {
      const closed = await legsOf(run(legs([counterparty, 100], [carol, 600])))
      expect(closed[0]).to.deep.equal([counterparty.address, 0n, 0n])
      expect(closed[1]?.[1]).to.equal(600n)
    }

    it('when one is on the same side, it is skipped, although it has a profit', async () => {
      await pass(exchange, 30)
      await trade(exchange, dave, erin, { steps: 100, price: 930, leverage: 1 })
      await expectSkipped(dave)
    })

    it('when one is the account itself, it is skipped', () => expectSkipped(alice))
    it('when one has no position, it is skipped', () => expectSkipped(dave))

    it('when one has no profit at the oracle price, it is skipped', async () => {
      await trade(exchange, erin, dave, { steps: 100, price: 940, leverage: 1 })
      await expectSkipped(dave)
    })

    it('when one could not pay the bankruptcy price, it is skipped', async () => {
      // Dave sells at 81, and would have to buy at 95 with 4.05 of margin.
      await pass(exchange, 30)
      await trade(exchange, erin, dave, { steps: 1000, price: 810, leverage: 20 })
      const closed = await legsOf(run(legs([carol, 100], [bob, 100], [dave, 100]), e18('80')))
      expect(closed.map(([, steps]) => steps)).to.deep.equal([100n, 100n, 0n])
    })

    it('when none qualifies, the action is consumed and no position changes', async () => {
      const { actionId } = await exchange.trader.clock()
      expect(await legsOf(run(legs([dave, 100])))).to.deep.equal([[dave.address, 0n, 0n]])
      expect((await exchange.trader.clock()).actionId).to.equal(actionId + 1n)
      expect(await sizeOf(alice)).to.equal(1000n)
    })

    it('when earlier legs have closed the whole position, later ones are skipped on both sides and in any order', async () => {
      await trade(exchange, erin, alice, { steps: 600, price: 1000, leverage: 2 })
      await pass(exchange, 30)
      // Dave is long with profit. Carol's score and Dave's exceed Bob's.
      await trade(exchange, dave, erin, { steps: 100, price: 900, leverage: 5 })
      const closed = await legsOf(run(legs([bob, 400], [carol, 600], [dave, 100])))
      expect(closed.map(([, steps]) => steps)).to.deep.equal([400n, 0n, 0n])
    })
  })

  describe('order of the counterparties', () => {
    it('when a lower score precedes a higher one, it reverts with CounterpartyOutOfOrder', () =>
      refused(legs([bob, 400], [carol, 600]), 'CounterpartyOutOfOrder'))

    it('when scores are equal and the higher address precedes, it reverts with CounterpartyOutOfOrder', async () => {
      await trade(exchange, alice, dave, { steps: 600, price: 1000, leverage: 20 })
      const [first, second] = [carol, dave].sort(byAddress) as [typeof carol, typeof dave]
      await refused(legs([second, 1], [first, 1]), 'CounterpartyOutOfOrder')
      await run(legs([first, 1], [second, 1]))
    })

    it('when a counterparty is repeated, it reverts with CounterpartyRepeated', () =>
      refused(legs([carol, 1], [carol, 1]), 'CounterpartyRepeated'))
    it('when zero steps are requested, it reverts with StepsZero', () =>
      refused(legs([carol, 0]), 'StepsZero'))
    it('when there are no counterparties, it reverts with CounterpartiesInvalid', () =>
      refused([], 'CounterpartiesInvalid'))

    it('when there are more counterparties than steps, it reverts with CounterpartiesInvalid', async () => {
      const { actionId, asOf, report } = await actionOf(exchange, { price: BANKRUPT })
      const { trader } = exchange
      await expect(
        trader.deleverage(actionId, asOf, alice.address, [carol.address, bob.address], [1], report),
      ).to.be.revertedWithCustomError(trader, 'CounterpartiesInvalid')
    })
  })

  describe('conditions for the deleveraged account', () => {
    it('when its ratio is at least maintenance, it reverts with NotLiquidatable', () =>
      refused(legs([carol, 1]), 'NotLiquidatable', e18('97.2')))
    it('when it has no position, it reverts with NotLiquidatable', async () => {
      await expect(
        deleverage(exchange, erin, legs([carol, 1]), { price: BANKRUPT }),
      ).to.be.revertedWithCustomError(exchange.trader, 'NotLiquidatable')
    })

    it('when it has 1 wei of equity and the backstop could inherit, it reverts with BackstopFirst', async () => {
      await withBackstop(exchange, e18('10000'), e18('1000'))
      await refused(legs([carol, 1]), 'BackstopFirst', e18('95') + 1n)
      // Equity is exactly 0.
      await run(legs([carol, 1]), e18('95'))
    })

    it('when it has 1e-18 of a wei of equity and the backstop could inherit, it reverts with BackstopFirst', async () => {
      exchange = await (await chain()).networkHelpers.loadFixture(wideExchange)
      await withBackstop(exchange, e18('10000'), e18('1000'))
      // One step bought at 1e9 wei with a margin of 5e7.
      await trade(exchange, dave, erin, { steps: 1, price: 1000, leverage: 20, sellerLeverage: 2 })
      const bankrupt = 950n * exchange.spec.tick
      await expect(
        deleverage(exchange, dave, legs([erin, 1]), { price: bankrupt + 1n }),
      ).to.be.revertedWithCustomError(exchange.trader, 'BackstopFirst')
      await deleverage(exchange, dave, legs([erin, 1]), { price: bankrupt })
    })

    it('when the market has no backstop, it succeeds despite positive equity', async () => {
      await run(legs([carol, 600], [bob, 400]), e18('96'))
      expect(await sizeOf(alice)).to.equal(0n)
    })

    it('when the backstop’s cap is 1 wei short, it succeeds; at the cap it reverts with BackstopFirst', async () => {
      await withBackstop(exchange, e18('96'), e18('1000'))
      await refused(legs([carol, 1]), 'BackstopFirst', e18('96'))
      await exchange.trader.connect(exchange.admin).setBackstop(exchange.shared.backstop, e18('96') - 1n)
      await run(legs([carol, 1]), e18('96'))
    })

    it('when the backstop’s free balance is 1 wei short, it succeeds', async () => {
      // 4.32 are required, 1 comes with the position.
      await withBackstop(exchange, e18('10000'), e18('3.32') - 1n)
      await run(legs([carol, 1]), e18('96'))
    })

    it('when it is the backstop itself, it reverts with BackstopFirst unless equity is 0 or less', async () => {
      const backstop = { address: await withBackstop(exchange, e18('10000'), e18('3.395')) }
      await inherit(exchange, alice, { price: e18('97') })
      await pass(exchange, 10)
      await expect(
        deleverage(exchange, backstop, legs([carol, 1]), { price: e18('94') }),
      ).to.be.revertedWithCustomError(exchange.trader, 'BackstopFirst')
      await deleverage(exchange, backstop, legs([carol, 600], [bob, 400]), { price: e18('92') })
      expect(await sizeOf(backstop)).to.equal(0n)
    })
  })

  it('when the caller is not an operator, it reverts with NotOperator', async () => {
    const { actionId, asOf, report } = await actionOf(exchange, { price: BANKRUPT })
    const unauthorized = await caller(exchange, dave)
    await expect(
      exchange.trader
        .connect(unauthorized)
        .deleverage(actionId, asOf, alice.address, [carol.address], [1], report),
    ).to.be.revertedWithCustomError(exchange.trader, 'NotOperator')
  })
})
