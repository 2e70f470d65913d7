import { expect } from 'chai'
import { getBytes, Signature, TypedDataEncoder, Wallet } from 'ethers'
import { describe, it } from 'mocha'
import { toHex } from '../../../domain/hex.ts'
import { proofOf, reportHasher, signerOf } from '../../../domain/prices/report-hash.ts'
import type { Address, Millis } from '../../../domain/units.ts'
import { addressOf, keccak, recover, sign } from '../../../service/crypto.ts'
import { e18 } from '../../support/markets.ts'

const oracle = `0x${'33'.repeat(20)}` as Address
const feedId = `0x${'0'.repeat(63)}1` as const
const reading = { price: e18('63000.5'), observedAt: 1_800_000_000_123 as Millis }
const key = `0x${'22'.repeat(32)}`
const wallet = new Wallet(key)

const REPORT = {
  PriceReport: [
    { name: 'feedId', type: 'bytes32' },
    { name: 'price', type: 'uint256' },
    { name: 'observedAt', type: 'uint256' },
  ],
}
const domain = { name: 'SignedPriceOracle', version: '1', chainId: 6343, verifyingContract: oracle }
const digestOf = reportHasher({ chainId: 6343n, oracle }, keccak)

describe('domain/prices/report-hash', () => {
  it('when a report is hashed, the digest is that of its typed data', () => {
    const expected = TypedDataEncoder.hash(domain, REPORT, { feedId, ...reading })
    expect(toHex(digestOf(feedId, reading))).to.equal(expected)
  })

  it('when a key signs the digest, the signature is that of a wallet and recovers its address', () => {
    const digest = digestOf(feedId, reading).slice()
    const signature = toHex(sign(digest, getBytes(key)))
    expect(signature).to.equal(wallet.signingKey.sign(digest).serialized)
    expect(signerOf(digest, signature, recover)).to.equal(wallet.address.toLowerCase())
    expect(toHex(addressOf(getBytes(key)))).to.equal(wallet.address.toLowerCase())
  })

  it('when a signature is empty, short, not hex or has another v, it has no signer', () => {
    const digest = digestOf(feedId, reading).slice()
    const valid = toHex(sign(digest, getBytes(key)))
    for (const wrong of ['', '0x', valid.slice(0, -2), `0xzz${valid.slice(4)}`, `${valid.slice(0, -2)}1d`])
      expect(signerOf(digest, wrong, recover), wrong).to.equal(null)
  })

  it('when a signature has the high form of its s, it has no signer, because the contract rejects it', () => {
    const digest = digestOf(feedId, reading).slice()
    const { r, s, v } = Signature.from(toHex(sign(digest, getBytes(key))))
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
    const high = (order - BigInt(s)).toString(16).padStart(64, '0')
    expect(signerOf(digest, `${r}${high}${v === 27 ? '1c' : '1b'}`, recover)).to.equal(null)
  })

  it('when a proof has several signatures, they are in ascending order of the signers', () => {
    const signatures = new Map(
      ['c', 'a', 'b'].map((digit) => [`0x0${digit}` as Address, `0x${digit}${digit}`]),
    )
    expect(proofOf(signatures)).to.equal('0xaabbcc')
  })
})
