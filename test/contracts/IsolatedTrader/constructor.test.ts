import { expect } from 'chai'
import { ZeroAddress, ZeroHash } from 'ethers'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { encodeSettleBatch } from '../../../domain/settlement/settlement-codec.ts'
import type { Price, Quantity } from '../../../domain/units.ts'
import { feedIdOf, finalFeedIdOf, gridOf, parametersOf } from '../../../stack/deploy.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import {
  addressOf,
  buildPart,
  chain,
  type Exchange,
  pair,
  perpetualExchange,
} from '../../support/exchange.ts'
import { binary, EXPIRES_AT, e18, future, markets, perpetual, rate } from '../../support/markets.ts'

describe('constructor', () => {
  let exchange: Exchange
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })

  const deploy = (
    spec: MarketSpec,
    change: object = {},
    addresses: Partial<Exchange['shared']> = {},
    grid: object = {},
  ) => {
    const { admin } = exchange
    const { marginBank, accountManager, oracle, forwarder, extension } = { ...exchange.shared, ...addresses }
    const parameters = { ...parametersOf(spec), ...change }
    const factory = new IsolatedTrader__factory(admin)
    return factory.deploy(
      { ...gridOf(spec), ...grid },
      parameters,
      marginBank,
      accountManager,
      oracle,
      forwarder,
      exchange.shared.access,
      extension,
    )
  }
  const refused = (deployment: Promise<unknown>, error: string) =>
    expect(deployment).to.be.revertedWithCustomError(exchange.trader, error)

  it('when any kind of market is deployed, it returns its grid and parameters and emits MarketCreated', async () => {
    for (const spec of markets) {
      const trader = await deploy(spec)
      const grid = await trader.grid()
      expect([grid.expiresAt, grid.disputeWindow]).to.deep.equal([BigInt(spec.expiresAt), 86_400_000n])
      const ending = await trader.ending()
      expect([ending.expiresAt, ending.disputeWindow]).to.deep.equal([grid.expiresAt, grid.disputeWindow])
      expect(grid.finalFeedId).to.equal(spec.kind === 'perpetual' ? ZeroHash : finalFeedIdOf(spec.marketId))
      expect([grid.marketId, grid.tick, grid.step, grid.feedId]).to.deep.equal([
        BigInt(spec.marketId),
        spec.tick,
        spec.step,
        feedIdOf(spec.marketId),
      ])
      const { imr, maxLeverage, mode } = await trader.parameters()
      expect([imr, maxLeverage, mode]).to.deep.equal([spec.imr / 10n ** 12n, BigInt(spec.maxLeverage), 0n])
      await expect(trader.deploymentTransaction()).to.emit(trader, 'MarketCreated')
      await expect(trader.deploymentTransaction()).to.emit(trader, 'ParametersChanged')
    }
  })

  it('returns its contracts’ addresses and its EIP-712 domain', async () => {
    const { trader, shared } = exchange
    expect((await trader.bank()).toLowerCase()).to.equal(shared.marginBank)
    expect((await trader.accountManager()).toLowerCase()).to.equal(shared.accountManager)
    expect((await trader.oracle()).toLowerCase()).to.equal(shared.oracle)
    expect((await trader.extension()).toLowerCase()).to.equal(shared.extension)
    expect((await trader.floors(exchange.admin.address)).marginNonce).to.equal(0n)
    const { name, version, chainId, verifyingContract } = await trader.eip712Domain()
    expect([name, version, chainId, verifyingContract]).to.deep.equal([
      'IsolatedTrader',
      '2.0',
      exchange.spec.chainId,
      await trader.getAddress(),
    ])
    const { TypedDataEncoder } = exchange.connection.ethers
    expect(await trader.domainSeparator()).to.equal(
      TypedDataEncoder.hashDomain({ name, version, chainId, verifyingContract }),
    )
  })

  const grids: readonly [string, MarketSpec][] = [
    ['no tick', { ...perpetual, tick: 0n as Price }],
    ['no step', { ...perpetual, step: 0n as Quantity }],
    ['a tick too large for the arithmetic', { ...perpetual, tick: (1n << 80n) as Price }],
    ['a tick and step whose fees would round', { ...perpetual, tick: 1n as Price }],
    ['a binary tick that does not divide 1', { ...binary, tick: e18('0.003') as Price }],
    ['a binary tick of 1', { ...binary, tick: e18('1') as Price }],
    [
      'a binary tick finer than a millionth',
      { ...binary, tick: (10n ** 11n) as Price, step: e18('10000') as Quantity },
    ],
    ['a binary step whose fees would round', { ...binary, step: (10n ** 11n) as Quantity }],
    ['a perpetual with a final price', { ...perpetual, finalHigh: e18('1') as Price }],
    ['a binary market that does not end at 0 or 1', { ...binary, finalHigh: e18('2') as Price }],
    ['a future with no room for its final price', { ...future, finalHigh: future.finalLow }],
    ['a session in a market without funding', { ...future, fundingSession: true }],
  ]
  for (const [name, spec] of grids) {
    it(`when the grid has ${name}, it reverts with GridInvalid`, () => refused(deploy(spec), 'GridInvalid'))
  }

  it('when the session feed equals the price feed, it reverts with GridInvalid', () =>
    refused(deploy(perpetual, {}, {}, { sessionFeedId: feedIdOf(perpetual.marketId) }), 'GridInvalid'))

  it('when the final feed is missing, equals the price feed or belongs to a perpetual, it reverts with GridInvalid', async () => {
    for (const spec of [future, binary]) {
      await refused(deploy(spec, {}, {}, { finalFeedId: ZeroHash }), 'GridInvalid')
      await refused(deploy(spec, {}, {}, { finalFeedId: feedIdOf(spec.marketId) }), 'GridInvalid')
    }
    await refused(
      deploy(perpetual, {}, {}, { finalFeedId: finalFeedIdOf(perpetual.marketId) }),
      'GridInvalid',
    )
  })

  it('when the expiry is not after block time, lies over ten years ahead or is set for a perpetual, it reverts with ExpiryInvalid', async () => {
    const { time } = exchange.connection.networkHelpers
    const deployAt = async (expiresAt: (at: number) => number) => {
      const at = (await time.latest()) + 10
      await time.setNextBlockTimestamp(at)
      return deploy(future, {}, {}, { expiresAt: expiresAt(at * 1000) })
    }
    const TEN_YEARS = 315_576_000_000
    for (const expiresAt of [0, 1, TEN_YEARS + 1]) {
      await refused(
        deployAt((at) => (expiresAt < 2 ? at * expiresAt : at + expiresAt)),
        'ExpiryInvalid',
      )
    }
    for (const ahead of [1, TEN_YEARS]) {
      const trader = await deployAt((at) => at + ahead)
      expect((await trader.grid()).expiresAt).to.equal(BigInt((await time.latest()) * 1000 + ahead))
    }
    await refused(deploy(perpetual, {}, {}, { expiresAt: EXPIRES_AT }), 'ExpiryInvalid')
  })

  it('when the dispute window is below a second or above 14 days, it reverts with DisputeWindowInvalid', async () => {
    for (const disputeWindow of [0, 999, 1_209_600_001]) {
      await refused(deploy(perpetual, {}, {}, { disputeWindow }), 'DisputeWindowInvalid')
    }
    for (const disputeWindow of [1_000, 1_209_600_000]) {
      const trader = await deploy(perpetual, {}, {}, { disputeWindow })
      expect((await trader.grid()).disputeWindow).to.equal(BigInt(disputeWindow))
    }
  })

  const parameters: readonly [string, object][] = [
    ['no maintenance requirement', { mmr: 0 }],
    ['IMR less than 0.75 points above MMR', { imr: 29_999, mmr: 22_500 }],
    ['no leverage', { maxLeverage: 0 }],
    ['leverage beyond its field', { maxLeverage: 128, imr: 7_600, mmr: 100 }],
    ['leverage that its own IMR refuses', { imr: 50_001 }],
    ['a long band beyond 100 %', { mtbLong: 1_000_001 }],
    ['a short band of 100 %', { mtbShort: 1_000_000 }],
    ['a maker rate above the taker rate', { makerFee: 501 }],
    ['a taker rate above 5 %', { takerFee: 50_001 }],
    ['no move of the price', { moveBase: 0, moveSlope: 0 }],
    ['a leap beyond 100 %', { moveBase: 1_000_001 }],
    ['a slope beyond 100 % a second', { moveSlope: 1_000_001 }],
    ['a window of moves below a second', { moveWindow: 999 }],
    ['a window of moves above a minute', { moveWindow: 60_001 }],
    ['no report age', { reportMaxAge: 0 }],
    ['a report age above a minute', { reportMaxAge: 60_001 }],
    ['a funding cap above 4 % per hour', { fundingCap: 40_001 }],
  ]
  for (const [name, change] of parameters) {
    it(`when the parameters have ${name}, it reverts with ParametersInvalid`, () =>
      refused(deploy(perpetual, change), 'ParametersInvalid'))
  }

  it('when a market with an expiry has a funding cap, it reverts with ParametersInvalid', () =>
    refused(deploy(future, { fundingCap: 1 }), 'ParametersInvalid'))

  it('when an address is zero or the extension has no code, it reverts with AddressZero', async () => {
    for (const name of ['marginBank', 'accountManager', 'oracle', 'extension'] as const) {
      await refused(deploy(future, {}, { [name]: ZeroAddress }), 'AddressZero')
    }
    await refused(deploy(future, {}, { extension: addressOf(exchange.treasury) }), 'AddressZero')
  })

  it('when deployed in a mode other than open, batches revert with MarketNotOpen', async () => {
    const trader = await deploy({ ...future, imr: rate('0.18') }, { mode: 2 })
    await trader.proposeOperator(exchange.admin.address)
    await trader.acceptOperator()
    const [alice, bob] = exchange.users
    const built = await buildPart(exchange, { price: 500_000, fills: pair(alice!, bob!, 10) })
    const part = encodeSettleBatch(built, exchange.spec)
    await expect(trader.settleBatch(part)).to.be.revertedWithCustomError(trader, 'MarketNotOpen').withArgs(2)
  })
})
