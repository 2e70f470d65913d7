import { expect } from 'chai'
import { Forwarder__factory } from '../../../typechain-types/factories/Forwarder__factory.ts'
import { caller, chain, type Exchange, perpetualExchange, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { adjustMargin } from '../support/adjust.ts'
import { trade } from '../support/risk.ts'

const alice = wallet('alice')
const bob = wallet('bob')
const NONCE_END = 1n << 64n

describe('invalidateMarginNonces', () => {
  let exchange: Exchange
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })
  const owner = async () => exchange.trader.connect(await caller(exchange, alice))

  it('when the minimum rises, lower nonces of this account revert with MarginNonceBelowMinimum at once', async () => {
    await trade(exchange, alice, bob, { steps: 1000, price: 1000, leverage: 5 })
    await expect((await owner()).invalidateMarginNonces(10))
      .to.emit(exchange.trader, 'MarginNoncesInvalidated')
      .withArgs(alice.address, 10)
    expect((await exchange.trader.floors(alice.address)).marginNonce).to.equal(10n)
    const asked = { by: alice, amount: 1n, price: e18('100') }
    await expect(adjustMargin(exchange, { ...asked, nonce: 9n })).to.be.revertedWithCustomError(
      exchange.trader,
      'MarginNonceBelowMinimum',
    )
    await adjustMargin(exchange, { ...asked, nonce: 10n })
    await adjustMargin(exchange, { ...asked, by: bob, nonce: 9n })
  })

  it('when the minimum does not rise or exceeds 2^64, it reverts with MarginNonceMinimumNotRaised or MarginNonceTooLarge', async () => {
    const refused = async (minimum: bigint, error: string, ...args: unknown[]) =>
      expect((await owner()).invalidateMarginNonces(minimum))
        .to.be.revertedWithCustomError(exchange.trader, error)
        .withArgs(...args)
    await refused(0n, 'MarginNonceMinimumNotRaised', alice.address, 0n, 0n)
    await (await owner()).invalidateMarginNonces(5)
    await refused(5n, 'MarginNonceMinimumNotRaised', alice.address, 5n, 5n)
    await refused(NONCE_END + 1n, 'MarginNonceTooLarge', alice.address, NONCE_END + 1n)
    await (await owner()).invalidateMarginNonces(NONCE_END)
  })

  it('when sent through the forwarder, it applies to the signing owner and not to the forwarder', async () => {
    const { shared, spec, admin, trader, connection } = exchange
    const forwarder = Forwarder__factory.connect(shared.forwarder, admin)
    const deadline = (await connection.networkHelpers.time.latest()) + 100
    const request = {
      from: alice.address,
      to: spec.trader,
      value: 0n,
      gas: 200_000n,
      nonce: await forwarder.nonces(alice.address),
      deadline,
      data: trader.interface.encodeFunctionData('invalidateMarginNonces', [33]),
    }
    const { name, version, chainId, verifyingContract } = await forwarder.eip712Domain()
    const types = {
      ForwardRequest: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'gas', type: 'uint256' },
        { name: 'nonce', type: 'uint256' },
        { name: 'deadline', type: 'uint48' },
        { name: 'data', type: 'bytes' },
      ],
    }
    const signature = await alice.signTypedData({ name, version, chainId, verifyingContract }, types, request)
    await forwarder.execute({ ...request, signature })
    expect((await trader.floors(alice.address)).marginNonce).to.equal(33n)
    expect((await trader.floors(shared.forwarder)).marginNonce).to.equal(0n)
  })

  it('when an unauthorized caller appends an owner’s address, it applies to the caller’s own nonces', async () => {
    const unauthorized = await caller(exchange, bob)
    const call = exchange.trader.interface.encodeFunctionData('invalidateMarginNonces', [7])
    await unauthorized.sendTransaction({ to: exchange.spec.trader, data: call + alice.address.slice(2) })
    expect((await exchange.trader.floors(alice.address)).marginNonce).to.equal(0n)
    expect((await exchange.trader.floors(bob.address)).marginNonce).to.equal(7n)
  })
})
