/** Deploys the contracts on an in-process chain for the markets and accounts of a run. */

import { getBytes, id, keccak256, type Signer, TypedDataEncoder, Wallet } from 'ethers'
import { network } from 'hardhat'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import type { Address, MarketId, Millis, Price, Quote, Rate, UserId } from '../../domain/units.ts'
import { ONE } from '../../domain/units.ts'
import { deployMarket, deployShared, feedIdOf, type SharedContracts } from '../../stack/deploy.ts'
import { Backstop__factory } from '../../typechain-types/factories/Backstop__factory.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../typechain-types/factories/MarginBank__factory.ts'
import { TestUSDM__factory } from '../../typechain-types/factories/TestUSDM__factory.ts'
import type { IsolatedTrader } from '../../typechain-types/IsolatedTrader.ts'
import type { MarginBank } from '../../typechain-types/MarginBank.ts'
import { BACKSTOP } from '../chain.ts'

/**
 * The widest limits that the contracts allow. With narrower limits the keeper would have to wait during a steep crash.
 */
const REPORTS = { maxAge: 60_000, moveBase: ONE as Rate, moveSlope: ONE as Rate, moveWindow: 1_000 }
const YEAR = 365 * 86_400_000
/** Permission bit for signing orders. */
const ORDERS = 1

export const keccak = (message: Uint8Array): Uint8Array => getBytes(keccak256(message))
export const lower = (address: string): Address => address.toLowerCase() as Address

export interface DeployedMarket {
  /** Specification with the address of the deployed contract. */
  readonly spec: MarketSpec
  readonly trader: IsolatedTrader
}

export interface DeployedExchange {
  readonly markets: readonly DeployedMarket[]
  readonly bank: MarginBank
  readonly admin: Signer
  addressOf(account: UserId): Address
  /** Wallet that signs the account's orders; for the backstop, its session key. */
  signerOf(account: UserId): Wallet
  report(market: MarketId, price: Price, observedAt: Millis): OracleReport
  /** Time of the latest block in seconds. */
  latest(): Promise<number>
  /** Sets the time of the next block. */
  setTime(seconds: number): Promise<void>
  /** Stops the chain. */
  close(): Promise<void>
}

interface Accounts {
  readonly specs: readonly MarketSpec[]
  readonly deposits: ReadonlyMap<UserId, bigint>
  readonly cap: Quote
}

export async function deployExchange({ specs, deposits, cap }: Accounts): Promise<DeployedExchange> {
  const connection = await network.create({ override: { allowBlocksWithSameTimestamp: true } })
  const { ethers, networkHelpers } = connection
  const [admin, operator] = (await ethers.getSigners()) as unknown as [Signer, Signer]
  const shared = await deployShared(admin)
  const oracleKey = new Wallet(id('oracle of the simulator'))
  const options = {
    ...{ operators: [operator], oracleSigners: [lower(oracleKey.address)], reports: REPORTS },
    ...(cap > 0n && { backstopCap: cap }),
  }
  const markets: DeployedMarket[] = []
  const expiresAt = ((await networkHelpers.time.latest()) * 1000 + YEAR) as Millis
  for (const simulated of specs) {
    const listed = simulated.kind === 'perpetual' ? simulated : { ...simulated, expiresAt }
    const address = await deployMarket(admin, shared, listed, options)
    markets.push({
      spec: { ...listed, trader: address },
      trader: IsolatedTrader__factory.connect(address, operator),
    })
  }
  const wallets = walletsAbove(shared.backstop, Math.max(...deposits.keys()))
  const sessionKey = new Wallet(id('session key of the backstop'))
  await Backstop__factory.connect(shared.backstop, admin).registerSessionKey(sessionKey.address, ORDERS)
  const addressOf = (account: UserId): Address =>
    account === BACKSTOP ? shared.backstop : lower((wallets.get(account) as Wallet).address)
  await deposit(admin, shared, deposits, addressOf)
  return {
    ...{ markets, admin, addressOf, bank: MarginBank__factory.connect(shared.marginBank, admin) },
    signerOf: (account) => (account === BACKSTOP ? sessionKey : (wallets.get(account) as Wallet)),
    report: (market, price, observedAt) => reportBy(oracleKey, shared, market, { price, observedAt }),
    latest: () => networkHelpers.time.latest(),
    setTime: (seconds) => networkHelpers.time.setNextBlockTimestamp(seconds),
    close: () => connection.close(),
  }
}

/**
 * Wallets with ascending addresses above the backstop's, in the order of account numbers: equal scores rank by address.
 */
function walletsAbove(backstop: Address, count: number): Map<UserId, Wallet> {
  const wallets: Wallet[] = []
  for (let at = 0; wallets.length < count; at++) {
    const wallet = new Wallet(id(`trader ${at} of the simulator`))
    if (lower(wallet.address) > backstop) wallets.push(wallet)
  }
  wallets.sort((a, b) => (lower(a.address) < lower(b.address) ? -1 : 1))
  return new Map(wallets.map((wallet, at) => [(BACKSTOP + 1 + at) as UserId, wallet]))
}

async function deposit(
  admin: Signer,
  { usdm, marginBank }: SharedContracts,
  deposits: ReadonlyMap<UserId, bigint>,
  addressOf: (account: UserId) => Address,
): Promise<void> {
  const total = [...deposits.values()].reduce((sum, each) => sum + each, 0n)
  const token = TestUSDM__factory.connect(usdm, admin)
  await token.mint(await admin.getAddress(), total)
  await token.approve(marginBank, total)
  const bank = MarginBank__factory.connect(marginBank, admin)
  for (const [account, amount] of deposits) if (amount > 0n) await bank.depositFor(addressOf(account), amount)
}

const REPORT_FIELDS = {
  PriceReport: [
    { name: 'feedId', type: 'bytes32' },
    { name: 'price', type: 'uint256' },
    { name: 'observedAt', type: 'uint256' },
  ],
}

function reportBy(
  key: Wallet,
  { oracle }: SharedContracts,
  market: MarketId,
  { price, observedAt }: Omit<OracleReport, 'signatures'>,
): OracleReport {
  const domain = { name: 'SignedPriceOracle', version: '1', chainId: 6343, verifyingContract: oracle }
  const hash = TypedDataEncoder.hash(domain, REPORT_FIELDS, { feedId: feedIdOf(market), price, observedAt })
  return { price, observedAt, signatures: key.signingKey.sign(hash).serialized as `0x${string}` }
}
