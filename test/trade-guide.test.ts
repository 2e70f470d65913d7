/** The worked examples of docs/trade/ about money: the page has the figures, and the rules of the exchange give them. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readConfig } from '../api/config.ts'
import { createCostBudgets } from '../api/http/cost-budget.ts'
import { feeAllowancePerStep, feeAllowancePrice } from '../domain/market/fees.ts'
import { expectedProtection, type QuotedMarket } from '../domain/orders/estimate.ts'
import { executableSteps } from '../domain/orders/executable.ts'
import { reservedPriceOf } from '../domain/orders/reservation.ts'
import { equityPoints, NO_FLOWS, NO_VALUE } from '../domain/positions/equity-history.ts'
import { fractionOf, HOUR, NO_RATE } from '../domain/prices/funding.ts'
import { fundingPayment } from '../domain/prices/funding-payment.ts'
import { proposedRate } from '../domain/prices/funding-plan.ts'
import { payableAt } from '../domain/settlement/durations.ts'
import type { Millis } from '../domain/units.ts'
import { apiEnv } from './api/support/exchange-fixture.ts'
import { orders } from './domain/support/resting.ts'
import { e18, index, perpetual, price, quote, rate, steps, ticks } from './support/markets.ts'

/** The page's text with its line breaks as spaces. */
const pageText = (name: string): string => readFileSync(`docs/trade/${name}.md`, 'utf8').replaceAll('\n', ' ')

describe('the examples of docs/trade', () => {
  it('when a market buy has a width of 0.02, it fills at or below 61,200, and after a trigger 63,600', () => {
    expect(pageText('batches-and-prices')).to.include(
      '0.02 at a reference price of 60,000 keeps a market buy at or below 61,200, a conditional one at or below 63,600',
    )
    const market: QuotedMarket = {
      spec: { ...perpetual, tick: price('1'), mtbLong: rate('0.1'), mtbShort: rate('0.1') },
      oracle: price('60000'),
      band: { lo: ticks(54_000), hi: ticks(66_000) },
      depth: [{ price: ticks(60_000), steps: steps(1_000) }],
      priceProtection: rate('0.02'),
    }
    expect(expectedProtection({ side: 'LONG', type: 'MARKET' }, market).price).to.equal(61_200)
    expect(expectedProtection({ side: 'LONG', type: 'STOP_MARKET' }, market).price).to.equal(63_600)
  })

  it('when a limit sell is below the upper edge, its fee allowance is that of 61,610: 61.61 for 2 units', () => {
    expect(pageText('orders')).to.include(
      'limit 60,000, upper edge 61,000, `mtb_long` 0.01 and tick 1 give 61,610. At a taker rate of 0.0005, 2 units reserve 61.61 USDM',
    )
    const spec = { ...perpetual, tick: price('1'), mtbLong: rate('0.01'), takerFee: rate('0.0005') }
    const order = { side: 'SHORT', type: 'LIMIT', price: ticks(60_000), trigger: ticks(0) } as const
    const reserved = reservedPriceOf(spec, order, { lo: ticks(59_000), hi: ticks(61_000) })
    expect(feeAllowancePrice(spec, reserved)).to.equal(price('61610'))
    expect(feeAllowancePerStep(spec, reserved) * 2_000n).to.equal(quote('61.61'))
  })

  it('when two reduce-only sells exceed the position, the book counts 0.8 and 0.2', () => {
    expect(pageText('market-data')).to.include(
      'with a position `LONG` 1, reduce-only sells of 0.8 at 60,000 and 0.8 at 60,100 count as 0.8 and 0.2',
    )
    const { all } = orders(`
      A sell 60000 x800 by 1 reduce-only
      B sell 60100 x800 by 1 reduce-only`)
    expect([...executableSteps(steps(1_000), all).values()]).to.deep.equal([800, 200])
  })

  it('when withdrawals are requested at 12:00:00 and 12:00:10, the bank pays at 12:00:26', () => {
    expect(pageText('account-and-funds')).to.include(
      '100 at 12:00:00 and 50 at 12:00:10 are payable at 12:00:26',
    )
    const last = Date.UTC(2026, 10, 20, 12, 0, 10)
    expect(new Date(payableAt(last)).toISOString()).to.equal('2026-11-20T12:00:26.000Z')
  })

  it('when the average premium is 0.0008, a long of 60,000 USDM pays 6 USDM per hour', () => {
    expect(pageText('market-data')).to.include(
      'an average of 0.0008 predicts 0.0001 per hour; a long of 60,000 USDM then pays 6 USDM per hour',
    )
    const oracle = price('60000')
    const asOf = HOUR as Millis
    const hourly = proposedRate(perpetual, NO_RATE, rate('0.0008'), oracle, asOf)
    expect(fractionOf(perpetual, hourly, oracle)).to.equal(rate('0.0001'))
    expect(fundingPayment(steps(1_000), index(0n), index(hourly))).to.equal(quote('-6'))
  })

  it('when 1,000 meet deposits, a profit, fees, funding and a falling mark, the equity is 1,235', () => {
    expect(pageText('account-and-funds')).to.include(
      '1,000, then deposits 200, profit 50, fees 2, funding -3 and unrealized profit -10 give 1,235',
    )
    const before = { flows: { ...NO_FLOWS, deposits: e18('1000') }, value: NO_VALUE }
    const interval = {
      flows: {
        deposits: e18('200'),
        withdrawals: 0n,
        realizedPnl: e18('50'),
        fees: e18('2'),
        funding: e18('-3'),
      },
      value: { unrealizedPnl: e18('-10'), accruedFunding: 0n },
    }
    const [point] = equityPoints(before, [interval])
    expect(point?.equity).to.equal(e18('1235'))
    expect(point?.balance).to.equal(e18('1245'))
  })

  it('when an account sends 20 batches and 5 reads per second, they fit its budget, and 23 batches do not', () => {
    expect(pageText('limits')).to.include('20 batches of 50 orders and 5 reads per second are accepted')
    const set = Object.entries(apiEnv('postgres://here/db'))
    const { limits } = readConfig(Object.fromEntries(set.filter(([name]) => !name.startsWith('RATE_LIMIT_'))))
    const { partsOf, windowMs } = createCostBudgets(limits)
    const payer = { account: 'a', network: 'n' }
    const seconds = windowMs / 1_000
    const used = (batches: number): readonly { readonly units: number; readonly most: number }[] =>
      partsOf('batches', payer, batches * seconds).map(({ units, most }, at) => ({
        units: units + (partsOf('reads', payer, 5 * seconds)[at]?.units ?? 0),
        most,
      }))
    expect(used(20).every(({ units, most }) => units <= most)).to.equal(true)
    expect(used(23)[0]).to.satisfy(({ units, most }: { units: number; most: number }) => units > most)
  })
})
