import { expect } from 'chai'
import { caller, chain, type Exchange, pair, perpetualExchange, settle } from '../../support/exchange.ts'

describe('cancelSalts', () => {
  let exchange: Exchange
  const now = async () => BigInt(await exchange.connection.networkHelpers.time.latest()) * 1000n
  const trader = async () => exchange.trader.connect(await caller(exchange, exchange.users[0]!))

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })

  it('when called by a maker, it marks the maker’s salts as requested and no other account’s', async () => {
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

  it('when salts are dead or already requested, it leaves their state unchanged', async () => {
    const [alice, bob] = exchange.users
    await settle(exchange, { price: 500_000, fills: pair(alice!, bob!, 10, { salt: 9n }) })
    await (await trader()).cancelSalts([8])
    await (await trader()).cancelSalts([9, 8])
    expect(await exchange.trader.saltState(alice!.address, 9)).to.equal(2n)
    expect(await exchange.trader.saltState(alice!.address, 8)).to.equal(3n)
  })

  describe('salts that share a storage word', () => {
    const wait = (seconds: number) => exchange.connection.networkHelpers.time.increase(seconds)
    const trade = async (
      salt: bigint,
      asOf: bigint,
      quantity = 10,
      fill = 10,
      slot: number | null = null,
    ) => {
      const [alice, bob] = exchange.users
      const [buy, sell] = pair(alice!, bob!, fill)
      const fills = [{ ...buy!, salt, quantity, slot }, sell!]
      return settle(exchange, {
        price: 500_000,
        fills,
        asOf: Number(asOf) as never,
        observedAt: Number(asOf),
      })
    }
    const refused = (sent: Promise<unknown>, salt: bigint, requestedAt: bigint, asOf: bigint) =>
      expect(sent)
        .to.be.revertedWithCustomError(exchange.trader, 'OrderCancelled')
        .withArgs(exchange.users[0]!.address, salt, requestedAt, asOf)
    const cancel = async (...salts: bigint[]) => {
      await (await trader()).cancelSalts(salts)
      return now()
    }

    it('when a second salt is requested before the first is effective, each request takes effect at its own time', async () => {
      const first = await cancel(1n)
      await wait(3)
      const second = await cancel(2n, 3n)
      const late = first + 5_001n
      await wait(1)
      await refused(trade(1n, late), 1n, first, late)
      await trade(2n, late)
      await wait(3)
      await refused(trade(3n, second + 5_001n), 3n, second, second + 5_001n)
    })

    it('when a salt is requested after earlier requests took effect, those are dead and the new one has its own time', async () => {
      await cancel(1n, 2n)
      await wait(15)
      const third = await cancel(3n)
      const { address } = exchange.users[0]!
      expect(await exchange.trader.saltState(address, 1)).to.equal(2n)
      expect(await exchange.trader.saltState(address, 2)).to.equal(2n)
      expect(await exchange.trader.saltState(address, 3)).to.equal(3n)
      await trade(3n, third + 1_000n)
    })

    it('when the word’s time is taken over by a later request, the earlier request keeps its own time', async () => {
      await cancel(1n)
      await wait(13)
      const second = await cancel(2n)
      await wait(1)
      const third = await cancel(3n)
      await trade(2n, third + 1_000n)
      expect(third).to.be.greaterThan(second)
      const { address } = exchange.users[0]!
      expect(await exchange.trader.saltState(address, 1)).to.equal(2n)
      await cancel(4n)
      await wait(6)
      await refused(trade(4n, (await now()) + 1_000n), 4n, (await now()) - 6_000n, (await now()) + 1_000n)
    })

    it('when a partly filled order is cancelled, its rest fills for CANCEL_GRACE and then reverts with OrderCancelled', async () => {
      const at = await now()
      await trade(9n, at + 1_000n, 30, 10, 4)
      const requested = await cancel(9n)
      await trade(9n, requested + 1_000n, 30, 15, 4)
      expect(await exchange.trader.saltState(exchange.users[0]!.address, 9)).to.equal(3n)
      await expect(trade(9n, requested + 2_000n, 30, 6, 4))
        .to.be.revertedWithCustomError(exchange.trader, 'Overfill')
        .withArgs(exchange.users[0]!.address, 9, 5, 6)
      await wait(5)
      await refused(trade(9n, requested + 5_001n, 30, 5, 4), 9n, requested, requested + 5_001n)
    })
  })

  it('when a salt is 2^53 or above, it reverts with SaltTooLarge', async () => {
    await expect((await trader()).cancelSalts([1n << 53n]))
      .to.be.revertedWithCustomError(exchange.trader, 'SaltTooLarge')
      .withArgs(1n << 53n)
  })

  it('when the owner’s request arrives through the forwarder, it marks the owner’s salts', async () => {
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
