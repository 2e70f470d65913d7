/** Adjustments consume no `actionId` and activate no scheduled change: each is judged by the parameters valid at its own `asOf`. */
import { expect } from 'chai'
import type { Millis } from '../../../domain/units.ts'
import { parametersOf } from '../../../stack/deploy.ts'
import { type Exchange, futureExchange, pair, restart, settle } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { adjustLeverage, adjustMargin } from '../support/adjust.ts'
import { AT_100, alice, bob, OPENING_TRADE, openPositions } from '../support/adjustment-fixture.ts'
import { audit } from '../support/audit.ts'
import { trade } from '../support/risk.ts'

const DAY = 86_400_000

describe('adjustments while a change of parameters is scheduled', () => {
  let exchange: Exchange
  let activeFrom: number
  let before: { asOf: number; observedAt: number }
  let after: typeof before
  const leverageRefused = refusing(() => exchange, adjustLeverage)
  const marginRefused = refusing(() => exchange, adjustMargin)

  /** Schedules a change and advances to its activation time without an action at or after it. */
  async function announce(change: object): Promise<void> {
    const { time } = exchange.connection.networkHelpers
    activeFrom = ((await time.latest()) + 60) * 1000 + DAY
    const next = { ...parametersOf(exchange.spec), ...change }
    await exchange.trader.connect(exchange.admin).scheduleParameters(next, activeFrom)
    await time.increaseTo(activeFrom / 1000)
    before = { asOf: activeFrom - 1, observedAt: activeFrom - 1 }
    after = { asOf: activeFrom, observedAt: activeFrom }
  }

  beforeEach(async () => {
    exchange = await openPositions()
  })
  afterEach(async () => {
    expect((await exchange.trader.lastReference()).changePending).to.equal(true)
    await audit(exchange)
  })

  it('when maxLeverage falls, it applies to adjustments with asOf at or after the change', async () => {
    await announce({ maxLeverage: 4 })
    const asked = { by: alice, price: AT_100, leverage: 10 }
    await leverageRefused({ ...asked, ...after }, 'LeverageInvalid', [alice.address, e18('4'), e18('10')])
    await adjustLeverage(exchange, { ...asked, ...before })
    await adjustLeverage(exchange, { ...asked, leverage: 4, ...after })
  })

  it('when IMR rises, more margin has to stay from then on', async () => {
    await adjustMargin(exchange, { by: alice, price: AT_100, amount: e18('20') })
    await announce({ imr: 300_000, maxLeverage: 3 })
    const asked = { by: alice, price: AT_100, amount: -e18('10') - 1n }
    await marginRefused({ ...asked, ...after }, 'RemovalTooLarge', [alice.address, e18('10'), e18('10') + 1n])
    await adjustMargin(exchange, { ...asked, ...before })
  })

  it('when MMR rises, an addition below the new maintenance has to reach IMR from then on', async () => {
    await announce({ imr: 200_000, mmr: 150_000, maxLeverage: 5 })
    // Equity 15 of 95: 15.8 %, above 2.25 % and less than half a point above 15 %; 20 % are 19.
    const asked = { by: alice, price: e18('95'), amount: 1n }
    const sick = { ...asked, price: e18('94') }
    await adjustMargin(exchange, { ...asked, ...after })
    await marginRefused({ ...sick, ...after }, 'AdditionInsufficient', [alice.address, e18('4.8') - 1n, 1n])
    await adjustMargin(exchange, { ...sick, ...before })
  })

  it('when reportMaxAge changes, it applies to the last used report and to a supplied one', async () => {
    await announce({ reportMaxAge: 5_000 })
    const asked = { by: alice, amount: 1n }
    const last = activeFrom - 6_000
    const refusal = (asOf: number) => [asOf, last, 5_000]
    await marginRefused(
      { ...asked, price: AT_100, asOf: activeFrom, observedAt: last },
      'ReportStale',
      refusal(activeFrom),
    )
    await adjustMargin(exchange, { ...asked, price: AT_100, asOf: activeFrom - 1, observedAt: last })
    const time = { asOf: last as Millis, observedAt: last }
    await settle(exchange, { price: OPENING_TRADE.price, fills: pair(alice, bob, 10), ...time })
    await marginRefused({ ...asked, asOf: activeFrom }, 'ReportStale', refusal(activeFrom))
    await adjustMargin(exchange, { ...asked, asOf: activeFrom - 1 })
  })

  it('when the allowed price move shrinks, it applies to a supplied report', async () => {
    const { moveSlope } = parametersOf(exchange.spec)
    await announce({ moveBase: 10_000, moveSlope: 0 })
    const asked = { by: alice, price: e18('102'), amount: 1n }
    expect(moveSlope).to.be.greaterThan(0)
    await marginRefused({ ...asked, ...after }, 'ReportMoveTooLarge', [AT_100, e18('102'), e18('1')])
    await adjustMargin(exchange, { ...asked, ...before })
  })

  it('when a halt is scheduled, margin can be removed and leverage changed until then', async () => {
    const { time } = exchange.connection.networkHelpers
    await announce({})
    const halts = ((await time.latest()) + 60) * 1000
    await exchange.trader.connect(exchange.admin).scheduleMode(2, halts)
    await time.increaseTo(halts / 1000)
    const asked = { by: alice, price: e18('101'), amount: -1n, removeMode: 'up_to' } as const
    const changed = { by: alice, price: AT_100, leverage: 4 }
    const then = { asOf: halts, observedAt: halts }
    await marginRefused({ ...asked, ...then }, 'MarketNotOpen', [2])
    await leverageRefused({ ...changed, ...then }, 'MarketNotOpen', [2])
    await adjustMargin(exchange, { ...asked, ...then, amount: 1n, removeMode: 'exact' })
    const just = { asOf: halts - 1, observedAt: halts - 1 }
    await adjustMargin(exchange, { ...asked, ...just })
    await adjustLeverage(exchange, { ...changed, ...just })
  })
})

describe('adjustments around the expiry of a future', () => {
  after(restart)

  it('when asOf is the expiry, margin can only be added; 1 ms earlier it can be removed', async () => {
    await restart()
    const exchange = await futureExchange()
    await trade(exchange, alice, bob, { steps: 1000, price: 1000, leverage: 2 })
    const { expiresAt } = exchange.spec
    await exchange.connection.networkHelpers.time.increaseTo(expiresAt / 1000 - 1)
    // Equity of 2,600 and a notional of 5,100: 50 are above the leverage.
    const asked = { by: alice, price: e18('510'), amount: -1n, asOf: expiresAt, observedAt: expiresAt }
    await refusing(() => exchange, adjustMargin)(asked, 'MarketNotOpen', [3])
    await adjustMargin(exchange, { ...asked, amount: 1n })
    await adjustMargin(exchange, { ...asked, asOf: expiresAt - 1, observedAt: expiresAt - 1 })
    await audit(exchange)
  })
})

function refusing<Input>(
  exchange: () => Exchange,
  send: (exchange: Exchange, input: Input) => Promise<unknown>,
) {
  return async (input: Input, error: string, args: readonly unknown[]): Promise<void> => {
    await expect(send(exchange(), input))
      .to.be.revertedWithCustomError(exchange().trader, error)
      .withArgs(...args)
  }
}
