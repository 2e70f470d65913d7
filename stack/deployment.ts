/** The contracts of the local stack: deployed at the first start and reused at every later start. */
import { type JsonRpcProvider, NonceManager, Wallet } from 'ethers'
import type { MarketSpec } from '../domain/market/market.ts'
import type { Address } from '../domain/units.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { fundGas } from './accounts.ts'
import { type DataDir, readJson, writePrivate } from './data-dir.ts'
import { deployMarket, deployShared, gridOf, type SharedContracts } from './deploy.ts'
import { contractsOfOtherCode } from './deployed-code.ts'
import type { Keys } from './keys.ts'
import { StackError } from './options.ts'
import { SEED_MARKETS } from './seed-markets.ts'

export interface Deployment {
  readonly chain_id: number
  readonly contracts: SharedContracts
  /** Trader by market id. */
  readonly traders: Readonly<Record<string, Address>>
}

/** Who signs the price reports, and how many of them a report needs. */
export interface OracleSigners {
  readonly addresses: readonly Address[]
  readonly threshold: number
}

const oneSigner = ({ oracle }: Keys): OracleSigners => ({
  addresses: [oracle.address as Address],
  threshold: 1,
})

/** Until the market is deployed. */
const NO_ADDRESS = `0x${'0'.repeat(40)}` as Address

/** Refuses a stored deployment whose contracts are not this version's: the processes would misread their events and calls. */
export async function ensureDeployment(
  dir: DataDir,
  keys: Keys,
  provider: JsonRpcProvider,
  chainId: number,
  signers: OracleSigners = oneSigner(keys),
): Promise<Deployment> {
  const deployment = await loadOrDeploy(dir, keys, provider, chainId, signers)
  await approveOperators(keys, provider, deployment)
  await fundGas(provider, [keys.ending.address, keys.relay.address])
  return deployment
}

const ADDRESS = /^0x[0-9a-f]{40}$/i

/** Contracts and markets that an earlier version lacked are named one by one. */
function isDeployment({ contracts, traders }: Partial<Deployment>): boolean {
  const addresses = [...Object.values(contracts ?? {}), ...Object.values(traders ?? {})]
  return (
    contracts?.marginBank !== undefined &&
    traders !== undefined &&
    addresses.every((each) => ADDRESS.test(each))
  )
}

async function loadOrDeploy(
  dir: DataDir,
  keys: Keys,
  provider: JsonRpcProvider,
  chainId: number,
  signers: OracleSigners,
): Promise<Deployment> {
  const stored = readJson<Deployment>(dir.deployment, isDeployment)
  if (stored === null) return deploy(dir, keys, provider, chainId, signers)
  if ((await provider.getCode(stored.contracts.marginBank)) === '0x')
    throw new StackError(
      `the chain in ${dir.chainState} has no contract at ${stored.contracts.marginBank}, where ${dir.deployment} names the ` +
        'MarginBank: the stack was killed before the chain was saved for the first time. Delete this state with --fresh',
    )
  const differences = await contractsOfOtherCode(provider, stored)
  // The grid of a market with other code may have other fields.
  if (differences.length === 0) differences.push(...(await marketsOfOtherTerms(provider, stored)))
  if (differences.length === 0) return stored
  throw new StackError(
    `the contracts in ${dir.path} were deployed by another version, and differ from this version's:\n` +
      `${differences.map((line) => `  ${line}`).join('\n')}\n` +
      'Delete this state with --fresh. To keep it, choose another --data-dir or run the version that wrote it',
  )
}

/** One line per seeded market whose fixed terms are not this version's. */
async function marketsOfOtherTerms(provider: JsonRpcProvider, { traders }: Deployment): Promise<string[]> {
  const lines = SEED_MARKETS.map(async ({ plan }) => {
    const trader = traders[plan.marketId]
    if (trader === undefined) return [`market ${plan.symbol} is not in deployment.json`]
    const grid = await IsolatedTrader__factory.connect(trader, provider).grid()
    const expected = gridOf({ ...plan, chainId: 0n, trader })
    return Object.entries(expected).flatMap(([name, value]) => {
      const found = grid[name as keyof typeof expected]
      if (BigInt(found) === BigInt(value)) return []
      return [`market ${plan.symbol} at ${trader} has ${name} ${found} instead of ${value}`]
    })
  })
  return (await Promise.all(lines)).flat()
}

async function deploy(
  dir: DataDir,
  keys: Keys,
  provider: JsonRpcProvider,
  chainId: number,
  { addresses, threshold }: OracleSigners,
): Promise<Deployment> {
  const relayers = SEED_MARKETS.map(({ plan }) => keys.relayer(plan.marketId))
  await fundGas(
    provider,
    [keys.deployer, keys.faucet, ...relayers].map(({ address }) => address),
  )
  const signer = new NonceManager(new Wallet(keys.deployer.privateKey, provider))
  const contracts = await deployShared(signer)
  const traders: Record<string, Address> = {}
  for (const { plan } of SEED_MARKETS) {
    const spec: MarketSpec = { ...plan, chainId: BigInt(chainId), trader: NO_ADDRESS }
    traders[plan.marketId] = await deployMarket(signer, contracts, spec, {
      operators: [new Wallet(keys.relayer(plan.marketId).privateKey, provider)],
      oracleSigners: addresses,
      threshold,
    })
  }
  const deployment = { chain_id: chainId, contracts, traders }
  writePrivate(dir.deployment, deployment)
  return deployment
}

const APPROVED = 2n

/** Makes the keys of heartbeats and of adjustments operators of every market. A state of an earlier version lacks them. */
async function approveOperators(
  { deployer, heartbeat, adjust }: Keys,
  provider: JsonRpcProvider,
  { traders }: Deployment,
): Promise<void> {
  await fundGas(provider, [heartbeat.address, adjust.address])
  for (const address of Object.values(traders)) {
    const admin = IsolatedTrader__factory.connect(address, new Wallet(deployer.privateKey, provider))
    for (const operator of [heartbeat, adjust]) {
      if ((await admin.operatorStatus(operator.address)) === APPROVED) continue
      await (await admin.proposeOperator(operator.address)).wait()
      await (await admin.connect(new Wallet(operator.privateKey, provider)).acceptOperator()).wait()
    }
  }
}

/** The seeded markets with the addresses of their contracts. */
export const marketSpecs = ({ chain_id, traders }: Deployment): MarketSpec[] =>
  SEED_MARKETS.map(({ plan }) => {
    const trader = traders[plan.marketId]
    if (trader === undefined)
      throw new StackError(
        `deployment.json has no contract for ${plan.symbol}: delete this state with --fresh`,
      )
    return { ...plan, chainId: BigInt(chain_id), trader }
  })
