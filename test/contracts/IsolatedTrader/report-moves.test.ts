/** How far a series of oracle reports can move the price: by actions of the operator, by pokes, and by adjustments. */
import { expect } from 'chai'
import { allowedMove } from '../../../domain/prices/report.ts'
import type { Millis, Price } from '../../../domain/units.ts'
import { REPORT_LIMITS } from '../../../stack/deploy.ts'
import { nextSecond, perpetualExchange, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { adjustMargin, setFunding } from '../support/adjust.ts'
import { audit } from '../support/audit.ts'
import { pass, trade } from '../support/risk.ts'
import { type CurrentExchange, fresh, poke } from '../support/wind-down.ts'

const alice = wallet('alice')
const bob = wallet('bob')
const PRICE = e18('100')
const RULES = {
  kind: 'perpetual' as const,
  moveBase: REPORT_LIMITS.moveBase / 10n ** 12n,
  moveSlope: REPORT_LIMITS.moveSlope / 10n ** 12n,
  moveWindow: REPORT_LIMITS.moveWindow as Millis,
}
const allowed = (price: bigint, elapsed: number): bigint => allowedMove(price as Price, elapsed, RULES)

describe('moves of oracle reports', () => {
  const current = {} as CurrentExchange
  let last: number
  beforeEach(async () => {
    current.exchange = await fresh(perpetualExchange)
    await trade(current.exchange, alice, bob, { steps: 1000, price: 1000, leverage: 2 })
    last = Number((await current.exchange.trader.lastReference()).observedAt)
  })
  afterEach(() => audit(current.exchange))

  const tooFar = (call: Promise<unknown>) =>
    expect(call).to.be.revertedWithCustomError(current.exchange.trader, 'ReportMoveTooLarge')

  it('when eight pokes follow each other by a millisecond, none moves the price by the base again', async () => {
    // Each of them alone was within base + slope: together they moved the price from 100 to 214.
    for (let at = 1; at <= 8; at++) {
      const price = (PRICE * 11n ** BigInt(at)) / 10n ** BigInt(at)
      await tooFar(poke(current, price, { observedAt: last + at }))
    }
    let price: bigint = PRICE
    for (let at = 1; at <= 8; at++) {
      await tooFar(poke(current, price + allowed(price, 1) + 1n, { observedAt: last + at }))
      price += allowed(price, 1)
      await poke(current, price, { observedAt: last + at })
    }
    // 8 ms at 12 % a second.
    expect(price).to.be.within(e18('100.095'), e18('100.0965'))
  })

  it('when the operator settles two actions a millisecond apart, the second moves the price by a thousandth of the base', async () => {
    await pass(current.exchange, 10)
    const asOf = (await nextSecond(current.exchange)) * 1000
    await setFunding(current.exchange, { price: e18('110'), rate: 0n, asOf })
    const next = { rate: 0n, asOf: asOf + 1, observedAt: asOf + 1 }
    const step = allowed(e18('110'), 1)
    expect(step).to.equal(e18('0.0132'))
    await tooFar(setFunding(current.exchange, { ...next, price: e18('110') + step + 1n }))
    await tooFar(setFunding(current.exchange, { ...next, price: e18('110') - step - 1n }))
    await setFunding(current.exchange, { ...next, price: e18('110') + step })
  })

  it('when the window has passed since the last used report, the whole base and the slope are available', async () => {
    await pass(current.exchange, 10)
    for (const [elapsed, reach] of [
      [500, '6'],
      [999, '11.988'],
      [1_000, '12'],
      [1_500, '13'],
    ] as const) {
      expect(allowed(PRICE, elapsed)).to.equal(e18(reach))
    }
    const observedAt = (await nextSecond(current.exchange)) * 1000
    const reach = allowed(PRICE, observedAt - last)
    await tooFar(poke(current, PRICE + reach + 1n, { observedAt }))
    await poke(current, PRICE + reach, { observedAt })
  })

  it('when an adjustment brings a report of its own, it is measured from the last used report by the same law', async () => {
    const asOf = (await nextSecond(current.exchange)) * 1000
    const observedAt = last + 100
    const reach = allowed(PRICE, 100)
    const add = (price: bigint) =>
      adjustMargin(current.exchange, { by: alice, amount: e18('1'), price, asOf, observedAt })
    await tooFar(add(PRICE + reach + 1n))
    await add(PRICE + reach)
  })

  it('when a report repeats the price every few milliseconds, a later one may still move by the time since the last used one', async () => {
    for (let at = 10; at <= 50; at += 10) await poke(current, PRICE, { observedAt: last + at })
    await tooFar(poke(current, e18('112'), { observedAt: last + 1_000 }))
    await poke(current, PRICE + allowed(PRICE, 950), { observedAt: last + 1_000 })
    // Pokes do not narrow what actions may use: they are measured from the report that an action used last.
    const asOf = last + 1_000
    await setFunding(current.exchange, { price: e18('112'), rate: 0n, asOf, observedAt: asOf })
  })
})
