/** Chain, domain and ethers compute the same digests, and flipping any bit invalidates a signature. */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import { getBytes, TypedDataEncoder, verifyMessage } from 'ethers'
import { domainSeparator, hashOrder } from '../../domain/orders/order-hash.ts'
import { encodeSettleBatch } from '../../domain/settlement/settlement-codec.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { nameOfError } from '../support/errors.ts'
import {
  buildPart,
  chain,
  type Exchange,
  keccak,
  nextSecond,
  pair,
  perpetualExchange,
  send,
} from '../support/exchange.ts'
import { withBitFlipped } from '../support/refusals.ts'
import { ORDERS, signedStruct, vectors } from './support/vectors.ts'

const file = new URL('../../docs/signing-vectors.json', import.meta.url)

describe('signing vectors', () => {
  const given = vectors()

  it('equal the published ones', () => {
    if (process.env.UPDATE_VECTORS) writeFileSync(file, `${JSON.stringify(given, null, 2)}\n`)
    expect(JSON.parse(readFileSync(file, 'utf8'))).to.deep.equal(given)
  })

  it('have the digest that ethers computes and the signer that it recovers', () => {
    for (const { domain, struct, order_hash, signature } of given.orders) {
      expect(TypedDataEncoder.hash(domain, given.types, struct)).to.equal(order_hash)
      expect(verifyMessage(getBytes(order_hash), signature.slice(0, 132)).toLowerCase()).to.equal(
        given.address,
      )
    }
  })

  it('have the digest that the contract computes at their address', async () => {
    const { connection, trader } = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    const code = await connection.ethers.provider.getCode(trader)
    for (const [index, { spec, order }] of ORDERS.entries()) {
      await connection.networkHelpers.setCode(spec.trader, code)
      const there = IsolatedTrader__factory.connect(spec.trader, connection.ethers.provider)
      expect(await there.hashOrder(signedStruct(order, spec))).to.equal(given.orders[index]?.order_hash)
    }
  })
})

describe('signatures with one bit flipped', () => {
  const HEADER = 64
  /** Fixed fields, signature and quantity. */
  const RECORD_BITS = 8 * (46 + 64 + 6)
  /** Bits of a record that the operator sets and that are not signed: fill, slot, taker bits. */
  const OPERATORS: readonly (readonly [from: number, end: number])[] = [
    [160, 208],
    [352, 364],
  ]
  const isSigned = (bit: number): boolean => !OPERATORS.some(([from, end]) => bit >= from && bit < end)
  const REFUSALS = new Set([
    'SignerUnauthorized',
    'SignatureInvalid',
    'ReservedBits',
    'ForcedEncoding',
    'NotLiquidatable',
    'LimitViolated',
    'LeverageOutOfRange',
    'OrderExpired',
    'TriggerEncoding',
    'Overfill',
    'PartialSlotMissing',
    'ReduceOnlyExceeded',
  ])
  let exchange: Exchange

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })

  async function refusalOf(bytes: Uint8Array): Promise<string | null> {
    try {
      await exchange.trader.settleBatch.staticCall(bytes)
      return null
    } catch (error) {
      return nameOfError(error) ?? (error as Error).message
    }
  }

  it('when any signed bit of a record is flipped, the order reverts', async () => {
    const [alice, bob] = exchange.users
    const fills = pair(alice!, bob!, 1000, { quantity: 5000, slot: 0, limit: 500_000 })
    const asOf = (await nextSecond(exchange)) * 1000
    const part = await buildPart(exchange, { fills, price: 500_000, asOf: asOf as never })
    const bytes = encodeSettleBatch(part, exchange.spec)
    const passed: string[] = []
    for (let bit = 0; bit < RECORD_BITS; bit++) {
      if (!isSigned(bit)) continue
      const refusal = await refusalOf(withBitFlipped(bytes, HEADER * 8 + bit))
      if (refusal === null || !REFUSALS.has(refusal)) passed.push(`bit ${bit}: ${refusal}`)
    }
    expect(passed).to.deep.equal([])
    await send(exchange, bytes)
  }).timeout(120_000)

  it('when any bit of chain id or contract address is flipped, the domain separator differs', () => {
    const { spec } = exchange
    const seen = new Set<string>([String(domainSeparator(spec, keccak))])
    for (let bit = 0n; bit < 160n; bit++) {
      const trader =
        `0x${(BigInt(spec.trader) ^ (1n << bit)).toString(16).padStart(40, '0')}` as typeof spec.trader
      seen.add(String(domainSeparator({ ...spec, trader }, keccak)))
      if (bit < 64n)
        seen.add(String(domainSeparator({ ...spec, chainId: spec.chainId ^ (1n << bit) }, keccak)))
    }
    expect(seen.size).to.equal(1 + 160 + 64)
  })

  it('when one bit of the signing domain is flipped, the order reverts with SignerUnauthorized', async () => {
    const { spec } = exchange
    const [alice, bob] = exchange.users
    const fills = pair(alice!, bob!, 1000)
    const elsewhere = [
      { ...exchange, spec: { ...spec, chainId: spec.chainId ^ 1n } },
      {
        ...exchange,
        spec: { ...spec, trader: `${spec.trader.slice(0, -1)}${spec.trader.endsWith('0') ? 1 : 0}` as never },
      },
    ]
    for (const other of elsewhere) {
      const asOf = ((await nextSecond(exchange)) * 1000) as never
      const part = await buildPart(exchange, { fills, price: 500_000, asOf })
      const foreign = await buildPart(other, { fills, price: 500_000, asOf })
      const bytes = encodeSettleBatch({ ...part, fills: foreign.fills }, spec)
      expect(await refusalOf(bytes)).to.equal('SignerUnauthorized')
    }
  })

  it('when the market hashes an order, the digest equals the one that domain/ computes', async () => {
    const { trader, spec } = exchange
    const { order } = ORDERS[0]!
    expect(await trader.hashOrder(signedStruct(order, spec))).to.equal(hashOrder(order, spec, keccak))
  })
})
