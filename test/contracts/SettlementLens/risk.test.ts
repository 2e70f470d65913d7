/** Risk of accounts and previews of actions, compared with domain/ and with what the actions then do. */
import { expect } from 'chai'
import { getAddress, type Wallet, ZeroAddress } from 'ethers'
import { isLiquidatable, LIQUIDATION_BUFFER } from '../../../domain/positions/margin.ts'
import type { Position } from '../../../domain/positions/position.ts'
import { liquidationPrice } from '../../../domain/risk/liquidation-price.ts'
import { PAUSE_GRACE } from '../../../domain/settlement/durations.ts'
import type { FundingIndex, Price, Quote, Steps } from '../../../domain/units.ts'
import { SettlementLens__factory } from '../../../typechain-types/factories/SettlementLens__factory.ts'
import {
  addressOf,
  binaryExchange,
  type Exchange,
  fieldsOf,
  futureExchange,
  nextSecond,
  perpetualExchange,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { setFunding } from '../support/adjust.ts'
import {
  actionOf,
  DAY,
  deleverage,
  finalize,
  inherit,
  pass,
  passDisputeWindow,
  reportFinal,
  settleMode,
  trade,
  withBackstop,
} from '../support/risk.ts'
import { asAnyAccount, fresh } from '../support/wind-down.ts'

const [alice, bob, carol] = [wallet('alice'), wallet('bob'), wallet('carol')]

describe('SettlementLens', function () {
  this.timeout(60_000)

  const lensOf = ({ admin }: Exchange) => new SettlementLens__factory(admin).deploy()
  const now = async (exchange: Exchange): Promise<number> => (await nextSecond(exchange)) * 1000

  /** The position of the chain in domain/, with `index` as of the lens. */
  async function positionOf(exchange: Exchange, account: Wallet): Promise<[Position, FundingIndex]> {
    const { size, entryNotional, margin, leverage } = await exchange.trader.position(account.address)
    const { fundingIndex } = await exchange.trader.lastReference()
    const foldedMargin = (margin + size * fundingIndex) as Quote
    const held = { size: Number(size) as Steps, entryNotional: entryNotional as Quote, foldedMargin }
    return [{ ...held, leverage: Number(leverage) }, fundingIndex as FundingIndex]
  }

  for (const [fixture, deals] of [
    [perpetualExchange, [{ price: 1000, leverage: 20, sellerLeverage: 7 }]],
    [futureExchange, [{ price: 1000, leverage: 5, sellerLeverage: 1 }]],
    [binaryExchange, [{ price: 300, leverage: 4, sellerLeverage: 2 }]],
    [binaryExchange, [{ price: 300, leverage: 1, sellerLeverage: 1 }]],
  ] as const) {
    const [deal] = deals
    it(`when accounts of ${fixture.name} at ${deal.leverage}x and ${deal.sellerLeverage}x are read, prices and decisions equal those of domain/`, async () => {
      const exchange = await fresh(fixture)
      await trade(exchange, alice, bob, { steps: 1000, ...deal })
      const lens = await lensOf(exchange)
      for (const account of [alice, bob]) {
        const [position, index] = await positionOf(exchange, account)
        const expected = liquidationPrice(exchange.spec, position, index)
        const read = async (price: bigint) => {
          const [, [risk]] = await lens.risks(exchange.trader, [account], price, await now(exchange))
          return risk!
        }
        expect((await read(1n)).liquidationPrice).to.equal(expected ?? 0n)
        const { bankruptcyPrice } = await read(1n)
        if (bankruptcyPrice > 0n) {
          const worst = position.size > 0 ? bankruptcyPrice + 1n : bankruptcyPrice - 1n
          expect((await read(bankruptcyPrice)).equityX <= 0n).to.equal(true)
          expect((await read(worst)).equityX > 0n).to.equal(true)
        }
        for (const price of expected === null ? [e18('0.5')] : [expected - 1n, expected, expected + 1n]) {
          const isDue = isLiquidatable(exchange.spec, position, index, price as Price)
          expect((await read(price)).liquidatable, `${price}`).to.equal(isDue)
          const found = await lens.liquidatable(exchange.trader, [carol, account], price, await now(exchange))
          expect(found).to.deep.equal(isDue ? [account.address] : [])
        }
      }
      expect(LIQUIDATION_BUFFER).to.equal(5_000n * 10n ** 12n)
    })
  }

  it('when a funding rate runs and parameters are due, it values accounts by both', async () => {
    const exchange = await fresh(perpetualExchange)
    const { trader, admin } = exchange
    await trade(exchange, alice, bob, { steps: 1000, price: 1000 })
    await setFunding(exchange, { price: e18('100'), rate: 3_600_000_000n })
    const { validFrom } = await trader.fundingRate()
    const from = (await now(exchange)) + 2 * DAY * 1000
    const parameters = fieldsOf(await trader.parameters())
    await trader.connect(admin).scheduleParameters({ ...parameters, mmr: 30_000n }, from)
    const lens = await lensOf(exchange)
    const soon = await lens.risks(trader, [alice], e18('100'), Number(validFrom) + 1000)
    expect([soon.terms.fundingIndex, soon.terms.parameters.mmr]).to.deep.equal([1_000_000n, parameters.mmr])
    const before = (await trader.position(alice)).margin
    expect(soon.found[0]?.position.margin).to.equal(before - 1000n * 1_000_000n)
    const late = await lens.termsAt(trader, from)
    expect([late.parameters.mmr, late.fundingIndex]).to.deep.equal([30_000n, 3_600_000n * 1000n])
  })

  it('when a rate is previewed, its bounds are those that updateFunding accepts', async () => {
    const exchange = await fresh(perpetualExchange)
    await trade(exchange, alice, bob, { steps: 1000, price: 1000 })
    const lens = await lensOf(exchange)
    const asOf = await now(exchange)
    const { lowest, highest } = await lens.previewFunding(exchange.trader, e18('100'), asOf)
    await expect(
      setFunding(exchange, { price: e18('100'), asOf, rate: highest + 1n }),
    ).to.be.revertedWithCustomError(exchange.trader, 'FundingRateOutOfRange')
    await setFunding(exchange, { price: e18('100'), asOf, rate: highest })
    expect(lowest).to.equal(-highest)
  })

  it('when an inheritance is previewed, the backstop then has that position', async () => {
    const exchange = await fresh(perpetualExchange)
    await trade(exchange, alice, bob, { steps: 1000, price: 1000, sellerLeverage: 1 })
    const backstop = await withBackstop(exchange, e18('1000'), e18('1000'))
    const lens = await lensOf(exchange)
    await pass(exchange, 20)
    const price = e18('97')
    const preview = await lens.previewInheritance(exchange.trader, alice, price, await now(exchange))
    expect([preview.risk.inheritable, preview.result.failure]).to.deep.equal([true, 0n])
    await inherit(exchange, alice, { price })
    const { size, margin, entryNotional } = await exchange.trader.position(backstop)
    const { merged } = preview
    expect([merged.size, merged.margin, merged.entryNotional]).to.deep.equal([size, margin, entryNotional])
  })

  it('when a deleveraging is previewed, its legs are those of the action', async () => {
    const exchange = await fresh(perpetualExchange)
    await trade(exchange, alice, bob, { steps: 1000, price: 1000, sellerLeverage: 2 })
    await pass(exchange, 20)
    const lens = await lensOf(exchange)
    const price = e18('97')
    const asked = [carol, bob].map(addressOf)
    const preview = await lens.previewDeleveraging(
      exchange.trader,
      alice,
      asked,
      [5, 700],
      price,
      await now(exchange),
    )
    expect(preview.legs.map(({ steps }) => steps)).to.deep.equal([0n, 700n])
    const legs = [
      { of: carol, steps: 5 },
      { of: bob, steps: 700 },
    ]
    await expect(deleverage(exchange, alice, legs, { price }))
      .to.emit(exchange.trader, 'PositionsDeleveraged')
      .withArgs(
        2n,
        alice.address,
        () => true,
        preview.legs.map((leg) => [leg.counterparty, leg.steps, leg.payout]),
      )
    const { size, margin } = await exchange.trader.position(alice)
    expect([preview.rest.size, preview.rest.margin]).to.deep.equal([size, margin])
  })

  describe('given an account below maintenance', () => {
    let exchange: Exchange
    let lens: Awaited<ReturnType<typeof lensOf>>
    let backstop: string
    const BELOW = e18('97')
    const BANKRUPT = e18('95')
    const rejected = (call: Promise<unknown>, error: string, ...args: unknown[]) =>
      expect(call)
        .to.be.revertedWithCustomError(lens, error)
        .withArgs(...args)
    const inheritance = (account: { address: string }, price: bigint, asOf: number) =>
      lens.previewInheritance(exchange.trader, account.address, price, asOf)
    const deleveraging = (
      legs: readonly (readonly [{ address: string }, number])[],
      price: bigint,
      asOf: number,
    ) =>
      lens.previewDeleveraging(
        exchange.trader,
        alice,
        legs.map(([{ address }]) => address),
        legs.map(([, steps]) => steps),
        price,
        asOf,
      )

    beforeEach(async () => {
      exchange = await fresh(perpetualExchange)
      lens = await lensOf(exchange)
      backstop = getAddress(await withBackstop(exchange, e18('1000'), e18('1000')))
      await trade(exchange, alice, bob, { steps: 600, price: 1000, sellerLeverage: 1 })
      await trade(exchange, alice, carol, { steps: 400, price: 1000, sellerLeverage: 5 })
      await pass(exchange, 20)
    })

    it('when a pause of the bank has ended less than ten minutes ago, it is liquidatable only without equity, as in settlement', async () => {
      await exchange.bank.pause()
      await exchange.bank.unpause()
      const graceEndsAt = Number((await exchange.bank.lastPause()).endsAt) * 1000 + PAUSE_GRACE
      for (const [price, asOf, due] of [
        [BELOW, graceEndsAt - 1, false],
        [BELOW, graceEndsAt, true],
        [BANKRUPT, graceEndsAt - 1, true],
      ] as const) {
        const { terms, found } = await lens.risks(exchange.trader, [alice], price, asOf)
        expect([terms.graceEndsAt, found[0]?.liquidatable, found[0]?.inheritable]).to.deep.equal([
          BigInt(graceEndsAt),
          due,
          due,
        ])
        const accounts = await lens.liquidatable(exchange.trader, [alice], price, asOf)
        expect(accounts).to.deep.equal(due ? [alice.address] : [])
      }
      const early = graceEndsAt - 1
      const tooSoon = ['LiquidationTooSoon', alice.address, graceEndsAt, early] as const
      await rejected(inheritance(alice, BELOW, early), ...tooSoon)
      await rejected(deleveraging([[bob, 5]], BELOW, early), ...tooSoon)
      expect((await inheritance(alice, BANKRUPT, early)).result.failure).to.equal(0n)
      expect((await deleveraging([[bob, 5]], BANKRUPT, early)).legs[0]?.steps).to.equal(5n)
    })

    it('when the account is the backstop or at maintenance, the preview of an inheritance reverts as the action does', async () => {
      const asOf = await now(exchange)
      await rejected(inheritance({ address: backstop }, BELOW, asOf), 'BackstopItself', backstop)
      await inherit(exchange, alice, { price: BELOW })
      const { found } = await lens.risks(exchange.trader, [backstop], e18('1'), asOf + 60_000)
      expect([found[0]?.liquidatable, found[0]?.inheritable]).to.deep.equal([true, false])
      await expect(inheritance(bob, BELOW, asOf)).to.be.revertedWithCustomError(lens, 'NotLiquidatable')
    })

    it('when the backstop can inherit an account with equity, the preview of a deleveraging reverts as the action does', async () => {
      const asOf = await now(exchange)
      const { found } = await lens.risks(exchange.trader, [alice], BELOW, asOf)
      await rejected(
        deleveraging([[bob, 5]], BELOW, asOf),
        'BackstopFirst',
        alice.address,
        backstop,
        found[0]?.equityX,
      )
      await exchange.trader.connect(exchange.admin).setBackstop(ZeroAddress, 0)
      expect((await deleveraging([[bob, 5]], BELOW, asOf)).legs[0]?.steps).to.equal(5n)
    })

    it('when counterparties repeat, lack steps or are out of order, the preview of a deleveraging reverts as the action does', async () => {
      const asOf = await now(exchange)
      const cases = [
        [[], 'CounterpartiesInvalid'],
        [[[bob, 0]], 'StepsZero'],
        [
          [
            [carol, 5],
            [bob, 5],
            [carol, 5],
          ],
          'CounterpartyRepeated',
        ],
        [
          [
            [bob, 5],
            [carol, 5],
          ],
          'CounterpartyOutOfOrder',
        ],
      ] as const
      for (const [legs, error] of cases) {
        const asked = legs as readonly (readonly [Wallet, number])[]
        await expect(deleveraging(asked, BANKRUPT, asOf), error).to.be.revertedWithCustomError(lens, error)
        const requested = asked.map(([of, steps]) => ({ of, steps }))
        await expect(
          deleverage(exchange, alice, requested, { price: BANKRUPT }),
          error,
        ).to.be.revertedWithCustomError(exchange.trader, error)
      }
      const ordered = await deleveraging(
        [
          [carol, 5],
          [bob, 5],
        ],
        BANKRUPT,
        asOf,
      )
      expect(ordered.legs.map(({ steps }) => steps)).to.deep.equal([5n, 5n])
      expect((ordered.scores[0] as bigint) > (ordered.scores[1] as bigint)).to.equal(true)
    })
  })

  it('when a market approaches its end, the preview names what is possible, and at which price', async () => {
    const exchange = await fresh(perpetualExchange)
    const { trader } = exchange
    await trade(exchange, alice, bob, { steps: 1000, price: 1000 })
    const lens = await lensOf(exchange)
    const preview = async () => {
      const { closesAt, reportableUntil, finalizable, freezable, price } = await lens.previewEnding(trader)
      return { closes: closesAt > 0n, reports: reportableUntil > 0n, finalizable, freezable, price }
    }
    const none = { closes: false, reports: false, finalizable: false, freezable: false, price: 0n }
    expect(await preview()).to.deep.equal(none)
    await (await asAnyAccount({ exchange })).requestFreeze()
    await pass(exchange, DAY + 3)
    expect(await preview()).to.deep.equal({ ...none, freezable: true, price: e18('100') })
    await exchange.trader.heartbeat()
    await settleMode(exchange)
    const closed = { ...none, closes: true, reports: true }
    expect(await preview()).to.deep.equal(closed)
    const { report } = await actionOf(exchange, { price: e18('130') })
    await reportFinal(exchange, report)
    expect(await preview()).to.deep.equal(closed)
    await passDisputeWindow(exchange)
    expect(await preview()).to.deep.equal({ ...closed, finalizable: true, price: e18('130') })
    expect((await lens.termsAt(trader, await now(exchange))).mode).to.equal(3n)
    await finalize(exchange)
    expect(await preview()).to.deep.equal({ ...none, closes: true })
  })

  it('when a future has expired, its mode is settling although its parameters say open', async () => {
    const exchange = await fresh(futureExchange)
    const lens = await lensOf(exchange)
    const { expiresAt } = exchange.spec
    const modes = [expiresAt - 1, expiresAt].map(async (at) => (await lens.termsAt(exchange.trader, at)).mode)
    expect(await Promise.all(modes)).to.deep.equal([0n, 3n])
  })
})
