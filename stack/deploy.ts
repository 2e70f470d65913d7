/** Deploys the shared contracts once, then one IsolatedTrader per market. Works with any ethers signer. */
import { type Signer, solidityPackedKeccak256, toBeHex, ZeroHash } from 'ethers'
import type { MarketKind, MarketSpec } from '../domain/market/market.ts'
import type { Address, Quote, Rate } from '../domain/units.ts'
import { AccountManager__factory } from '../typechain-types/factories/AccountManager__factory.ts'
import { Backstop__factory } from '../typechain-types/factories/Backstop__factory.ts'
import { ExchangeAccess__factory } from '../typechain-types/factories/ExchangeAccess__factory.ts'
import { Forwarder__factory } from '../typechain-types/factories/Forwarder__factory.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { ChangeLib__factory } from '../typechain-types/factories/libraries/ChangeLib__factory.ts'
import { FundingLib__factory } from '../typechain-types/factories/libraries/FundingLib__factory.ts'
import { ValidationLib__factory } from '../typechain-types/factories/libraries/ValidationLib__factory.ts'
import { WindDownLib__factory } from '../typechain-types/factories/libraries/WindDownLib__factory.ts'
import { MarginBank__factory } from '../typechain-types/factories/MarginBank__factory.ts'
import {
  MarketExtension__factory,
  type MarketExtensionLibraryAddresses,
} from '../typechain-types/factories/MarketExtension__factory.ts'
import { SignedPriceOracle__factory } from '../typechain-types/factories/SignedPriceOracle__factory.ts'
import { TestUSDM__factory } from '../typechain-types/factories/TestUSDM__factory.ts'
import type { MarketGridStruct, ParametersStruct } from '../typechain-types/IsolatedTrader.ts'
import { assignFunctions, takeRole } from './access.ts'

export interface SharedContracts {
  readonly access: Address
  readonly usdm: Address
  readonly marginBank: Address
  readonly accountManager: Address
  readonly forwarder: Address
  readonly oracle: Address
  /** The account that inherits positions in the markets that it backs. */
  readonly backstop: Address
  /** The code that every market delegates infrequent functions and views to. */
  readonly extension: Address
}

export interface SharedOptions {
  /** The collateral token; without it, a TestUSDM is deployed. */
  readonly usdm?: Address
  /** Receives collected fees; the signer by default. */
  readonly treasury?: Address
}

export interface MarketOptions {
  /** The keys that may settle batches. Each accepts the role by a transaction, so it needs gas. */
  readonly operators: readonly Signer[]
  readonly oracleSigners: readonly Address[]
  /** The number of signatures per report; by default every signer signs. */
  readonly threshold?: number
  readonly reports?: ReportLimits
  /** Highest notional that the backstop may inherit here; it inherits nothing by default. */
  readonly backstopCap?: Quote
}

/** The limits of the price reports that a market accepts. */
export interface ReportLimits {
  /** Maximum age of a report at `asOf`, in milliseconds. */
  readonly maxAge: number
  /** The move from the last used report, fractions x 1e18: all of `moveBase` after `moveWindow` ms, and `moveSlope` per second. */
  readonly moveBase: Rate
  readonly moveSlope: Rate
  readonly moveWindow: number
}

export const REPORT_LIMITS: ReportLimits = {
  maxAge: 10_000,
  moveBase: 100_000_000_000_000_000n as Rate,
  moveSlope: 20_000_000_000_000_000n as Rate,
  moveWindow: 1_000,
}

/** Sent with the bank's deployment for its pause latch: this wei is in the latch while no pause is active. */
export const LATCH_WEI = 1n

const KINDS: Readonly<Record<MarketKind, number>> = { perpetual: 0, future: 1, binary_future: 2 }
const MODE_OPEN = 0
const MILLIONTH = 10n ** 12n

const address = (text: string): Address => text.toLowerCase() as Address
const millionths = (rate: Rate): bigint => rate / MILLIONTH

/** The feed that prices a market, at the oracle. */
export const feedIdOf = (marketId: number): string => toBeHex(marketId, 32)

/** The feed that reports whether the session of a market's underlying is running; funding accrues only then. */
export const sessionFeedIdOf = (marketId: number): string =>
  solidityPackedKeccak256(['bytes32', 'string'], [feedIdOf(marketId), 'session'])

/** The feed with the report that ends a market after its expiry. */
export const finalFeedIdOf = (marketId: number): string =>
  solidityPackedKeccak256(['bytes32', 'string'], [feedIdOf(marketId), 'final'])

/** Every feed that a market reads. All are set before the market is listed, so that no later call is the first to define a feed. */
export const feedsOf = ({ marketId, kind, fundingSession }: MarketSpec): readonly string[] => [
  feedIdOf(marketId),
  ...(fundingSession ? [sessionFeedIdOf(marketId)] : []),
  ...(kind === 'perpetual' ? [] : [finalFeedIdOf(marketId)]),
]

export const gridOf = (spec: MarketSpec) =>
  ({
    marketId: spec.marketId,
    kind: KINDS[spec.kind],
    tick: spec.tick,
    step: spec.step,
    feedId: feedIdOf(spec.marketId),
    sessionFeedId: spec.fundingSession ? sessionFeedIdOf(spec.marketId) : ZeroHash,
    finalFeedId: spec.kind === 'perpetual' ? ZeroHash : finalFeedIdOf(spec.marketId),
    finalLow: spec.finalLow,
    finalHigh: spec.finalHigh,
    expiresAt: spec.expiresAt,
    disputeWindow: spec.disputeWindow,
  }) satisfies MarketGridStruct

/** The contract's parameters, in millionths. */
export const parametersOf = (spec: MarketSpec, reports: ReportLimits = REPORT_LIMITS) =>
  ({
    imr: millionths(spec.imr),
    mmr: millionths(spec.mmr),
    mtbLong: millionths(spec.mtbLong),
    mtbShort: millionths(spec.mtbShort),
    makerFee: millionths(spec.makerFee),
    takerFee: millionths(spec.takerFee),
    reportMaxAge: reports.maxAge,
    moveBase: millionths(reports.moveBase),
    moveSlope: millionths(reports.moveSlope),
    moveWindow: reports.moveWindow,
    fundingCap: millionths(spec.fundingCap),
    maxLeverage: spec.maxLeverage,
    mode: MODE_OPEN,
  }) satisfies ParametersStruct

/** Libraries by the names under which the compiler links them. A new library needs one line. */
export const LIBRARIES = {
  'project/contracts/libraries/ChangeLib.sol:ChangeLib': ChangeLib__factory,
  'project/contracts/libraries/FundingLib.sol:FundingLib': FundingLib__factory,
  'project/contracts/libraries/ValidationLib.sol:ValidationLib': ValidationLib__factory,
  'project/contracts/libraries/WindDownLib.sol:WindDownLib': WindDownLib__factory,
} as const satisfies Record<keyof MarketExtensionLibraryAddresses, unknown>

async function deployLibraries(signer: Signer): Promise<MarketExtensionLibraryAddresses> {
  const addresses: Record<string, string> = {}
  for (const [name, Factory] of Object.entries(LIBRARIES))
    addresses[name] = await (await new Factory(signer).deploy()).getAddress()
  return addresses as unknown as MarketExtensionLibraryAddresses
}

/** Deploys the contracts that all markets share. The signer receives every role, without execution delay. */
export async function deployShared(signer: Signer, options: SharedOptions = {}): Promise<SharedContracts> {
  const admin = await signer.getAddress()
  const access = await new ExchangeAccess__factory(signer).deploy(admin, 0)
  const usdm = options.usdm ?? (await (await new TestUSDM__factory(signer).deploy()).getAddress())
  const forwarder = await new Forwarder__factory(signer).deploy()
  const accountManager = await new AccountManager__factory(signer).deploy(await forwarder.getAddress())
  const oracle = await new SignedPriceOracle__factory(signer).deploy(access, 0)
  const bank = await new MarginBank__factory(signer).deploy(usdm, access, options.treasury ?? admin, 0, {
    value: LATCH_WEI,
  })
  const libraries = await deployLibraries(signer)
  const extension = await new MarketExtension__factory(libraries, signer).deploy()
  await bank.waitForDeployment()
  for (const role of ['listing', 'parameters', 'guardian', 'treasury'] as const) {
    await takeRole(access, role, signer)
  }
  await assignFunctions(access, 'MarginBank', bank)
  await assignFunctions(access, 'SignedPriceOracle', oracle)
  const backstop = await new Backstop__factory(signer).deploy(access, bank, accountManager)
  await assignFunctions(access, 'Backstop', backstop)
  return {
    access: address(await access.getAddress()),
    usdm: address(usdm),
    marginBank: address(await bank.getAddress()),
    accountManager: address(await accountManager.getAddress()),
    forwarder: address(await forwarder.getAddress()),
    oracle: address(await oracle.getAddress()),
    backstop: address(await backstop.getAddress()),
    extension: address(await extension.getAddress()),
  }
}

/** Deploys one market's contract, sets its feeds and operators, and lists it at the bank. Returns the contract's address. */
export async function deployMarket(
  signer: Signer,
  shared: SharedContracts,
  spec: MarketSpec,
  options: MarketOptions,
): Promise<Address> {
  const trader = await new IsolatedTrader__factory(signer).deploy(
    gridOf(spec),
    parametersOf(spec, options.reports),
    shared.marginBank,
    shared.accountManager,
    shared.oracle,
    shared.forwarder,
    shared.access,
    shared.extension,
  )
  await trader.waitForDeployment()
  const traderAddress = await trader.getAddress()
  await assignFunctions(ExchangeAccess__factory.connect(shared.access, signer), 'IsolatedTrader', trader)

  const signers = options.oracleSigners.map(address).sort()
  const oracle = SignedPriceOracle__factory.connect(shared.oracle, signer)
  for (const feed of feedsOf(spec))
    await (await oracle.setFeed(feed, signers, options.threshold ?? signers.length)).wait()
  for (const operator of options.operators) {
    await (await trader.proposeOperator(operator)).wait()
    await (await trader.connect(operator).acceptOperator()).wait()
  }
  const bank = MarginBank__factory.connect(shared.marginBank, signer)
  await (await bank.announceMarket(traderAddress)).wait()
  await (await bank.listMarket(traderAddress)).wait()
  if (options.backstopCap) {
    await (await Backstop__factory.connect(shared.backstop, signer).setBacked(traderAddress, true)).wait()
    await (await trader.setBackstop(shared.backstop, options.backstopCap)).wait()
  }
  return address(traderAddress)
}
