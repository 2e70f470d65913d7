import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  aliveUntil,
  bookType,
  isAlwaysReduceOnly,
  isConditional,
  isExpired,
  isTriggered,
  ORDER_TYPES,
  type OrderType,
  type Side,
  triggerCondition,
} from '../../../domain/orders/order.ts'
import type { Millis, Price, Seconds } from '../../../domain/units.ts'
import { ticks } from '../../support/markets.ts'

describe('triggerCondition', () => {
  const table: Record<OrderType, Record<Side, number>> = {
    MARKET: { LONG: 0, SHORT: 0 },
    LIMIT: { LONG: 0, SHORT: 0 },
    STOP_MARKET: { LONG: 1, SHORT: 2 },
    STOP_LIMIT: { LONG: 1, SHORT: 2 },
    STOP_LOSS_MARKET: { LONG: 1, SHORT: 2 },
    STOP_LOSS_LIMIT: { LONG: 1, SHORT: 2 },
    TAKE_PROFIT_MARKET: { LONG: 2, SHORT: 1 },
    TAKE_PROFIT_LIMIT: { LONG: 2, SHORT: 1 },
  }
  for (const type of ORDER_TYPES) {
    it(`when the type is ${type}, it is ${table[type].LONG} for LONG and ${table[type].SHORT} for SHORT`, () => {
      expect(triggerCondition(type, 'LONG')).to.equal(table[type].LONG)
      expect(triggerCondition(type, 'SHORT')).to.equal(table[type].SHORT)
      expect(isConditional(type)).to.equal(table[type].LONG !== 0)
      expect(bookType(type)).to.equal(type.endsWith('MARKET') ? 'MARKET' : 'LIMIT')
      expect(isAlwaysReduceOnly(type)).to.equal(/PROFIT|LOSS/.test(type))
    })
  }
})

describe('isTriggered', () => {
  const TICK = 5n as Price
  const at = (type: OrderType, side: Side, mark: number) =>
    isTriggered({ type, side, trigger: ticks(100) }, (BigInt(mark) * TICK) as Price, TICK)

  it('when the mark reaches the trigger from the side of the condition, it returns true', () => {
    for (const mark of [99, 100, 101]) {
      expect(at('STOP_MARKET', 'LONG', mark)).to.equal(mark >= 100)
      expect(at('STOP_LOSS_LIMIT', 'SHORT', mark)).to.equal(mark <= 100)
      expect(at('TAKE_PROFIT_MARKET', 'LONG', mark)).to.equal(mark <= 100)
      expect(at('TAKE_PROFIT_LIMIT', 'SHORT', mark)).to.equal(mark >= 100)
      expect(at('LIMIT', 'LONG', mark)).to.equal(true)
    }
  })
})

describe('aliveUntil', () => {
  const until = (expiration: number, key: number | null) =>
    aliveUntil(expiration as Seconds, key as Seconds | null)

  it("when the maker signed, it is the order's expiration", () => {
    expect([until(0, null), until(50, null)]).to.deep.equal([0, 50])
  })

  it('when the session key expires earlier, it is the second before the key expires', () => {
    expect([until(0, 50), until(49, 50), until(50, 50), until(10, 50)]).to.deep.equal([49, 49, 49, 10])
  })

  it('when an order is matched at any time, its session key can still sign', () => {
    const lastMatched = until(0, 50) * 1000
    expect(isExpired(until(0, 50), lastMatched as Millis)).to.equal(false)
    expect(isExpired(until(0, 50), (50 * 1000) as Millis), 'the chain refuses from here on').to.equal(true)
  })
})

describe('isExpired', () => {
  it('when the expiration second has just begun, the order is alive, and when the expiration is 0, it never expires', () => {
    const at = (expiration: number, now: number) => isExpired(expiration as Seconds, now as Millis)
    expect([at(10, 9_999), at(10, 10_000), at(10, 10_001), at(0, 10_000)]).to.deep.equal([
      false,
      false,
      true,
      false,
    ])
  })
})
