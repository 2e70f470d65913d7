import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  listingRefusals,
  type MarketSpec,
  notionalAt,
  oneInTicks,
  tickStepValue,
} from '../../../domain/market/market.ts'
import type { Millis, Price, Quantity, Rate } from '../../../domain/units.ts'
import {
  binary,
  EXPIRES_AT,
  e18,
  future,
  markets,
  perpetual,
  price,
  quote,
  rate,
  steps,
  ticks,
} from '../../support/markets.ts'

describe('listingRefusals', () => {
  it('when a market of each kind is valid, it returns nothing', () => {
    for (const spec of markets) expect(listingRefusals(spec)).to.deep.equal([])
  })

  const odd = (value: bigint) => value as Rate
  const table: readonly (readonly [string, MarketSpec, Partial<MarketSpec>, readonly string[]])[] = [
    ['a tick of 0', perpetual, { tick: 0n as Price }, ['GRID']],
    ['a negative step', perpetual, { step: -1n as Quantity }, ['GRID']],
    ['a notional that rounds', perpetual, { tick: 1n as Price }, ['GRID']],
    [
      'a fee that rounds',
      perpetual,
      { tick: e18('0.0000000001') as Price, step: e18('0.001') as Quantity },
      ['GRID'],
    ],
    ['a binary tick that does not divide 1', binary, { tick: price('0.003') }, ['GRID']],
    ['a binary tick of 1', binary, { tick: price('1') }, ['GRID']],
    [
      'a binary tick below 1e-6',
      binary,
      { tick: price('0.0000001'), step: e18('1000000') as Quantity },
      ['GRID'],
    ],
    [
      'a binary step too fine',
      binary,
      { tick: price('0.000001'), step: e18('0.0000001') as Quantity },
      ['GRID'],
    ],
    ['a rate finer than a millionth', perpetual, { takerFee: odd(1n) }, ['RATE_GRID']],
    ['a negative rate', perpetual, { makerFee: rate('-0.0001') }, ['RATE_GRID']],
    ['a minimum price of 0', perpetual, { minPrice: ticks(0) }, ['MIN_PRICE']],
    ['a minimum price of 1 on a binary', binary, { minPrice: ticks(1000) }, ['MIN_PRICE']],
    ['a minimum above the maximum', perpetual, { minQuantity: steps(20_000_000) }, ['QUANTITY_BOUNDS']],
    ['a minimum of 0', perpetual, { minQuantity: steps(0) }, ['QUANTITY_BOUNDS']],
    ['a maximum above 2^33 steps', perpetual, { maxQuantity: steps(2 ** 33 + 1) }, ['QUANTITY_BOUNDS']],
    ['a fraction of leverage', perpetual, { maxLeverage: 2.5 }, ['MAX_LEVERAGE']],
    [
      'more leverage than fits into its bits',
      perpetual,
      { maxLeverage: 128 },
      ['MAX_LEVERAGE', 'MARGIN_LEVERAGE'],
    ],
    ['no maintenance margin', perpetual, { mmr: rate('0') }, ['MARGIN_SPREAD']],
    ['requirements too close', perpetual, { mmr: rate('0.037501') }, ['MARGIN_SPREAD']],
    ['leverage that IMR does not allow', perpetual, { imr: rate('0.050001') }, ['MARGIN_LEVERAGE']],
    ['a band down to 0', perpetual, { mtbShort: rate('1') }, ['BAND_WIDTH']],
    ['a band above twice the price', perpetual, { mtbLong: rate('1.000001') }, ['BAND_WIDTH']],
    ['a maker fee above the taker fee', perpetual, { makerFee: rate('0.001') }, ['FEES']],
    ['a fee above 5 %', future, { takerFee: rate('0.050001') }, ['FEES']],
    ['a perpetual that expires', perpetual, { expiresAt: EXPIRES_AT }, ['EXPIRY']],
    ['a future without an expiry', future, { expiresAt: 0 as Millis }, ['EXPIRY']],
    ['no time to dispute', binary, { disputeWindow: 999 as Millis }, ['DISPUTE_WINDOW']],
    [
      'a dispute window above 14 days',
      perpetual,
      { disputeWindow: 1_209_600_001 as Millis },
      ['DISPUTE_WINDOW'],
    ],
  ]
  for (const [name, spec, change, refusals] of table) {
    it(`when there is ${name}, it returns ${refusals.join(', ')}`, () => {
      expect(listingRefusals({ ...spec, ...change })).to.deep.equal(refusals)
    })
  }

  it('when every parameter is at its bound, it returns nothing', () => {
    const edge = {
      mmr: rate('0.0375'),
      maxQuantity: steps(2 ** 33),
      mtbLong: rate('1'),
      takerFee: rate('0.05'),
    }
    expect(listingRefusals({ ...perpetual, ...edge })).to.deep.equal([])
    expect(listingRefusals({ ...binary, tick: price('0.000001'), step: e18('1') as Quantity })).to.deep.equal(
      [],
    )
  })
})

describe('the grid', () => {
  it('when a market is listed, every notional is exact', () => {
    expect(tickStepValue(perpetual)).to.equal(10n ** 14n)
    expect(notionalAt(perpetual, ticks(1000), steps(1000))).to.equal(quote('100'))
    expect(oneInTicks(binary)).to.equal(1000)
  })
})
