/** The desk is code of the market kept elsewhere: the same doors, the same storage, and nothing of its own. */
import { expect } from 'chai'
import type { Interface } from 'ethers'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarketDesk__factory } from '../../../typechain-types/factories/MarketDesk__factory.ts'
import { chain, type Exchange, perpetualExchange } from '../../support/exchange.ts'

const REPORT = { price: 1n, observedAt: 1n, proof: '0x' }
const UNLISTED = '0x00000000000000000000000000000000000000aa'

describe('MarketDesk', () => {
  let exchange: Exchange
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })

  const selectors = (of: Interface): Map<string, string> => {
    const functions = of.fragments.filter((fragment) => fragment.type === 'function')
    return new Map(
      functions.map((fragment) => [of.getFunction(fragment.format())!.selector, fragment.format()]),
    )
  }

  it('has a door at the market for everything it does', () => {
    const doors = selectors(IsolatedTrader__factory.createInterface())
    const desk = selectors(MarketDesk__factory.createInterface())
    expect(desk.size).to.be.greaterThan(10)
    for (const [selector, name] of desk) expect(doors.get(selector), name).to.equal(name)
  })

  it('refuses to be called directly, whatever is appended', async () => {
    const { shared, admin } = exchange
    const desk = MarketDesk__factory.connect(shared.desk, admin)
    await expect(desk.poke(REPORT)).to.be.revertedWithCustomError(exchange.trader, 'DeskCalledDirectly')
    await expect(desk.freeze()).to.be.revertedWithCustomError(exchange.trader, 'DeskCalledDirectly')
    await expect(desk.requestFreeze()).to.be.revertedWithCustomError(exchange.trader, 'DeskCalledDirectly')
    await expect(desk.claim(UNLISTED)).to.be.revertedWithCustomError(exchange.trader, 'DeskCalledDirectly')
    await expect(desk.heartbeat()).to.be.revertedWithCustomError(exchange.trader, 'NotOperator')
    await expect(desk.updateFunding(1, 1, 1, 1, REPORT, REPORT)).to.be.revertedWithCustomError(
      exchange.trader,
      'NotOperator',
    )
  })

  it('works on the storage of the market that calls, and on no other', async () => {
    const { trader, shared, connection } = exchange
    await trader.heartbeat()
    expect((await trader.wind()).heartbeatAt).to.be.greaterThan(0n)
    for (let slot = 0; slot < 40; slot++) {
      expect(BigInt(await connection.ethers.provider.getStorage(shared.desk, slot))).to.equal(0n)
    }
  })

  it('asks the market who may enter', async () => {
    const stranger = exchange.trader.connect(exchange.admin)
    await expect(stranger.heartbeat()).to.be.revertedWithCustomError(exchange.trader, 'NotOperator')
  })
})
