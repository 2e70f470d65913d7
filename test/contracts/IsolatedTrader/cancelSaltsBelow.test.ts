import { expect } from 'chai'
import { encodeSettleBatch } from '../../../domain/settlement/settlement-codec.ts'
import {
  buildPart,
  caller,
  chain,
  type Exchange,
  pair,
  perpetualExchange,
  send,
  settle,
} from '../../support/exchange.ts'

describe('cancelSaltsBelow', () => {
  let exchange: Exchange
  const latest = async () => (await exchange.connection.networkHelpers.time.latest()) * 1000
  const wait = (seconds: number) => exchange.connection.networkHelpers.time.increase(seconds)
  const request = async (floor: bigint | number) => {
    const trader = exchange.trader.connect(await caller(exchange, exchange.users[0]!))
    const tx = await trader.cancelSaltsBelow(floor)
    return { tx, requestedAt: await latest() }
  }
  /** Alice's order with this salt in a batch with the given `asOf`. */
  const trade = async (salt: bigint, asOf?: number) => {
    const [alice, bob] = exchange.users
    const [buy, sell] = pair(alice!, bob!, 10)
    const at = asOf === undefined ? {} : { asOf: asOf as never, observedAt: asOf }
    const part = await buildPart(exchange, { price: 500_000, fills: [{ ...buy!, salt }, sell!], ...at })
    return send(exchange, encodeSettleBatch(part, exchange.spec))
  }
  const refused = (sent: Promise<unknown>, ...args: unknown[]) =>
    expect(sent)
      .to.be.revertedWithCustomError(exchange.trader, 'OrderCancelled')
      .withArgs(exchange.users[0]!.address, ...args)

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })

  it('when requested, it emits SaltsCancelledBelow and flags the position', async () => {
    const { tx, requestedAt } = await request(100)
    const { address } = exchange.users[0]!
    await expect(tx).to.emit(exchange.trader, 'SaltsCancelledBelow').withArgs(address, 100, requestedAt)
    const { settled, requested, requestedAt: at } = await exchange.trader.floors(address)
    expect([settled, requested, at]).to.deep.equal([0n, 100n, BigInt(requestedAt)])
    const { hasFloors, leverage } = await exchange.trader.position(address)
    expect([hasFloors, leverage]).to.deep.equal([true, 0n])
  })

  it('when asOf is up to 5 s after the request, salts below the floor fill; later they revert with OrderCancelled', async () => {
    const { requestedAt } = await request(100)
    await wait(5)
    await trade(98n, requestedAt + 5000)
    await refused(trade(99n, requestedAt + 5001), 99, requestedAt, requestedAt + 5001)
    await trade(100n, requestedAt + 5001)
  })

  it('when the account trades on, the position’s flag survives its fills', async () => {
    await request(100)
    await trade(100n)
    expect((await exchange.trader.position(exchange.users[0]!.address)).hasFloors).to.equal(true)
  })

  it('when a second request follows within 15 s, the time of the first restarts', async () => {
    await request(100)
    await wait(10)
    const { requestedAt } = await request(200)
    await trade(50n, requestedAt + 1000)
    await wait(6)
    await refused(trade(51n), 51, requestedAt, (await latest()) + 1000)
  })

  it('when a second request follows after 15 s, the first floor stays in force', async () => {
    await request(100)
    await wait(15)
    const { requestedAt } = await request(200)
    await refused(trade(99n, requestedAt + 1000), 99, requestedAt, requestedAt + 1000)
    await trade(100n, requestedAt + 1000)
  })

  it('when the floor is not above the requested one, it changes nothing and emits no event', async () => {
    await request(100)
    for (const floor of [100, 99, 0]) {
      await expect((await request(floor)).tx).not.to.emit(exchange.trader, 'SaltsCancelledBelow')
    }
    expect((await exchange.trader.floors(exchange.users[0]!.address)).requested).to.equal(100n)
  })

  it('when the floor is 2^53, it cancels every salt; above that it reverts with SaltTooLarge', async () => {
    const { requestedAt } = await request(1n << 53n)
    await wait(6)
    await refused(trade((1n << 53n) - 1n), (1n << 53n) - 1n, requestedAt, (await latest()) + 1000)
    await expect(request((1n << 53n) + 1n)).to.be.revertedWithCustomError(exchange.trader, 'SaltTooLarge')
  })

  it('when one account cancels, other accounts’ orders still settle', async () => {
    await request(1n << 53n)
    await wait(6)
    const [, bob, carol] = exchange.users
    await settle(exchange, { price: 500_000, fills: pair(bob!, carol!, 10) })
  })
})
