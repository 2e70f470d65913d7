import { expect } from 'chai'
import { getBytes, TypedDataEncoder } from 'ethers'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { REMOVE_MODES } from '../../../domain/positions/adjustment.ts'
import {
  ADJUST_LEVERAGE_TYPE,
  ADJUST_MARGIN_TYPE,
  hashLeverageAdjustment,
  hashMarginAdjustment,
  recoverAdjuster,
  type SignedLeverage,
  type SignedMargin,
} from '../../../domain/positions/adjustment-hash.ts'
import { ONE, type Quote, type Seconds } from '../../../domain/units.ts'
import { recover } from '../../../service/crypto.ts'
import { addressOf, keccak, wallet } from '../../support/exchange.ts'
import { perpetual } from '../../support/markets.ts'

const alice = wallet('alice')
const domain = {
  name: 'IsolatedTrader',
  version: '2.0',
  chainId: perpetual.chainId,
  verifyingContract: perpetual.trader,
}

/** Converts `Name(type name,…)` into the form that ethers expects. */
function typesOf(encoded: string): Record<string, { type: string; name: string }[]> {
  const [, name = '', fields = ''] = /^(\w+)\((.*)\)$/.exec(encoded) ?? []
  const pairs = fields.split(',').map((field) => field.split(' ') as [string, string])
  return { [name]: pairs.map(([type, name]) => ({ type, name })) }
}

const anyWei = fc.bigInt({ min: 0n, max: (1n << 256n) - 1n }).map((value) => value as Quote)
const anyAuthorization = {
  account: fc.constantFrom('alice', 'bob').map((name) => addressOf(wallet(name))),
  nonce: fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
  deadline: fc.integer({ min: 0, max: 2 ** 53 - 1 }).map((value) => value as Seconds),
}
const anyMargin: fc.Arbitrary<SignedMargin> = fc.record({
  ...anyAuthorization,
  amount: fc.bigInt({ min: -(1n << 255n), max: (1n << 255n) - 1n }).map((value) => value as Quote),
  removeMode: fc.constantFrom(...REMOVE_MODES),
  minAmount: anyWei,
})
const anyLeverage: fc.Arbitrary<SignedLeverage> = fc.record({
  ...anyAuthorization,
  leverage: fc.integer({ min: 1, max: 127 }),
  maxMarginIn: anyWei,
  minMarginOut: anyWei,
})

describe('hashMarginAdjustment and hashLeverageAdjustment', () => {
  it('when any adjustment is hashed, it equals the EIP-712 digest of its type string', () => {
    fc.assert(
      fc.property(anyMargin, anyLeverage, (margin, leverage) => {
        expect(hashMarginAdjustment(margin, perpetual, keccak)).to.equal(
          TypedDataEncoder.hash(domain, typesOf(ADJUST_MARGIN_TYPE), {
            ...margin,
            removeMode: REMOVE_MODES.indexOf(margin.removeMode),
          }),
        )
        expect(hashLeverageAdjustment(leverage, perpetual, keccak)).to.equal(
          TypedDataEncoder.hash(domain, typesOf(ADJUST_LEVERAGE_TYPE), {
            ...leverage,
            leverage: BigInt(leverage.leverage) * ONE,
          }),
        )
      }),
    )
  })

  it('when keccak reuses its buffer, the digests are the same', () => {
    const buffer = new Uint8Array(32)
    const reusing = (message: Uint8Array): Uint8Array => {
      buffer.set(keccak(message))
      return buffer
    }
    fc.assert(
      fc.property(anyMargin, (margin) => {
        const hash = hashMarginAdjustment(margin, perpetual, reusing)
        expect(hash).to.equal(hashMarginAdjustment(margin, perpetual, keccak))
      }),
      { numRuns: 5 },
    )
  })
})

describe('recoverAdjuster', () => {
  const digest = hashMarginAdjustment(fc.sample(anyMargin, 1)[0] as SignedMargin, perpetual, keccak)
  const typed = alice.signingKey.sign(digest).serialized
  const personal = `${alice.signMessageSync(getBytes(digest))}01`
  const signerOf = (signature: string) => recoverAdjuster(digest, signature, keccak, recover)

  it('when the signature is typed data or a personal message, it recovers the signer', () => {
    for (const signature of [typed, personal]) {
      expect(signerOf(signature)).to.deep.equal({ ok: true, value: addressOf(alice) })
    }
  })

  it('when the signature is read in the other form, it does not recover the signer', () => {
    for (const signature of [`${typed}01`, personal.slice(0, -2)]) {
      const verdict = signerOf(signature)
      expect(verdict.ok && verdict.value).not.to.equal(addressOf(alice))
    }
  })

  it('when the signature has another form, it refuses and names the valid forms', () => {
    const forms = '0x and 130 hex digits (r, s, v) for typed data, 132 (r, s, v, 01) for a personal message'
    const received = [`${typed}0101`, typed.slice(0, -2), '', `${typed.slice(0, -1)}g`]
    for (const signature of received) {
      expect(signerOf(signature)).to.deep.equal({
        ok: false,
        refusal: { code: 'SIGNATURE_FORMAT', expected: forms, received: `${signature.length} characters` },
      })
    }
    const other = signerOf(`${typed}02`)
    expect(other).to.deep.equal({
      ok: false,
      refusal: { code: 'SIGNATURE_SUFFIX', expected: '01', received: '02' },
    })
  })

  it('when s is high or no key could have signed, it refuses', () => {
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
    const s = BigInt(`0x${typed.slice(66, 130)}`)
    const v = typed.endsWith('1b') ? '1c' : '1b'
    const high = `${typed.slice(0, 66)}${(order - s).toString(16).padStart(64, '0')}${v}`
    expect(signerOf(high)).to.deep.equal({ ok: false, refusal: { code: 'SIGNATURE_HIGH_S' } })
    const unrecoverable = `0x${'00'.repeat(31)}05${'00'.repeat(31)}011b`
    expect(signerOf(unrecoverable)).to.deep.equal({ ok: false, refusal: { code: 'SIGNATURE_UNRECOVERABLE' } })
  })
})
