/** Tasks of whoever deploys an exchange: docs/deploy.md goes through them in order. */
import type { Signer } from 'ethers'
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'
import { checkDeployment, type Finding } from '../ignition/check.ts'
import type { Compiled } from '../ignition/code.ts'
import { contractOf, type Deployment, readDeployment, traderOf } from '../ignition/deployment.ts'
import { readParameters } from '../ignition/handover.ts'
import { marketModule } from '../ignition/market.ts'
import { readMarketFile } from '../ignition/market-file.ts'
import { ROLES, type Role } from '../stack/access.ts'
import type { ExchangeAccess } from '../typechain-types/ExchangeAccess.ts'
import { ExchangeAccess__factory } from '../typechain-types/factories/ExchangeAccess__factory.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../typechain-types/factories/MarginBank__factory.ts'

async function connect(hre: HardhatRuntimeEnvironment) {
  const connection = await hre.network.create()
  const [signer] = await connection.ethers.getSigners()
  if (signer === undefined) throw new Error('the network has no account: set its key (docs/deploy.md)')
  const { chainId } = await connection.ethers.provider.getNetwork()
  return { connection, signer, provider: connection.ethers.provider, chainId }
}

/** The module that the exchange was deployed with: it is resolved from the journal, never run again. */
async function exchangeModule(deployment: Deployment) {
  return 'TestUSDM' in deployment.contracts
    ? (await import('../ignition/modules/test-exchange.ts')).default
    : (await import('../ignition/modules/exchange.ts')).default
}

// ---------------------------------------------------------------------- markets

interface DeployMarketArguments {
  readonly market: string
  readonly deploymentId: string
  readonly parameters: string
}

export async function deployMarket(
  { market, deploymentId, parameters }: DeployMarketArguments,
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const { connection, chainId } = await connect(hre)
  const file = readMarketFile(market, chainId)
  const deployment = readDeployment(deploymentId)
  const { exchange } = readParameters(parameters)
  const module = marketModule(await exchangeModule(deployment), file, exchange.listingDelay === 0)
  const { trader } = await connection.ignition.deploy(module, { parameters, deploymentId, displayUi: true })
  console.log(`market ${file.spec.marketId} (${file.spec.symbol}): ${await trader.getAddress()}`)
  if (exchange.listingDelay > 0) {
    console.log(`announced; \`list-market\` in ${exchange.listingDelay} s`)
  }
  console.log(`operators accept with their own keys: \`accept-operator\` (${file.operators.join(', ')})`)
}

interface MarketArguments {
  readonly marketId: number
  readonly deploymentId: string
}

export async function listMarket(
  { marketId, deploymentId }: MarketArguments,
  hre: HardhatRuntimeEnvironment,
) {
  const { signer } = await connect(hre)
  const deployment = readDeployment(deploymentId)
  const access = ExchangeAccess__factory.connect(contractOf(deployment, 'ExchangeAccess'), signer)
  const bank = MarginBank__factory.connect(contractOf(deployment, 'MarginBank'), signer)
  const trader = traderOf(deployment, marketId)
  const data = bank.interface.encodeFunctionData('listMarket', [trader])
  const done = await callRestricted(access, signer, contractOf(deployment, 'MarginBank'), data)
  console.log(done ? `listed ${trader}` : 'run this again then')
}

export async function acceptOperator(
  { marketId, deploymentId }: MarketArguments,
  hre: HardhatRuntimeEnvironment,
) {
  const { signer } = await connect(hre)
  const trader = IsolatedTrader__factory.connect(traderOf(readDeployment(deploymentId), marketId), signer)
  await (await trader.acceptOperator()).wait()
  console.log(`${signer.address} operates market ${marketId}`)
}

// ---------------------------------------------------------------------- roles

/** Calls what needs a role: at once, or in two steps where the role acts with a delay. Returns whether it has been done. */
async function callRestricted(
  access: ExchangeAccess,
  signer: Signer,
  target: string,
  data: string,
): Promise<boolean> {
  const caller = await signer.getAddress()
  const [isImmediate, delay] = await access.canCall(caller, target, data.slice(0, 10))
  if (isImmediate) {
    await (await signer.sendTransaction({ to: target, data })).wait()
    return true
  }
  if (delay === 0n) throw new Error(`${caller} has no role that may call this`)
  const from = await access.getSchedule(await access.hashOperation(caller, target, data))
  const now = (await signer.provider?.getBlock('latest'))?.timestamp ?? 0
  if (from !== 0n && BigInt(now) >= from) {
    await (await access.execute(target, data)).wait()
    return true
  }
  if (from === 0n) await (await access.schedule(target, data, 0)).wait()
  const ready = from === 0n ? BigInt(now) + delay : from
  console.log(`scheduled: can be executed from ${new Date(Number(ready) * 1000).toISOString()} on`)
  return false
}

interface HandOverArguments {
  readonly deploymentId: string
  readonly parameters: string
}

/**
 * Each run does what can be done now: offers roles to their holders, gives the deployer's up where the holder has accepted, the
 * admin's last. Run it again until it says that all is handed over.
 */
export async function handOver(
  { deploymentId, parameters }: HandOverArguments,
  hre: HardhatRuntimeEnvironment,
) {
  const { signer } = await connect(hre)
  const { holders, exchange } = readParameters(parameters)
  const access = ExchangeAccess__factory.connect(
    contractOf(readDeployment(deploymentId), 'ExchangeAccess'),
    signer,
  )
  let waiting = 0
  for (const [role, id] of (Object.entries(ROLES) as [Role, bigint][]).reverse()) {
    const holder = holders[role]
    if (holder === signer.address) continue
    const [accepted] = await access.hasRole(id, holder)
    const [held] = await access.hasRole(id, signer.address)
    const isLast = role === 'admin' && waiting > 0
    if (accepted && held && !isLast) {
      await (await access.renounceRole(id, signer.address)).wait()
      console.log(`${role}: given up, ${holder} holds it`)
    } else if (accepted) {
      console.log(`${role}: ${holder} holds it${held ? '; kept until the others are handed over' : ''}`)
    } else {
      waiting += 1
      const delay = role === 'guardian' ? 0 : exchange.roleDelay
      await (await access.grantRole(id, holder, delay)).wait()
      console.log(`${role}: offered to ${holder}, who accepts with \`accept-role --role ${role}\``)
    }
  }
  console.log(waiting === 0 ? 'all is handed over' : 'run this again when they have accepted')
}

interface AcceptRoleArguments {
  readonly role: string
  readonly deploymentId: string
}

export async function acceptRole(
  { role, deploymentId }: AcceptRoleArguments,
  hre: HardhatRuntimeEnvironment,
) {
  const { signer } = await connect(hre)
  const id = ROLES[role as Role]
  if (id === undefined)
    throw new Error(`--role must be one of ${Object.keys(ROLES).join(', ')}; received ${role}`)
  const access = ExchangeAccess__factory.connect(
    contractOf(readDeployment(deploymentId), 'ExchangeAccess'),
    signer,
  )
  await (await access.acceptRole(id)).wait()
  console.log(`${signer.address} holds the role ${role}`)
}

// ---------------------------------------------------------------------- the check

interface CheckArguments {
  readonly deploymentId: string
  readonly parameters: string
  readonly markets: string
  readonly handedOver: boolean
}

export async function check(given: CheckArguments, hre: HardhatRuntimeEnvironment): Promise<void> {
  const { provider, chainId } = await connect(hre)
  const files = given.markets.split(',').filter((path) => path !== '')
  const findings = await checkDeployment({
    provider,
    deployment: readDeployment(given.deploymentId),
    parameters: readParameters(given.parameters),
    markets: files.map((path) => readMarketFile(path, chainId)),
    compiled: async (name) => (await hre.artifacts.readArtifact(name)) as unknown as Compiled,
    handedOver: given.handedOver,
  })
  for (const each of findings) console.log(line(each))
  const wrong = findings.filter(({ ok }) => !ok).length
  console.log(`\n${findings.length - wrong} as meant, ${wrong} not`)
  if (wrong > 0) process.exitCode = 1
}

const line = ({ what, expected, found, ok }: Finding): string =>
  ok ? `  ok    ${what}: ${found}` : `  WRONG ${what}: ${found}\n        expected ${expected}`
