/** Minimum delays and windows that the constructors enforce on every chain that is not a known test chain. */
import { expect } from 'chai'
import { ZeroAddress } from 'ethers'
import { network } from 'hardhat'
import { gridOf, LATCH_WEI, parametersOf } from '../../../stack/deploy.ts'
import { AggregatorOracle__factory } from '../../../typechain-types/factories/AggregatorOracle__factory.ts'
import { ExchangeAccess__factory } from '../../../typechain-types/factories/ExchangeAccess__factory.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { FeedMock__factory } from '../../../typechain-types/factories/mocks/FeedMock__factory.ts'
import { SignedPriceOracle__factory } from '../../../typechain-types/factories/SignedPriceOracle__factory.ts'
import { firstSigner } from '../../support/exchange.ts'
import { perpetual } from '../../support/markets.ts'

const DAY = 86_400
const WEI = { value: LATCH_WEI }

describe('delays on production chains', () => {
  for (const chainId of [4326, 1])
    it(`when shorter or longer than the allowed range, every deployment on chain ${chainId} reverts with DelayOutOfRange`, () =>
      refusedOn(chainId))

  it('when the dispute window of a market is shorter than a day, its deployment reverts with DisputeWindowInvalid', async () => {
    // Mutation tests deploy code that is not optimized.
    const override = { chainId: 4326, allowUnlimitedContractSize: true }
    const admin = await firstSigner(await network.create({ override }))
    // The constructor calls no other contract, and only checks that they have code.
    const other = await new ExchangeAccess__factory(admin).deploy(admin, DAY)
    const deploy = (disputeWindow: number) =>
      new IsolatedTrader__factory(admin).deploy(
        { ...gridOf(perpetual), disputeWindow },
        parametersOf(perpetual),
        ...([other, other, other, other, other, other] as const),
      )
    const trader = await deploy(DAY * 1000)
    await expect(deploy(DAY * 1000 - 1)).to.be.revertedWithCustomError(trader, 'DisputeWindowInvalid')
  })

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
