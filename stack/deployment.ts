/** The contracts of the local stack: deployed at the first start, found again at every other. */
import { type JsonRpcProvider, NonceManager, Wallet } from 'ethers'
import type { MarketSpec } from '../domain/market/market.ts'
import type { Address } from '../domain/units.ts'
import { giveGas } from './accounts.ts'
import { type DataDir, readJson, writePrivate } from './data-dir.ts'
import { deployMarket, deployShared, type SharedContracts } from './deploy.ts'
import type { Keys } from './keys.ts'
import { StackError } from './options.ts'
import { SEED_MARKETS } from './seed-markets.ts'

export interface Deployment {
  readonly chain_id: number
  readonly contracts: SharedContracts
  /** Trader by market id. */
  readonly traders: Readonly<Record<string, Address>>
}

const NOBODY = `0x${'0'.repeat(40)}` as Address

export async function ensureDeployment(
  dir: DataDir,
  keys: Keys,
  provider: JsonRpcProvider,
  chainId: number,
): Promise<Deployment> {
  const kept = readJson<Deployment>(dir.deployment)
  if (kept === null) return deploy(dir, keys, provider, chainId)
  if ((await provider.getCode(kept.contracts.marginBank)) !== '0x') return kept
  throw new StackError(
    `the chain kept in ${dir.chainState} is older than the exchange's contracts (the stack was killed before the chain was ` +
      'saved for the first time): start again with --fresh',
  )
}

async function deploy(
  dir: DataDir,
  keys: Keys,
  provider: JsonRpcProvider,
  chainId: number,
): Promise<Deployment> {
  const lanes = SEED_MARKETS.map(({ plan }) => keys.lane(plan.marketId))
  await giveGas(
    provider,
    [keys.deployer, keys.faucet, ...lanes].map(({ address }) => address),
  )
  const signer = new NonceManager(new Wallet(keys.deployer.privateKey, provider))
  const contracts = await deployShared(signer)
  const traders: Record<string, Address> = {}
  for (const { plan } of SEED_MARKETS) {
    const spec: MarketSpec = { ...plan, chainId: BigInt(chainId), trader: NOBODY }
    traders[plan.marketId] = await deployMarket(signer, contracts, spec, {
      operators: [new Wallet(keys.lane(plan.marketId).privateKey, provider)],
      oracleSigners: [keys.oracle.address as Address],
    })
  }
  const deployment = { chain_id: chainId, contracts, traders }
  writePrivate(dir.deployment, deployment)
  return deployment
}

/** The seeded markets with the contracts that they were given. */
export const marketSpecs = ({ chain_id, traders }: Deployment): MarketSpec[] =>
  SEED_MARKETS.map(({ plan }) => {
    const trader = traders[plan.marketId]
    if (trader === undefined)
      throw new StackError(`no contract was deployed for ${plan.symbol}: start with --fresh`)
    return { ...plan, chainId: BigInt(chain_id), trader }
  })
