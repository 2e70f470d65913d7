/** The extension is market code at a second address: same functions, same storage, no state of its own. */
import { expect } from 'chai'
import { type FunctionFragment, type Interface, type ParamType, ZeroAddress, zeroPadValue } from 'ethers'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarketExtension__factory } from '../../../typechain-types/factories/MarketExtension__factory.ts'
import { nameOfError } from '../../support/errors.ts'
import { chain, type Exchange, perpetualExchange } from '../../support/exchange.ts'

/** A zero or empty argument of every type that the extension’s functions take. */
const blank = (type: ParamType): unknown => {
  if (type.isArray()) return []
  if (type.isTuple()) return type.components.map(blank)
  if (type.type === 'bytes') return '0x'
  if (type.type.startsWith('bytes')) return zeroPadValue('0x', Number(type.type.slice(5)))
  return type.type === 'address' ? ZeroAddress : 0
}

const functionsOf = (of: Interface): FunctionFragment[] =>
  of.fragments.filter((fragment) => fragment.type === 'function') as FunctionFragment[]

describe('MarketExtension', () => {
  let exchange: Exchange
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })

  const selectors = (of: Interface): Map<string, string> => {
    return new Map(functionsOf(of).map((fragment) => [fragment.selector, fragment.format()]))
  }

  it('has a delegating function in the market for each of its functions', () => {
    const delegating = selectors(IsolatedTrader__factory.createInterface())
    const extension = selectors(MarketExtension__factory.createInterface())
    expect(extension.size).to.be.greaterThan(10)
    for (const [selector, name] of extension) expect(delegating.get(selector), name).to.equal(name)
  })

  it('when called directly, it reverts with ExtensionCalledDirectly or NotOperator, whatever data is appended', async () => {
    const { shared, admin } = exchange
    const extension = MarketExtension__factory.connect(shared.extension, admin)
    const encode = extension.interface.encodeFunctionData.bind(
      extension.interface,
    ) as Interface['encodeFunctionData']
    const refusals = new Map<string, number>()
    for (const fragment of functionsOf(extension.interface)) {
      for (const appended of ['', '00'.repeat(12 * 32)]) {
        const data = encode(fragment, fragment.inputs.map(blank)) + appended
        const refusal = await admin.call({ to: shared.extension, data }).then(
          () => `${fragment.format()} answers`,
          (error) => nameOfError(error) ?? nameOfError(error.data) ?? error.message,
        )
        refusals.set(refusal, (refusals.get(refusal) ?? 0) + 1)
      }
    }
    expect([...refusals.keys()].sort()).to.deep.equal(['ExtensionCalledDirectly', 'NotOperator'])
    expect(refusals.get('ExtensionCalledDirectly')).to.be.greaterThan(50)
  })

  it('when called through a market, it writes that market’s storage and not its own', async () => {
    const { trader, shared, connection } = exchange
    await trader.heartbeat()
    expect((await trader.windDown()).heartbeatAt).to.be.greaterThan(0n)
    for (let slot = 0; slot < 40; slot++) {
      expect(BigInt(await connection.ethers.provider.getStorage(shared.extension, slot))).to.equal(0n)
    }
  })

  it('when the caller is not an operator, the market’s check reverts with NotOperator', async () => {
    const unauthorized = exchange.trader.connect(exchange.admin)
    await expect(unauthorized.heartbeat()).to.be.revertedWithCustomError(exchange.trader, 'NotOperator')
  })
})
