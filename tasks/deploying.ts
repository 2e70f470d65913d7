/** Tasks for the deployer of an exchange, in the order of docs/deploy/README.md. */
import { type EIP1193Provider, trackTransaction } from '@nomicfoundation/ignition-core'
import type { Provider } from 'ethers'
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'
import { compiledFrom } from '../ignition/build.ts'
import { checkDeployment } from '../ignition/check.ts'
import { folderOf, readDeployment } from '../ignition/deployment.ts'
import type { Finding } from '../ignition/finding.ts'
import { readParameters } from '../ignition/handover.ts'
import { creationHashesOf, minedBy, noteMined, noteWiped, type Open, openIn } from '../ignition/journal.ts'
import { readMarketFile } from '../ignition/market-file.ts'
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
