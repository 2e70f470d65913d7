/** Minimum delays that the constructors enforce on every chain that is not a known test chain. */
import { expect } from 'chai'
import { ZeroAddress } from 'ethers'
import { network } from 'hardhat'
import { LATCH_WEI } from '../../../stack/deploy.ts'
import { AggregatorOracle__factory } from '../../../typechain-types/factories/AggregatorOracle__factory.ts'
import { ExchangeAccess__factory } from '../../../typechain-types/factories/ExchangeAccess__factory.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { FeedMock__factory } from '../../../typechain-types/factories/mocks/FeedMock__factory.ts'
import { SignedPriceOracle__factory } from '../../../typechain-types/factories/SignedPriceOracle__factory.ts'
import { firstSigner } from '../../support/exchange.ts'

const DAY = 86_400
const WEI = { value: LATCH_WEI }

describe('delays on production chains', () => {
  for (const chainId of [4326, 1])
    it(`when shorter or longer than the allowed range, every deployment on chain ${chainId} reverts with DelayOutOfRange`, () =>
      refusedOn(chainId))

  async function refusedOn(chainId: number): Promise<void> {
    const mainnet = await network.create({ override: { chainId } })
    const admin = await firstSigner(mainnet)
    const access = await new ExchangeAccess__factory(admin).deploy(admin, DAY)
    const token = await new FeedMock__factory(admin).deploy(18)
    const none = ZeroAddress
    const deployments: readonly [number, number, (delay: number) => Promise<unknown>][] = [
      [DAY, 30 * DAY, (delay) => new ExchangeAccess__factory(admin).deploy(admin, delay)],
      [7 * DAY, 60 * DAY, (delay) => new MarginBank__factory(admin).deploy(token, access, admin, delay, WEI)],
      [DAY, 30 * DAY, (delay) => new SignedPriceOracle__factory(admin).deploy(access, delay)],
      [DAY, 30 * DAY, (delay) => new AggregatorOracle__factory(admin).deploy(access, delay, none, 0)],
    ]
    for (const [lowest, highest, deploy] of deployments) {
      await deploy(lowest)
      await deploy(highest)
      for (const delay of [lowest - 1, highest + 1])
        await expect(deploy(delay))
          .to.be.revertedWithCustomError(access, 'DelayOutOfRange')
          .withArgs(delay, lowest, highest)
    }
  }
})
