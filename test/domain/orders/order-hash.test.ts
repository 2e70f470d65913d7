import { expect } from 'chai'
import { getBytes, hashMessage, keccak256, recoverAddress, TypedDataEncoder, Wallet } from 'ethers'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { toHex } from '../../../domain/hex.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { ORDER_TYPES, type Order, triggerCondition } from '../../../domain/orders/order.ts'
import {
  domainSeparator,
  hashOrder,
  type Keccak,
  orderHasher,
  orderVerifier,
  packFlags,
  parseSignature,
  type Recover,
} from '../../../domain/orders/order-hash.ts'
import type { Address } from '../../../domain/units.ts'
import { markets, perpetual } from '../../support/markets.ts'

const keccak: Keccak = (message) => getBytes(keccak256(message))
const recover: Recover = (hash, rs, recoveryId) => {
  try {
    const signature = { r: toHex(rs.subarray(0, 32)), s: toHex(rs.subarray(32)), yParity: recoveryId }
    return getBytes(recoverAddress(hash, signature))
  } catch {
    return null
  }
}

const types = {
  Order: [
    { name: 'flags', type: 'bytes8' },
    { name: 'quantity', type: 'uint128' },
    { name: 'price', type: 'uint128' },
    { name: 'triggerPrice', type: 'uint128' },
    { name: 'triggerCondition', type: 'uint8' },
    { name: 'leverage', type: 'uint128' },
    { name: 'maker', type: 'address' },
    { name: 'expiration', type: 'uint128' },
  ],
}

const domainOf = (spec: MarketSpec) => ({
  name: 'IsolatedTrader',
  version: '2.0',
  chainId: spec.chainId,
  verifyingContract: spec.trader,
})

/** The order as a trader's own tools would build it from the contract with traders alone. */
const messageOf = (order: Order, spec: MarketSpec) => {
  const bits = (order.side === 'LONG' ? 1n : 0n) | (order.reduceOnly ? 2n : 0n)
  return {
    flags: `0x${((order.salt << 4n) | bits).toString(16).padStart(16, '0')}`,
    quantity: BigInt(order.quantity) * spec.step,
    price: BigInt(order.price) * spec.tick,
    triggerPrice: BigInt(order.trigger) * spec.tick,
    triggerCondition: triggerCondition(order.type, order.side),
    leverage: BigInt(order.leverage) * 10n ** 18n,
    maker: order.maker,
    expiration: BigInt(order.expiration),
  }
}

const wallet = new Wallet(`0x${'5a'.repeat(32)}`)
const maker = wallet.address.toLowerCase() as Address

const anOrder = (changes: Partial<Order> = {}): Order =>
  ({
    marketId: 1,
    maker,
    side: 'LONG',
    type: 'LIMIT',
    price: 1_000_000,
    quantity: 1_000,
    trigger: 0,
    leverage: 10,
    reduceOnly: false,
    expiration: 1_900_000_000,
    salt: 42n,
    ...changes,
  }) as Order

const anyOrder = fc
  .record({
    side: fc.constantFrom('LONG', 'SHORT'),
    type: fc.constantFrom(...ORDER_TYPES),
    price: fc.nat(),
    quantity: fc.integer({ min: 1, max: 2 ** 33 }),
    trigger: fc.nat(),
    leverage: fc.integer({ min: 1, max: 127 }),
    reduceOnly: fc.boolean(),
    expiration: fc.maxSafeNat(),
    salt: fc.bigInt({ min: 0n, max: 2n ** 53n - 1n }),
    maker: fc.uint8Array({ minLength: 20, maxLength: 20 }).map(toHex),
  })
  .map((fields) => anOrder(fields as Partial<Order>))

const sign = async (order: Order, spec: MarketSpec, signer = wallet): Promise<string> =>
  `${await signer.signMessage(getBytes(hashOrder(order, spec, keccak)))}01`

describe('hashOrder', () => {
  it('when any order of any market is hashed, it equals the EIP-712 digest that ethers computes', () => {
    const hashers = new Map(markets.map((spec) => [spec, orderHasher(spec, keccak)]))
    fc.assert(
      fc.property(fc.constantFrom(...markets), anyOrder, (spec, order) => {
        const expected = TypedDataEncoder.hash(domainOf(spec), types, messageOf(order, spec))
        expect(hashOrder(order, spec, keccak)).to.equal(expected)
        expect(toHex(hashers.get(spec)!.digest(order))).to.equal(expected)
      }),
    )
  })

  it('when the published order is hashed, its digest has not changed', () => {
    expect(hashOrder(anOrder(), perpetual, keccak)).to.equal(
      '0x41b8d95721b271cd94349fd1720bb0f04a4003271b8bac9346f05cc183924f73',
    )
  })

  it('when a domain is hashed, it equals the domain separator of ethers', () => {
    for (const spec of markets) {
      expect(toHex(domainSeparator(spec, keccak))).to.equal(TypedDataEncoder.hashDomain(domainOf(spec)))
    }
  })

  const flips: readonly Partial<Record<keyof Order, unknown>>[] = [
    { side: 'SHORT' },
    { price: 1_000_001 },
    { quantity: 1_001 },
    { trigger: 1 },
    { type: 'STOP_LIMIT' },
    { leverage: 11 },
    { reduceOnly: true },
    { expiration: 1_900_000_001 },
    { salt: 43n },
    { maker: `0x${'01'.repeat(20)}` },
  ]
  for (const flip of flips) {
    it(`when ${Object.keys(flip)[0]} changes, the digest changes`, () => {
      const changed = anOrder(flip as Partial<Order>)
      expect(hashOrder(changed, perpetual, keccak)).not.to.equal(hashOrder(anOrder(), perpetual, keccak))
    })
  }

  it('when the market or the chain changes, the digest changes', () => {
    const digests = [
      perpetual,
      { ...perpetual, chainId: 4326n },
      { ...perpetual, trader: markets[1]!.trader },
    ]
    expect(new Set(digests.map((spec) => hashOrder(anOrder(), spec, keccak))).size).to.equal(3)
  })

  it('when orders are hashed in sequence, no bytes of the previous one remain in the buffers', () => {
    const hasher = orderHasher(perpetual, keccak)
    const full = anOrder({
      type: 'STOP_LIMIT',
      trigger: (2 ** 50) as Order['trigger'],
      price: (2 ** 52) as Order['price'],
    })
    hasher.digest(full)
    expect(toHex(hasher.digest(anOrder()))).to.equal(hashOrder(anOrder(), perpetual, keccak))
  })
})

describe('packFlags', () => {
  it('when flags are packed, the salt is above four bits, of which two are used', () => {
    expect(packFlags({ salt: 0n, side: 'SHORT', reduceOnly: false })).to.equal(0n)
    expect(packFlags({ salt: 1n, side: 'LONG', reduceOnly: false })).to.equal(0x11n)
    expect(packFlags({ salt: 2n ** 53n - 1n, side: 'LONG', reduceOnly: true })).to.equal(0x01fffffffffffff3n)
  })
})

describe('parseSignature', () => {
  const valid = `0x${'11'.repeat(64)}1b01`
  const table = [
    { name: 'too short', text: valid.slice(0, -2), code: 'SIGNATURE_FORMAT' },
    { name: 'too long', text: `${valid}00`, code: 'SIGNATURE_FORMAT' },
    { name: 'without 0x', text: `11${valid.slice(2)}`, code: 'SIGNATURE_FORMAT' },
    { name: 'not hex', text: `0xzz${valid.slice(4)}`, code: 'SIGNATURE_FORMAT' },
    { name: 'not hex beyond ASCII', text: `0xé1${valid.slice(4)}`, code: 'SIGNATURE_FORMAT' },
    { name: 'with the suffix 00', text: `${valid.slice(0, -2)}00`, code: 'SIGNATURE_SUFFIX' },
    { name: 'with v 0', text: `0x${'11'.repeat(64)}0001`, code: 'SIGNATURE_V' },
    { name: 'with v 29', text: `0x${'11'.repeat(64)}1d01`, code: 'SIGNATURE_V' },
    { name: 'with a high s', text: `0x${'11'.repeat(32)}${'ff'.repeat(32)}1b01`, code: 'SIGNATURE_HIGH_S' },
  ]
  for (const { name, text, code } of table) {
    it(`when a signature is ${name}, it refuses with ${code}`, () => {
      expect(parseSignature(text))
        .to.deep.include({ ok: false })
        .and.have.nested.property('refusal.code', code)
    })
  }

  it('when s is n/2, it accepts, and when s is n/2 + 1, it refuses', () => {
    const half = '7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0'
    const above = '7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a1'
    expect(parseSignature(`0x${'11'.repeat(32)}${half}1b01`).ok).to.equal(true)
    expect(parseSignature(`0x${'11'.repeat(32)}${above}1b01`).ok).to.equal(false)
  })

  it('when the hex is upper case, it parses the same signature', () => {
    const lower = parseSignature(`0x${'ab'.repeat(32)}${'11'.repeat(32)}1c01`)
    expect(parseSignature(`0x${'AB'.repeat(32)}${'11'.repeat(32)}1C01`)).to.deep.equal(lower)
  })
})

describe('orderVerifier', () => {
  const verify = orderVerifier(perpetual, keccak, recover)

  it('when Wallet.signMessage signed the digest, it recovers the maker', async () => {
    for (let salt = 0n; salt < 8n; salt++) {
      const order = anOrder({ salt })
      const hash = hashOrder(order, perpetual, keccak)
      expect(verify(order, await sign(order, perpetual))).to.deep.equal({
        ok: true,
        value: { hash, signer: maker },
      })
    }
  })

  it('when a digest is hashed as a personal message, it equals the hash of ethers', () => {
    const hasher = orderHasher(perpetual, keccak)
    const digest = hasher.digest(anOrder())
    expect(toHex(hasher.personalHash(digest))).to.equal(hashMessage(digest))
  })

  it('when the signature is of another order, it recovers another address', async () => {
    const verdict = verify(anOrder({ quantity: 999 as Order['quantity'] }), await sign(anOrder(), perpetual))
    expect(verdict.ok && verdict.value.signer)
      .to.be.a('string')
      .and.not.equal(maker)
  })

  it('when no key could have made the signature, it refuses', () => {
    expect(verify(anOrder(), `0x${'00'.repeat(64)}1b01`)).to.have.nested.property(
      'refusal.code',
      'SIGNATURE_UNRECOVERABLE',
    )
  })

  it('when the recovered address is zero, it refuses', async () => {
    const zero = orderVerifier(perpetual, keccak, () => new Uint8Array(20))
    const verdict = zero(anOrder(), await sign(anOrder(), perpetual))
    expect(verdict).to.have.nested.property('refusal.code', 'SIGNATURE_UNRECOVERABLE')
  })
})
