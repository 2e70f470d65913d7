import { expect } from 'chai'
import { formatEther, getBytes, keccak256, recoverAddress, SigningKey, Wallet } from 'ethers'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { keccak, recover } from '../../api/adapters/crypto.ts'
import { keepsPrecision, parseJson } from '../../api/http/json.ts'
import { decimalText, parseDecimal, toNumber } from '../../api/views/amounts.ts'
import { decodeCursor, encodeCursor } from '../../api/views/cursor.ts'
import { toHex } from '../../domain/hex.ts'

const wei = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n })

describe('numbers in and out', () => {
  it('writes an amount as the double nearest to it', () => {
    fc.assert(
      fc.property(wei, (amount) => {
        expect(toNumber(amount)).to.equal(Number(formatEther(amount)))
      }),
    )
  })

  it('writes decimals without zeros at the end', () => {
    expect([0n, 1n, -5n * 10n ** 17n, 12n * 10n ** 18n].map(decimalText)).to.deep.equal([
      '0',
      '0.000000000000000001',
      '-0.5',
      '12',
    ])
  })

  it('reads what it writes', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 40n }), (amount) => {
        expect(parseDecimal(decimalText(amount))).to.equal(amount)
      }),
    )
  })

  it('reads every double that has at most 18 decimals exactly as it is printed', () => {
    expect(parseDecimal(0.1)).to.equal(10n ** 17n)
    expect(parseDecimal(1e-7)).to.equal(10n ** 11n)
    expect(parseDecimal(1e21)).to.equal(10n ** 39n)
    expect(parseDecimal(1e-19)).to.equal(null)
    expect(parseDecimal('1e400')).to.equal(null)
    expect(parseDecimal('-1')).to.equal(null)
  })

  it('looks at every number that a double might change, wherever it stands', () => {
    const digits = fc.stringMatching(/^[1-9]\d{0,24}$/)
    const source = fc.oneof(
      digits,
      fc
        .tuple(fc.constantFrom('0', '7', '90071992547409'), digits)
        .map(([whole, rest]) => `${whole}.${rest}`),
      fc.tuple(digits, fc.constantFrom('e5', 'E-7', 'e+20')).map((parts) => parts.join('')),
    )
    const places = ['{"a":N}', '{"a": -N }', '[N]', '[1,\n-N]', '{"a":{"b":[{"c":N}]},"d":"x"}']
    fc.assert(
      fc.property(source, fc.constantFrom(...places), (number, place) => {
        const text = place.replace('N', number)
        if (keepsPrecision(number, Number(number))) expect(parseJson(text)).to.deep.equal(JSON.parse(text))
        else
          expect(() => parseJson(text))
            .to.throw()
            .with.property('code', 'PRECISION_LOST')
      }),
      { numRuns: 2000 },
    )
  })

  it('takes a JSON number if and only if a double keeps it', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(keepsPrecision(JSON.stringify(value), value)).to.equal(true)
      }),
    )
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 25n }), fc.nat(20), (digits, decimals) => {
        const text = digits.toString().padStart(decimals + 1, '0')
        const at = text.length - decimals
        const source = decimals === 0 ? text : `${text.slice(0, at)}.${text.slice(at)}`
        const exact = keepsPrecision(source, Number(source))
        const kept = parseDecimal(Number(source))
        if (decimals <= 18 && kept !== null) {
          expect(exact, source).to.equal(kept === digits * 10n ** BigInt(18 - decimals))
        }
      }),
    )
  })

  it('gives back a cursor as it was', () => {
    for (const cursor of [
      { at: 0, id: '1-1' },
      { at: 1_800_000_000_000, id: '12-345-2-9' },
    ]) {
      expect(decodeCursor(encodeCursor(cursor))).to.deep.equal(cursor)
    }
  })
})

describe('the fast hash and recovery', () => {
  it('equal those of ethers, call after call', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (message) => {
        expect(toHex(keccak(message))).to.equal(keccak256(message))
      }),
    )
    const wallet = new Wallet(new SigningKey(`0x${'07'.repeat(32)}`))
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (hash) => {
        const { r, s, v, serialized } = wallet.signingKey.sign(hash)
        const signer = recover(hash, getBytes(serialized).subarray(0, 64), v === 27 ? 0 : 1)
        expect(signer && toHex(signer)).to.equal(recoverAddress(hash, { r, s, v }).toLowerCase())
      }),
    )
  })

  it('is null where r and s fit no key', () => {
    expect(recover(new Uint8Array(32), new Uint8Array(64), 0)).to.equal(null)
  })
})
