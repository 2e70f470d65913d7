/** After a pause of the bank, owners can add margin before any account with equity is liquidated. */
import { expect } from 'chai'
import { type ContractTransactionResponse, ZeroAddress } from 'ethers'
import { PAUSE_GRACE } from '../../../domain/settlement/durations.ts'
import { type Exchange, nextSecond, perpetualExchange, settle, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { adjustMargin } from '../support/adjust.ts'
import { audit } from '../support/audit.ts'
import { DAY, deleverage, inherit, trade, withBackstop } from '../support/risk.ts'
import { fresh } from '../support/wind-down.ts'

const alice = wallet('alice')
const bob = wallet('bob')
const carol = wallet('carol')
const GRACE = PAUSE_GRACE / 1000

/** Alice bought 1 at 100 with 5 of margin: below maintenance at 97, without equity at 95. */
const BELOW = { price: e18('97') }
const BANKRUPT = { price: e18('95') }

const fixture = async (): Promise<Exchange> => {
  const exchange = await perpetualExchange()
  await withBackstop(exchange, e18('10000'), e18('1000'))
  await trade(exchange, alice, bob, { steps: 1000, price: 1000, sellerLeverage: 1 })
  return exchange
}

type Liquidation = (at: {
  readonly price: bigint
  readonly asOf?: number
}) => Promise<ContractTransactionResponse>

describe('liquidations after a pause of the bank', () => {
  let exchange: Exchange
  let endsAt: number
  const time = () => exchange.connection.networkHelpers.time

  const forced: Liquidation = ({ price, asOf }) =>
    settle(exchange, {
      price: Number(price / exchange.spec.tick),
      ...(asOf !== undefined && { asOf: asOf as never }),
      fills: [
        { by: carol, side: 'LONG', fill: 400, leverage: 1 },
        { by: alice, side: 'SHORT', fill: 400, forced: 7n },
      ],
    })
  const inherited: Liquidation = (at) => inherit(exchange, alice, at)
  const deleveraged: Liquidation = (at) => deleverage(exchange, alice, [{ of: bob, steps: 1000 }], at)
  const KINDS = { 'a forced record': forced, 'an inheritance': inherited, 'a deleveraging': deleveraged }

  const tooSoon = (call: Promise<unknown>, asOf: number) =>
    expect(call)
      .to.be.revertedWithCustomError(exchange.trader, 'LiquidationTooSoon')
      .withArgs(alice.address, endsAt * 1000 + PAUSE_GRACE, asOf)

  /** A deleveraging comes after the backstop. */
  const withoutBackstop = () => exchange.trader.connect(exchange.admin).setBackstop(ZeroAddress, 0)

  /** The next block is mined `seconds` after the end of the pause; returns its time in milliseconds. */
  async function at(seconds: number): Promise<number> {
    await time().increaseTo(endsAt + seconds - 1)
    return (await nextSecond(exchange)) * 1000
  }

  beforeEach(async () => {
    exchange = await fresh(fixture)
    await exchange.bank.pause()
    endsAt = Number((await exchange.bank.lastPause()).endsAt)
  })
  afterEach(() => audit(exchange))

  for (const [name, liquidate] of Object.entries(KINDS)) {
    it(`when a pause ended less than ten minutes ago, ${name} of an account with equity reverts with LiquidationTooSoon, and later succeeds`, async () => {
      if (liquidate === deleveraged) await withoutBackstop()
      const early = await at(GRACE - 2)
      await tooSoon(liquidate(BELOW), early)
      const last = await at(GRACE)
      await tooSoon(liquidate({ ...BELOW, asOf: last - 1 }), last - 1)
      await liquidate({ ...BELOW, asOf: last })
    })

    it(`when the account has no equity left, ${name} succeeds in the first second after a pause`, async () => {
      await at(1)
      await liquidate(BANKRUPT)
    })

    it(`when the guardian ended the pause early, the ten minutes before ${name} count from there`, async () => {
      if (liquidate === deleveraged) await withoutBackstop()
      await exchange.bank.unpause()
      endsAt = Number((await exchange.bank.lastPause()).endsAt)
      const early = await at(GRACE - 2)
      await tooSoon(liquidate(BELOW), early)
      await at(GRACE)
      await liquidate(BELOW)
    })
  }

  it('when the owner adds margin within the ten minutes, the account can no longer be liquidated', async () => {
    await at(60)
    await adjustMargin(exchange, { by: alice, amount: e18('5'), ...BELOW })
    await at(GRACE)
    await expect(inherit(exchange, alice, BELOW)).to.be.revertedWithCustomError(
      exchange.trader,
      'NotLiquidatable',
    )
  })

  it('when an action was queued before a pause that ended at once, it reverts with LiquidationTooSoon', async () => {
    await time().increaseTo(endsAt + 30 * DAY)
    await exchange.bank.pause()
    const asOf = (await time().latest()) * 1000
    await exchange.bank.unpause()
    endsAt = Number((await exchange.bank.lastPause()).endsAt)
    await tooSoon(inherit(exchange, alice, { ...BELOW, asOf }), asOf)
  })

  it('when the account is not below the requirement, the error is NotLiquidatable during the ten minutes too', async () => {
    await at(60)
    await expect(inherit(exchange, alice, { price: e18('100') })).to.be.revertedWithCustomError(
      exchange.trader,
      'NotLiquidatable',
    )
  })
})
