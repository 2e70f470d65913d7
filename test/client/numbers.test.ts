import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { fromE18, toE18, toWire } from '../../client/decimals.ts'
import { roundPrice, roundQuantity, toTicks } from '../../client/rounding.ts'
import { saltSequence } from '../../client/salts.ts'

const grid = { tick_size_e18_raw: '50000000000000000', step_size_e18_raw: '1000000000000000' }

describe('client/decimals', () => {
  it('when a value is converted to text or to the wire and back, it returns the same value', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }), (value) => {
        expect(toE18(fromE18(value))).to.equal(value)
        expect(toE18(toWire(value))).to.equal(value)
      }),
    )
  })

  it('when a number prints with an exponent, it converts it exactly', () => {
    expect(toE18(0.1)).to.equal(10n ** 17n)
    expect(toE18(1e-7)).to.equal(10n ** 11n)
    expect(toE18(1.5e-8)).to.equal(15n * 10n ** 9n)
    expect(toE18('-2.50')).to.equal(-25n * 10n ** 17n)
  })

  it('when text is no decimal or has more than 18 places, it throws', () => {
    for (const wrong of ['', '1,5', '1e3', 'NaN', '0x10', `0.${'0'.repeat(18)}1`]) {
      expect(() => toE18(wrong), wrong).to.throw('not a decimal')
    }
  })

  it('when a JSON number represents the value exactly, toWire returns a number, otherwise text', () => {
    expect(toWire(toE18('64000.1'))).to.equal(64000.1)
    expect(toWire(toE18('123456789012345.123456'))).to.equal('123456789012345.123456')
  })
})

describe('client/rounding', () => {
  it('when a price is off the grid, roundPrice rounds a buy down and a sell up', () => {
    expect(roundPrice(grid, '10.07', 'LONG')).to.equal('10.05')
    expect(roundPrice(grid, '10.07', 'SHORT')).to.equal('10.1')
    expect(roundPrice(grid, '10.05', 'SHORT')).to.equal('10.05')
  })

  it('when a quantity is off the grid, roundQuantity rounds down', () => {
    expect(roundQuantity(grid, '0.9999')).to.equal('0.999')
  })

  it('when a price is on the grid, toTicks returns its exact number of ticks', () => {
    expect(toTicks(grid, '10.05')).to.equal(201)
  })
})

describe('client/salts', () => {
  it('when a start is set, it counts up from it and persists each salt', () => {
    const persisted: bigint[] = []
    const salts = saltSequence(7n, (salt) => persisted.push(salt))
    expect([salts.next(), salts.next()]).to.deep.equal([7n, 8n])
    expect(persisted).to.deep.equal([7n, 8n])
  })

  it('when no start is set, it begins below 2^53, and at 2^53 it throws', () => {
    expect(Number(saltSequence().next())).to.be.lessThan(2 ** 53)
    expect(() => saltSequence(1n << 53n).next()).to.throw('below 2^53')
  })

  /** Runs `work` at a moment of the clock. */
  function at<Value>(ms: number, work: () => Value): Value {
    const { now } = Date
    Date.now = () => ms
    try {
      return work()
    } finally {
      Date.now = now
    }
  }

  const NOW = Date.UTC(2026, 0, 1)

  it('when clients start in the same millisecond, their first salts differ', () => {
    const starts = at(NOW, () => Array.from({ length: 20 }, () => saltSequence().next()))
    // Two of twenty starts are equal once in 1,400 runs.
    expect(new Set(starts).size).to.be.at.least(19)
  })

  it('when a program restarts after 256 ms, it repeats no salt of 1,024 orders per millisecond', () => {
    fc.assert(
      fc.property(fc.integer({ min: 256, max: 10 ** 9 }), (elapsedMs) => {
        const first = at(NOW, () => saltSequence().next())
        const last = first + BigInt(elapsedMs) * 1024n - 1n
        expect(at(NOW + elapsedMs, () => saltSequence().next()) > last).to.equal(true)
      }),
    )
  })

  it('when the clock is at the end of 2108, the first salt is below 2^53', () => {
    expect(Number(at(Date.UTC(2108, 11, 31), () => saltSequence().next()))).to.be.lessThan(2 ** 53)
  })
})
