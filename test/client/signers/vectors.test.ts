/** The default and the native signer against the published vectors, which any language can check. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { bytesOf } from '../../../client/bytes.ts'
import { nativeSigner } from '../../../client/signers/native-signer.ts'
import { privateKeySigner } from '../../../client/signers/private-key-signer.ts'
import type { AccountSigner } from '../../../client/signers/signer.ts'
import { type TypedData, type TypedField, typedDataHex } from '../../../client/typed-data.ts'
import { costInSignatures } from '../../support/relative-cost.ts'

interface Vector {
  readonly domain: { name: string; version: string; chainId: string; verifyingContract: string }
  readonly struct: Readonly<Record<string, string | number>>
  readonly signature: string
}
type OrderVector = Vector & { readonly order_hash: string }
type ActionVector = Vector & {
  readonly primary_type: string
  readonly digest: string
  readonly personal_signature?: string
}

const vectors = JSON.parse(readFileSync('docs/signing-vectors.json', 'utf8')) as {
  readonly private_key: string
  readonly address: string
  readonly types: Readonly<Record<string, readonly TypedField[]>>
  readonly action_types: Readonly<Record<string, readonly TypedField[]>>
  readonly orders: readonly OrderVector[]
  readonly adjustments: readonly ActionVector[]
  readonly forward_requests: readonly ActionVector[]
}

const typedOf = (
  { domain, struct }: Vector,
  primaryType: string,
  types: Readonly<Record<string, readonly TypedField[]>>,
): TypedData => ({
  domain: { ...domain, chainId: Number(domain.chainId) },
  primaryType,
  types,
  message: struct,
})

function itSignsAllVectors(create: () => Promise<AccountSigner>): void {
  it('when the published orders are signed, digests and signatures equal the published values', async () => {
    const signer = await create()
    expect(signer.address.toLowerCase()).to.equal(vectors.address)
    expect(vectors.orders).to.have.length(48)
    for (const order of vectors.orders) {
      expect(typedDataHex(typedOf(order, 'Order', vectors.types))).to.equal(order.order_hash)
      expect(`${await signer.signDigest(bytesOf(order.order_hash))}01`).to.equal(order.signature)
    }
  })

  it('when the published adjustments and forward requests are signed, digests and signatures equal the published values', async () => {
    const signer = await create()
    const actions = [...vectors.adjustments, ...vectors.forward_requests]
    expect(actions).to.have.length(14)
    for (const action of actions) {
      const typed = typedOf(action, action.primary_type, vectors.action_types)
      expect(typedDataHex(typed)).to.equal(action.digest)
      expect(await signer.signTypedData(typed)).to.equal(action.signature)
      if (action.personal_signature !== undefined)
        expect(`${await signer.signDigest(bytesOf(action.digest))}01`).to.equal(action.personal_signature)
    }
  })
}

describe('client/signers: the default signer', () => {
  itSignsAllVectors(async () => privateKeySigner(vectors.private_key))

  it('when an order is signed, it takes at most 12 times as long as a native signature', async () => {
    const { signDigest } = privateKeySigner(vectors.private_key)
    const digest = bytesOf(vectors.orders[0]?.order_hash as string)
    expect(await costInSignatures(() => signDigest(digest))).to.be.at.most(12)
  })

  it('when the private key is none, it throws without the key in its message', () => {
    for (const key of ['0x12', `0x${'0'.repeat(64)}`, `0x${'f'.repeat(64)}`, 'secret']) {
      let message = ''
      try {
        privateKeySigner(key)
      } catch (error) {
        message = (error as Error).message
      }
      expect(message).to.include('64 hexadecimal digits')
      expect(message).to.not.include(key)
    }
  })
})

describe('client/signers: the native signer', () => {
  itSignsAllVectors(() => nativeSigner(vectors.private_key))
})
