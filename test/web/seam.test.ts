import { expect } from 'chai'
import { getBytes, Interface, randomBytes, TypedDataEncoder, Wallet } from 'ethers'
import { describe, it } from 'mocha'
import * as seam from '../../web/seam/ethers.ts'

const ROUNDS = 20

describe('web/seam/ethers', () => {
  it('when messages are signed, the signatures and addresses are those of ethers', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const key = seam.Wallet.createRandomKey()
      const [own, reference] = [new seam.Wallet(key), new Wallet(key)]
      const message = randomBytes(32)
      expect(own.address).to.equal(reference.address.toLowerCase())
      expect(await own.signMessage(message)).to.equal(await reference.signMessage(message))
      expect(await own.signMessage(`text ${round}`)).to.equal(await reference.signMessage(`text ${round}`))
    }
  })

  it('when a call is encoded, its data is that of ethers', () => {
    const signatures = ['function registerSessionKey(address key, uint8 permissions)', 'function withdraw()']
    const [own, reference] = [new seam.Interface(signatures), new Interface(signatures)]
    const values = [new Wallet(seam.Wallet.createRandomKey()).address, 3] as const
    expect(own.encodeFunctionData('registerSessionKey', values)).to.equal(
      reference.encodeFunctionData('registerSessionKey', values),
    )
    expect(own.encodeFunctionData('withdraw', [])).to.equal(reference.encodeFunctionData('withdraw', []))
  })

  it('when typed data has negative and large integers, its hash is that of ethers', () => {
    const { address } = new Wallet(seam.Wallet.createRandomKey())
    const domain = { name: 'IsolatedTrader', version: '2.0', chainId: 6343, verifyingContract: address }
    const types = {
      AdjustMargin: [
        { type: 'address', name: 'account' },
        { type: 'int256', name: 'amount' },
        { type: 'uint8', name: 'removeMode' },
        { type: 'uint256', name: 'nonce' },
      ],
    }
    for (const amount of [-1n, 0n, 5n * 10n ** 18n, -(2n ** 100n)]) {
      const message = { account: address, amount, removeMode: 1, nonce: 2n ** 53n }
      const hash = seam.TypedDataEncoder.hash(domain, types, message)
      expect(hash).to.equal(TypedDataEncoder.hash(domain, types, message))
      expect(getBytes(hash)).to.have.length(32)
    }
  })
})
