import { expect } from 'chai'
import { getBytes, TypedDataEncoder, verifyMessage, Wallet } from 'ethers'
import { describe, it } from 'mocha'
import { ethersSigner } from '../../client/signers/adapters.ts'
import { privateKeySigner } from '../../client/signers/private-key-signer.ts'
import { buildOrder, type OrderTerms, orderSigner } from '../../client/signing.ts'
import { costInSignatures } from '../support/relative-cost.ts'

const market = {
  market_id: 1,
  trader_address: '0x00000000000000000000000000000000000000aa',
  tick_size_e18_raw: '100000000000000000',
  step_size_e18_raw: '1000000000000000',
}
const wallet = new Wallet(`0x${'11'.repeat(32)}`)
const signer = ethersSigner(wallet)
const now = 1_790_000_000_500
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

const build = (terms: OrderTerms, salt = 5n) =>
  buildOrder({ market, terms, maker: wallet.address, salt, now })

describe('client/signing', () => {
  it('when an order is signed, the digest is the one of ethers and the signature a personal message with suffix 01', async () => {
    const order = build({
      side: 'LONG',
      price: '64000.1',
      quantity: '0.025',
      leverage: 10,
      expiration: 1_790_000_600,
    })
    const { hash, signature } = await orderSigner(market, 6343)(order, signer)
    const domain = {
      name: 'IsolatedTrader',
      version: '2.0',
      chainId: 6343,
      verifyingContract: market.trader_address,
    }
    const expected = TypedDataEncoder.hash(domain, types, {
      flags: '0x0000000000000051',
      quantity: 25_000_000_000_000_000n,
      price: 64_000_100_000_000_000_000_000n,
      triggerPrice: 0n,
      triggerCondition: 0,
      leverage: 10n ** 19n,
      maker: wallet.address,
      expiration: 1_790_000_600n,
    })
    expect(hash).to.equal(expected)
    expect(signature).to.have.length(2 + 66 * 2)
    expect(signature.slice(-2)).to.equal('01')
    expect(verifyMessage(getBytes(expected), signature.slice(0, -2))).to.equal(wallet.address)
  })

  it('when the default signer signs an order, hash and signature take at most 14 times as long as a native signature', async () => {
    const own = privateKeySigner(`0x${'11'.repeat(32)}`)
    const sign = orderSigner(market, 6343)
    const terms = { side: 'LONG', price: '64000.1', quantity: '0.025', leverage: 10 } as const
    let salt = 0n
    expect(await costInSignatures(() => sign(build(terms, salt++), own))).to.be.at.most(14)
  })

  it('when one signer signs several orders concurrently, each signature matches its own order', async () => {
    const sign = orderSigner(market, 6343)
    // The hasher reuses its buffers.
    const orders = [1n, 2n, 3n].map((salt) => build({ side: 'SHORT', price: 1, quantity: 1 }, salt))
    const signed = await Promise.all(orders.map((order) => sign(order, signer)))
    for (const { hash, signature } of signed) {
      expect(verifyMessage(getBytes(hash), signature.slice(0, -2))).to.equal(wallet.address)
    }
    expect(new Set(signed.map(({ hash }) => hash)).size).to.equal(3)
  })

  it('when a market order is built, it expires within 60 s, and a limit order without expiry does not expire', () => {
    const end = Math.floor(now / 1000) + 60
    expect(build({ side: 'LONG', quantity: 1 }).expiration).to.equal(end)
    expect(build({ side: 'LONG', quantity: 1, expiration: end + 500 }).expiration).to.equal(end)
    expect(build({ side: 'LONG', quantity: 1, expiration: end - 50 }).expiration).to.equal(end - 50)
    expect(build({ side: 'LONG', quantity: 1, price: 5 }).expiration).to.equal(0)
  })

  it('when a take-profit or stop-loss order is built, it is reduce-only', () => {
    expect(build({ side: 'LONG', type: 'STOP_LOSS_MARKET', quantity: 1, trigger: 7 }).reduceOnly).to.equal(
      true,
    )
    expect(
      build({ side: 'LONG', type: 'TAKE_PROFIT_LIMIT', quantity: 1, price: 6, trigger: 7 }).reduceOnly,
    ).to.equal(true)
    expect(build({ side: 'LONG', type: 'STOP_MARKET', quantity: 1, trigger: 7 }).reduceOnly).to.equal(false)
  })

  it('when a price or quantity is off the grid, it throws and names the two nearest valid values', () => {
    expect(() => build({ side: 'LONG', price: '0.25', quantity: 1 })).to.throw('use 0.2 or 0.3')
    expect(() => build({ side: 'LONG', price: 1, quantity: '0.0015' })).to.throw('use 0.001 or 0.002')
  })
})
