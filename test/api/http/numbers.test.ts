import { expect } from 'chai'
import { formatEther, getBytes, keccak256, recoverAddress, SigningKey, Wallet } from 'ethers'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { ApiError } from '../../../api/errors.ts'
import { keepsPrecision, parseJson } from '../../../api/http/json.ts'
import { changeTime, decimalText, parseDecimal, toNumber } from '../../../api/wire/amounts.ts'
import { decodeCursor, encodeCursor } from '../../../api/wire/cursor.ts'
import { toHex } from '../../../domain/hex.ts'
import { keccak, recover } from '../../../service/crypto.ts'

const wei = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n })

describe('numbers in requests and answers', () => {
  it('when a block that ends a request has an earlier time than its acceptance, it was not updated before it was created', () => {
    const [created_at, block] = [1_700_000_000_400, 1_700_000_000_000]
    expect(changeTime({ created_at, updated_at: block })).to.equal('2023-11-14T22:13:20.400Z')
    expect(changeTime({ created_at, updated_at: block + 1_000 })).to.equal('2023-11-14T22:13:21.000Z')
  })

  it('when an amount is written as a number, it is the nearest double', () => {
    fc.assert(
      fc.property(wei, (amount) => {
        expect(toNumber(amount)).to.equal(Number(formatEther(amount)))
      }),
    )
  })

  it('when an amount is written as a decimal, it has no trailing zeros', () => {
    expect([0n, 1n, -5n * 10n ** 17n, 12n * 10n ** 18n].map(decimalText)).to.deep.equal([
      '0',
      '0.000000000000000001',
      '-0.5',
      '12',
    ])
  })

  it('when a written decimal is parsed, it is the same amount', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 40n }), (amount) => {
        expect(parseDecimal(decimalText(amount))).to.equal(amount)
      }),
    )
  })

  it('when a double has at most 18 decimals, it is parsed exactly as printed', () => {
    expect(parseDecimal(0.1)).to.equal(10n ** 17n)
    expect(parseDecimal(1e-7)).to.equal(10n ** 11n)
    expect(parseDecimal(1e21)).to.equal(10n ** 39n)
    expect(parseDecimal(Number.MAX_VALUE)).to.equal(17976931348623157n * 10n ** (292n + 18n))
    expect(parseDecimal(1e-19)).to.equal(null)
    expect(parseDecimal('1e400')).to.equal(null)
    expect(parseDecimal('-1')).to.equal(null)
  })

  it('when a number might lose precision, it is checked wherever it occurs in the body', () => {
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

  it('when a number loses precision, the error names the field and the nearest double', () => {
    const refusal = (text: string) => {
      try {
        return parseJson(text)
      } catch (error) {
        return (error as ApiError).context
      }
    }
    const number = '1.00000000000000000001'
    const text = `{"a":1,"orders":[{"price":2},{"side":"x: 1e400","price":${number}}]}`
    expect(refusal(text)).to.include({ field: 'orders.1.price', received: number, nearest_valid: '1' })
    expect(refusal('{"price":1e400}')).to.include({ field: 'price' }).and.not.have.property('nearest_valid')
  })

  it('when a number is as long as a body, it is checked in bounded time', function () {
    // A scan that is quadratic in the number of zeros would take ten seconds.
    this.timeout(5_000)
    const text = `{"price":0.1${'0'.repeat(120_000)}1}`
    expect(() => parseJson(text))
      .to.throw()
      .with.property('code', 'PRECISION_LOST')
  })

  it('when an object has a name twice, in any spelling and place, it is rejected, and no other text is', () => {
    type Tree = string | readonly Tree[] | { readonly pairs: readonly (readonly [string, Tree])[] }
    // No name begins with a backslash, because V8 confuses such a name with names that it has parsed before.
    const name = fc.constantFrom('a', 'b', 'a":', 'b\\', '__proto__', 'é', '"')
    const space = fc.constantFrom('', ' ', '\n\t')
    const leaf = fc.constantFrom('1', '1e5', 'null', '"a"', '"\\":"', '"{\\"a\\":1}"', '1234567890123456')
    const tree = fc.letrec<{ tree: Tree }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        leaf,
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.record({ pairs: fc.array(fc.tuple(name, tie('tree')), { maxLength: 4 }) }),
      ),
    })).tree
    const quoted = (text: string, isEscaped: boolean): string =>
      isEscaped && text === 'a' ? '"\\u0061"' : JSON.stringify(text)
    const write = (node: Tree, gap: string, isEscaped: boolean): string => {
      if (typeof node === 'string') return node
      if (!('pairs' in node)) return `[${node.map((item) => write(item, gap, isEscaped)).join(`${gap},`)}]`
      const fields = node.pairs.map(
        ([key, value], at) =>
          `${gap}${quoted(key, isEscaped && at % 2 === 1)}${gap}:${gap}${write(value, gap, isEscaped)}`,
      )
      return `{${fields.join()}${gap}}`
    }
    const hasTwice = (node: Tree): boolean => {
      if (typeof node === 'string') return false
      if (!('pairs' in node)) return node.some(hasTwice)
      const names = node.pairs.map(([key]) => key)
      return new Set(names).size < names.length || node.pairs.some(([, value]) => hasTwice(value))
    }
    fc.assert(
      fc.property(tree, space, fc.boolean(), (node, gap, isEscaped) => {
        const text = write(node, gap, isEscaped)
        if (!hasTwice(node)) expect(parseJson(text)).to.deep.equal(JSON.parse(text))
        else
          expect(() => parseJson(text), text)
            .to.throw()
            .with.property('code', 'DUPLICATE_FIELD')
      }),
      { numRuns: 3000 },
    )
  })

  it('when a JSON number is parsed, it is accepted if and only if a double represents it exactly', () => {
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

  it('when an encoded cursor is decoded, it is the same cursor', () => {
    for (const cursor of [
      { at: 0, id: '1-1' },
      { at: 1_800_000_000_000, id: '12-345-2-9' },
    ]) {
      expect(decodeCursor('fills', encodeCursor('fills', cursor))).to.deep.equal(cursor)
    }
  })

  it('when a cursor belongs to another list or was not issued, it is rejected', () => {
    const cursor = encodeCursor('orders', { at: 5, id: '1-1' })
    const forged = (text: string): string => Buffer.from(text).toString('base64url')
    for (const text of [
      '',
      `${cursor}!`,
      ` ${cursor}`,
      forged('orders:05:1-1'),
      forged('5:1-1'),
      cursor.slice(1),
    ])
      expect(() => decodeCursor('orders', text), text)
        .to.throw()
        .with.property('code', 'INVALID_CURSOR')
    expect(() => decodeCursor('fills', cursor))
      .to.throw()
      .with.property('code', 'INVALID_CURSOR')
  })
})

describe('keccak and recovery of the API', () => {
  it('when messages are hashed and signers recovered repeatedly, they equal those of ethers', () => {
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

  it('when r and s match no public key, the signer is null', () => {
    expect(recover(new Uint8Array(32), new Uint8Array(64), 0)).to.equal(null)
  })
})
