/** Tasks for the deployer of an exchange, in the order of docs/deploy.md. */
import { type EIP1193Provider, trackTransaction } from '@nomicfoundation/ignition-core'
import type { Provider } from 'ethers'
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'
import { compiledFrom } from '../ignition/build.ts'
import { checkDeployment } from '../ignition/check.ts'
import { contractOf, folderOf, readDeployment } from '../ignition/deployment.ts'
import type { Finding } from '../ignition/finding.ts'
import { readParameters } from '../ignition/handover.ts'
import { creationHashesOf, minedBy, noteMined, noteWiped, type Open, openIn } from '../ignition/journal.ts'
import { readMarketFile } from '../ignition/market-file.ts'
import { ROLES, type Role } from '../stack/access.ts'
import { ExchangeAccess__factory } from '../typechain-types/factories/ExchangeAccess__factory.ts'
import { connect } from './connection.ts'

// ---------------------------------------------------------------------- after an interruption

/** Updates the journal of an interrupted deployment from the chain, so that the same command can resume. */
export async function recoverDeployment(
  { deploymentId }: { readonly deploymentId: string },
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const { connection, provider } = await connect(hre)
  await noteSent(deploymentId, connection.provider, provider)
  let noted = 0
  for (const open of openIn(deploymentId)) {
    if (open.isConfirmed) continue
    if (open.hash === null) {
      await refusePending(provider, open)
      noteWiped(deploymentId, open)
      console.log(`${open.future}: started, no transaction sent; will start again`)
      noted++
      continue
    }
    const receipt = await provider.getTransactionReceipt(open.hash)
    if (receipt === null) continue
    noteMined(deploymentId, open, receipt)
    console.log(`${open.future}: sent and mined in block ${receipt.blockNumber}`)
    noted++
  }
  console.log(`${noted} journal entries written: run the interrupted command again`)
}

/** Throws while a node has a pending transaction with the nonce. After that the nonce is reused: at most one transaction is mined. */
async function refusePending(provider: Provider, { future, sender, nonce }: Open): Promise<void> {
  if (nonce === null || (await provider.getTransactionCount(sender, 'pending')) <= nonce) return
  throw new Error(`${future}: nonce ${nonce} of ${sender} is pending; run this again when it is mined`)
}

/** Records mined transactions of nonces without a hash: the process was killed between sending and recording them. */
async function noteSent(deploymentId: string, raw: EIP1193Provider, provider: Provider): Promise<void> {
  const unnoted = openIn(deploymentId).filter(({ nonce, hash }) => nonce !== null && hash === null)
  for (const [sender, each] of Map.groupBy(unnoted, ({ sender }) => sender)) {
    const nonces = each.map(({ nonce }) => nonce as number)
    const mined = await minedBy(provider, sender, nonces)
    // Ignition checks that the transaction is the prepared one.
    for (const hash of mined.values()) await trackTransaction(folderOf(deploymentId), hash, raw, 1)
  }
}

// ---------------------------------------------------------------------- roles

interface HandOverArguments {
  readonly deploymentId: string
  readonly parameters: string
}

/**
 * Each run offers roles to their holders and renounces the deployer's role if the holder has accepted, the admin role last.
 * Run it again until it prints that all is handed over.
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
      console.log(`${role}: renounced by the deployer, held by ${holder}`)
    } else if (accepted) {
      const kept = held ? '; the deployer keeps it until the other roles are handed over' : ''
      console.log(`${role}: held by ${holder}${kept}`)
    } else {
      waiting += 1
      const delay = role === 'guardian' ? 0 : exchange.roleDelay
      await (await access.grantRole(id, holder, delay)).wait()
      console.log(`${role}: offered to ${holder}; the holder accepts with \`accept-role --role ${role}\``)
    }
  }
  console.log(waiting === 0 ? 'all is handed over' : 'run this again when the holders have accepted')
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
  console.log(`${signer.address} has the role ${role}`)
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
    creationHashes: creationHashesOf(given.deploymentId),
    compiled: compiledFrom(hre.artifacts),
    handedOver: given.handedOver,
  })
  for (const each of findings) console.log(line(each))
  const wrong = findings.filter(({ ok }) => !ok).length
  console.log(`\n${findings.length - wrong} as meant, ${wrong} not`)
  if (wrong > 0) process.exitCode = 1
}

const line = ({ what, expected, found, ok }: Finding): string =>
  ok ? `  ok    ${what}: ${found}` : `  WRONG ${what}: ${found}\n        expected ${expected}`
