import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  announceWidth,
  DEFAULT_PRICE_PROTECTION,
  isPriceProtection,
  MAX_PRICE_PROTECTION,
  PROTECTION_NOTICE,
  scheduleAt,
} from '../../../domain/market/price-protection.ts'
import type { Millis } from '../../../domain/units.ts'
import { markets, rate } from '../../support/markets.ts'

const at = (time: number) => time as Millis

describe('the width of price protection', () => {
  const initial = { inForce: rate('0.01'), next: null }

  it('when a width is announced, it is in force exactly a day later', () => {
    const schedule = announceWidth(initial, rate('0.02'), at(1_000))
    const end = 1_000 + PROTECTION_NOTICE
    expect(schedule).to.deep.equal({ inForce: rate('0.01'), next: { width: rate('0.02'), at: end } })
    expect(scheduleAt(schedule, at(end - 1))).to.equal(schedule)
    expect(scheduleAt(schedule, at(end))).to.deep.equal({ inForce: rate('0.02'), next: null })
  })

  it('when another width is announced before, it replaces the first; afterwards, the first stays in force', () => {
    const first = announceWidth(initial, rate('0.02'), at(0))
    expect(announceWidth(first, rate('0.03'), at(PROTECTION_NOTICE - 1)).inForce).to.equal(rate('0.01'))
    const second = announceWidth(first, rate('0.03'), at(PROTECTION_NOTICE))
    expect(second).to.deep.equal({
      inForce: rate('0.02'),
      next: { width: rate('0.03'), at: 2 * PROTECTION_NOTICE },
    })
  })

  it('when a width is 0, negative or above the maximum of its kind, it is not valid', () => {
    for (const { kind } of markets) {
      expect(isPriceProtection(kind, DEFAULT_PRICE_PROTECTION[kind])).to.equal(true)
      expect(isPriceProtection(kind, 1n)).to.equal(true)
      expect(isPriceProtection(kind, MAX_PRICE_PROTECTION[kind])).to.equal(true)
      expect(isPriceProtection(kind, MAX_PRICE_PROTECTION[kind] + 1n)).to.equal(false)
      expect(isPriceProtection(kind, 0n)).to.equal(false)
      expect(isPriceProtection(kind, -1n)).to.equal(false)
    }
  })
})
