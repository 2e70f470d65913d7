/** Adapters of wallets, compared with the default signer, which has the same key. */
import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import { describe, it } from 'mocha'
import { bytesOf } from '../../../client/bytes.ts'
import {
  providerSigner,
  type SignerLike,
  toSigner,
  type ViemAccount,
} from '../../../client/signers/adapters.ts'
import { privateKeySigner } from '../../../client/signers/private-key-signer.ts'
import type { TypedData } from '../../../client/typed-data.ts'

const key = id('adapters')
const wallet = new Wallet(key)
const own = privateKeySigner(key)
const digest = bytesOf(id('digest'))
const typed: TypedData = {
  domain: { name: 'Forwarder', version: '1', chainId: 6343, verifyingContract: wallet.address },
  primaryType: 'Request',
  types: {
    Request: [
      { name: 'to', type: 'address' },
      { name: 'data', type: 'bytes' },
      { name: 'nonce', type: 'uint48' },
      { name: 'change', type: 'int256' },
      { name: 'note', type: 'string' },
      { name: 'flags', type: 'bytes8' },
      { name: 'approved', type: 'bool' },
    ],
  },
  message: {
    to: wallet.address,
    data: '0x1234',
    nonce: 7,
    change: -5n,
    note: 'ä',
    flags: '0x0102030405060708',
    approved: true,
  },
}
const transaction = {
  chainId: 6343,
  nonce: 3,
  maxPriorityFeePerGas: 1n,
  maxFeePerGas: 2_000_000_000n,
  gas: 90_000n,
  to: wallet.address,
  data: '0xdeadbeef',
} as const

/** With the parameters of viem's accounts, on the key of the ethers wallet. */
const viemAccount: ViemAccount = {
  address: wallet.address,
  type: 'local',
  signMessage: ({ message }) =>
    wallet.signMessage(typeof message === 'string' ? message : bytesOf(message.raw)),
  signTypedData: ({ domain, types, message }) => wallet.signTypedData(domain, types, message),
  signTransaction: ({ type, gas, ...fields }) =>
    wallet.signTransaction({ type: type === 'eip1559' ? 2 : 0, gasLimit: gas, ...fields }),
}

const wallets: readonly [string, SignerLike][] = [
  ['an ethers wallet', wallet],
  ['a viem account', viemAccount],
  ['the default signer', own],
]

describe('client/signers/adapters', () => {
  for (const [name, like] of wallets)
    it(`given ${name}, it signs digests, texts and typed data like the default signer`, async () => {
      const signer = toSigner(like)
      expect(signer.address).to.equal(own.address)
      expect(await signer.signDigest(digest)).to.equal(await own.signDigest(digest))
      expect(await signer.signMessage?.('hällo')).to.equal(await own.signMessage('hällo'))
      expect(await signer.signTypedData?.(typed)).to.equal(await own.signTypedData(typed))
    })

  it('when a transaction is signed, it is the transaction that ethers signs', async () => {
    const expected = await wallet.signTransaction({ type: 2, ...transaction, gasLimit: transaction.gas })
    expect(own.signTransaction(transaction)).to.equal(expected)
    expect(await toSigner(viemAccount).signTransaction?.(transaction)).to.equal(expected)
    // Lengths on both sides of the limits of the encoding.
    for (const length of [0, 1, 55, 56, 300]) {
      const data = `0x${'7f'.repeat(length)}`
      expect(own.signTransaction({ ...transaction, nonce: 0, data })).to.equal(
        await wallet.signTransaction({ type: 2, ...transaction, nonce: 0, data, gasLimit: transaction.gas }),
      )
    }
  })

  it('given a wallet in a browser, it asks by the methods that wallets have', async () => {
    const asked: [string, readonly unknown[]][] = []
    const provider = {
      request: async ({ method, params }: { method: string; params: readonly unknown[] }) => {
        asked.push([method, params])
        return '0x01'
      },
    }
    const signer = providerSigner(provider, wallet.address)
    await signer.signDigest(digest)
    await signer.signTypedData?.(typed)
    await signer.sendTransaction?.({ chainId: 6343, to: wallet.address, data: '0x' })
    expect(asked.map(([method]) => method)).to.deep.equal([
      'personal_sign',
      'eth_signTypedData_v4',
      'eth_sendTransaction',
    ])
    const sent = JSON.parse(asked[1]?.[1][1] as string)
    expect(sent.types.EIP712Domain).to.have.length(4)
    expect(sent.message.change).to.equal('-5')
    expect(asked[2]?.[1][0]).to.deep.include({ chainId: '0x18c7' })
  })

  it('given an object that cannot sign, it throws and names the three forms', () => {
    expect(() => toSigner({ address: wallet.address } as never)).to.throw(
      'expected a Signer, an ethers wallet or a viem account',
    )
  })
})
