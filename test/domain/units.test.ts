import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { toHex, writeHex } from '../../domain/hex.ts'
import { divCeil, divFloor, mulDivDown, mulDivUp, toDecimal } from '../../domain/units.ts'
import { e18 } from '../support/markets.ts'

const anyAmount = fc.bigInt({ min: 0n, max: 2n ** 128n })
const anyDivisor = fc.bigInt({ min: 1n, max: 2n ** 80n })

describe('mulDivDown and mulDivUp', () => {
  it('when any amounts are divided, they enclose the exact quotient, at most one wei apart', () => {
    fc.assert(
      fc.property(anyAmount, anyAmount, anyDivisor, (a, b, c) => {
        const [down, up] = [mulDivDown(a, b, c), mulDivUp(a, b, c)]
        expect(down * c <= a * b && a * b <= up * c).to.equal(true)
        expect(up - down).to.equal((a * b) % c === 0n ? 0n : 1n)
      }),
    )
  })

  it('when the amount grows, the result does not shrink', () => {
    fc.assert(
      fc.property(anyAmount, anyAmount, anyAmount, anyDivisor, (a, more, b, c) => {
        expect(mulDivDown(a, b, c) <= mulDivDown(a + more, b, c)).to.equal(true)
        expect(mulDivUp(a, b, c) <= mulDivUp(a + more, b, c)).to.equal(true)
      }),
    )
  })

  it('when an amount is negative, they throw, because the direction would be ambiguous', () => {
    expect(() => mulDivDown(-1n, 1n, 1n)).to.throw('not negative')
    expect(() => mulDivUp(1n, 1n, 0n)).to.throw('not negative')
  })
})

describe('divFloor and divCeil', () => {
  it('when the dividend is negative, they round towards minus and plus infinity', () => {
    expect([divFloor(-7n, 2n), divFloor(7n, 2n), divFloor(-8n, 2n)]).to.deep.equal([-4n, 3n, -4n])
    expect([divCeil(-7n, 2n), divCeil(7n, 2n), divCeil(8n, 2n)]).to.deep.equal([-3n, 4n, 4n])
  })
})

describe('toDecimal', () => {
  const table: readonly (readonly [bigint, string])[] = [
    [0n, '0'],
    [1n, '0.000000000000000001'],
    [5n * 10n ** 17n, '0.5'],
    [10n ** 18n, '1'],
    [-15n * 10n ** 17n, '-1.5'],
    [123n * 10n ** 20n, '12300'],
  ]
  for (const [amount, text] of table) {
    it(`when an amount is formatted, it is ${text}`, () => expect(toDecimal(amount)).to.equal(text))
  }

  it('when the text is parsed again, it is the same amount', () => {
    fc.assert(
      fc.property(fc.bigInt(), (amount) => {
        expect(e18(toDecimal(amount))).to.equal(amount)
      }),
    )
  })
})

describe('hex', () => {
  it('when bytes are written as hex, they are read back unchanged', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const target = new Uint8Array(bytes.length)
        expect(writeHex(toHex(bytes), target, 0)).to.equal(true)
        expect(target).to.deep.equal(bytes)
        expect(toHex(bytes)).to.equal(`0x${Buffer.from(bytes).toString('hex')}`)
      }),
    )
  })
})
