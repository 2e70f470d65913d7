import { expect } from 'chai'
import { network } from 'hardhat'
import { TestUSDM__factory } from '../../../typechain-types/factories/TestUSDM__factory.ts'
import { chain, firstSigner, perpetualExchange, wallet } from '../../support/exchange.ts'

describe('TestUSDM', () => {
  it('when any account mints, the receiver is credited', async () => {
    const { usdm, operator } = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    const { address } = wallet('poor')
    await usdm.connect(operator).mint(address, 5)
    expect(await usdm.balanceOf(address)).to.equal(5n)
    expect(await usdm.decimals()).to.equal(18n)
  })
  it('when deployed on a chain that is not a test chain, it reverts with NotATestChain', async () => {
    const mainnet = await network.create({ override: { chainId: 4326 } })
    const factory = new TestUSDM__factory(await firstSigner(mainnet))
    await expect(factory.deploy()).to.be.revertedWithCustomError(factory, 'NotATestChain').withArgs(4326)
  })
})
