import { expect } from 'chai'
import { caller, chain, type Exchange, pair, perpetualExchange, settle } from '../../support/exchange.ts'

describe('cancelSalts', () => {
  let exchange: Exchange
  const now = async () => BigInt(await exchange.connection.networkHelpers.time.latest()) * 1000n
  const trader = async () => exchange.trader.connect(await caller(exchange, exchange.users[0]!))

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })

  it('when called by a maker, his salts are requested and nobody else’s', async () => {
    const [alice, bob] = exchange.users
    const tx = await (await trader()).cancelSalts([1, 2, 1n << 52n])
    await expect(tx)
      .to.emit(exchange.trader, 'SaltsCancelled')
      .withArgs(alice!.address, [1n, 2n, 1n << 52n], await now())
    for (const salt of [1n, 2n, 1n << 52n]) {
      expect(await exchange.trader.saltState(alice!.address, salt)).to.equal(3n)
      expect(await exchange.trader.saltState(bob!.address, salt)).to.equal(0n)
    }
    expect(await exchange.trader.saltState(alice!.address, 3)).to.equal(0n)
  })

  it('when salts are dead or requested already, nothing happens to them', async () => {
    const [alice, bob] = exchange.users
    await settle(exchange, { price: 500_000, fills: pair(alice!, bob!, 10, { salt: 9n }) })
    await (await trader()).cancelSalts([8])
    await (await trader()).cancelSalts([9, 8])
    expect(await exchange.trader.saltState(alice!.address, 9)).to.equal(2n)
    expect(await exchange.trader.saltState(alice!.address, 8)).to.equal(3n)
  })

  it('when a salt is 2^53 or above, it is refused', async () => {
    await expect((await trader()).cancelSalts([1n << 53n]))
      .to.be.revertedWithCustomError(exchange.trader, 'SaltTooLarge')
      .withArgs(1n << 53n)
  })

  it('when the owner’s request comes through the forwarder, his salts are cancelled', async () => {
    const { trader, shared, connection, users, spec } = exchange
    const [alice] = users
    await connection.networkHelpers.impersonateAccount(shared.forwarder)
    await connection.networkHelpers.setBalance(shared.forwarder, 10n ** 18n)
    const forwarder = await connection.ethers.getSigner(shared.forwarder)
    const data = trader.interface.encodeFunctionData('cancelSalts', [[6]]) + alice!.address.slice(2)
    await forwarder.sendTransaction({ to: spec.trader, data })
    expect(await trader.saltState(alice!.address, 6)).to.equal(3n)
  })
})
