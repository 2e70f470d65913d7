/** Tasks that deploy a market and send the calls that make it live. */
import type { Signer } from 'ethers'
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'
import { compiledFrom } from '../ignition/build.ts'
import { type CheckInput, differenceOf } from '../ignition/check.ts'
import { contractOf, readDeployment, traderOf } from '../ignition/deployment.ts'
import { type NetworkParameters, readParameters } from '../ignition/handover.ts'
import { creationHashesOf } from '../ignition/journal.ts'
import { marketModule, type Reach } from '../ignition/market.ts'
import { type MarketCall, type MarketState, missingCalls } from '../ignition/market-calls.ts'
import { readMarketFile } from '../ignition/market-file.ts'
import { pinned } from '../ignition/pinned.ts'
import { ROLES } from '../stack/access.ts'
import type { ExchangeAccess } from '../typechain-types/ExchangeAccess.ts'
import { ExchangeAccess__factory } from '../typechain-types/factories/ExchangeAccess__factory.ts'
import { reasonOf } from './chain.ts'
import { connect } from './connection.ts'
import { duration, numbered, timeOfSeconds } from './print.ts'
import { callRestricted } from './restricted.ts'

interface MarketArguments {
  readonly market: string
  readonly deploymentId: string
  readonly parameters: string
}

// ---------------------------------------------------------------------- deploying

export async function deployMarket(given: MarketArguments, hre: HardhatRuntimeEnvironment): Promise<void> {
  const { connection, chainId, signer } = await connect(hre)
  const file = readMarketFile(given.market, chainId)
  const deployment = readDeployment(given.deploymentId)
  const parameters = readParameters(given.parameters)
  const access = ExchangeAccess__factory.connect(contractOf(deployment, 'ExchangeAccess'), signer)
  const reach = await reachOf(access, signer.address)
  const module = marketModule(deployment, file, reach)
  await connection.ignition.deploy(module, { deploymentId: given.deploymentId, displayUi: true })
  await report({ ...given, provider: connection.ethers.provider, file }, parameters)
}

/** The deployer of the exchange has every role without delay until the hand-over. A later deployer has no role. */
async function reachOf(access: ExchangeAccess, deployer: string): Promise<Reach> {
  for (const role of ['admin', 'listing', 'parameters', 'treasury'] as const) {
    const [isMember, delay] = await access.hasRole(ROLES[role], deployer)
    if (!isMember || delay > 0n) return 'code'
  }
  return 'announced'
}

// ---------------------------------------------------------------------- completing

interface CompleteMarketArguments extends MarketArguments {
  readonly send: boolean
}

/** Lists the calls that are missing until the market is live; with `send`, first sends those that the network's accounts may make. */
export async function completeMarket(
  given: CompleteMarketArguments,
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const { provider, signers, chainId } = await connect(hre)
  const file = readMarketFile(given.market, chainId)
  const parameters = readParameters(given.parameters)
  const query = { ...given, provider, file }
  const compiled = compiledFrom(hre.artifacts)
  const hasActed = given.send && (await sendAll(query, { signers, parameters, compiled }))
  await report(query, parameters)
  if (given.send && !hasActed) await requireOwnCall(query, signers)
}

type MarketQuery = Omit<MarketState, 'deployment'> & Pick<MarketArguments, 'deploymentId'>

type Account = Signer & { readonly address: string }

interface Sender {
  readonly signers: readonly Account[]
  readonly parameters: NetworkParameters
  readonly compiled: CheckInput['compiled']
}

/**
 * Sends calls until none is left that an account may make. Market and exchange are checked before each call, at the block at which it is missing.
 * A market that is live needs no call, and is not checked.
 */
async function sendAll({ deploymentId, ...asked }: MarketQuery, sender: Sender): Promise<boolean> {
  const deployment = readDeployment(deploymentId)
  const described = { deployment, creationHashes: creationHashesOf(deploymentId), ...sender }
  const tried = new Set<string>()
  const sent: string[] = []
  let hasActed = false
  for (;;) {
    const { provider, requireUnchanged } = await pinned(asked.provider)
    // Other code may answer a getter with anything: the check then has the reason.
    const calls = await missingCalls({ ...asked, provider, deployment }).catch((error: Error) => error)
    if (Array.isArray(calls) && calls.length === 0) return hasActed
    const difference = await differenceOf({ ...described, provider }, asked.file)
    if (difference !== null) throw new Error(`${stopped(sent)}: ${difference}`)
    if (calls instanceof Error) throw calls
    await requireUnchanged()
    const call = calls.find(({ what, after }) => after === null && !tried.has(what))
    if (call === undefined) return hasActed
    tried.add(call.what)
    for (const signer of sender.signers) {
      const access = ExchangeAccess__factory.connect(contractOf(deployment, 'ExchangeAccess'), signer)
      if (!(await isOwn(access, signer, call))) continue
      hasActed = true
      if (await sendOne(access, signer, call)) sent.push(call.what)
      break
    }
  }
}

const stopped = (sent: readonly string[]): string =>
  sent.length === 0 ? 'nothing was sent' : `nothing more was sent after ${sent.join('; ')}`

/** True if the account may make the call at once, or schedule it. */
async function isOwn(
  access: ExchangeAccess,
  { address }: Account,
  { caller, target, data }: MarketCall,
): Promise<boolean> {
  if (caller !== null) return caller.toLowerCase() === address.toLowerCase()
  const [isImmediate, delay] = await access.canCall(address, target, data.slice(0, 10))
  return isImmediate || delay > 0n
}

/** True if a transaction was mined for the call, which may be its announcement. */
async function sendOne(access: ExchangeAccess, signer: Account, call: MarketCall): Promise<boolean> {
  const { what, caller, target, data } = call
  try {
    if (caller === null) {
      const outcome = await callRestricted(access, signer, call)
      if (outcome.kind !== 'done') {
        const isNew = outcome.kind === 'scheduled' && outcome.isNew
        if (isNew) console.log(`scheduled for ${timeOfSeconds(outcome.at)}: ${what}`)
        return isNew
      }
    } else await (await signer.sendTransaction({ to: target, data })).wait()
  } catch (error) {
    throw new Error(`${what}: ${reasonOf(error)}`)
  }
  console.log(`done: ${what}`)
  return true
}

/** Throws if calls are missing and none is for these accounts: the caller has probably configured another key than intended. */
async function requireOwnCall(
  { deploymentId, ...asked }: MarketQuery,
  signers: readonly Account[],
): Promise<void> {
  const deployment = readDeployment(deploymentId)
  const calls = await missingCalls({ ...asked, deployment })
  const access = ExchangeAccess__factory.connect(contractOf(deployment, 'ExchangeAccess'), asked)
  for (const call of calls) for (const signer of signers) if (await isOwn(access, signer, call)) return
  if (calls.length === 0) return
  const accounts = signers.map(({ address }) => address).join(', ')
  const callers = [...new Set(calls.map(({ by, caller }) => `${by}${caller === null ? '' : ` ${caller}`}`))]
  throw new Error(
    `nothing was sent: ${accounts} has none of the ${calls.length} missing calls; they are for: ${callers.join(', ')}`,
  )
}

// ---------------------------------------------------------------------- missing calls

async function report(
  { deploymentId, ...asked }: MarketQuery,
  { holders }: NetworkParameters,
): Promise<void> {
  const deployment = readDeployment(deploymentId)
  const { marketId, symbol } = asked.file.spec
  const accessAddress = contractOf(deployment, 'ExchangeAccess')
  const access = ExchangeAccess__factory.connect(accessAddress, asked)
  const calls = await missingCalls({ ...asked, deployment })
  const title = `market ${marketId} (${symbol}) ${traderOf(deployment, marketId)}`
  const count = `${calls.length} more call${calls.length === 1 ? '' : 's'}`
  console.log(calls.length === 0 ? `${title} is live` : `${title} is live after ${count}:`)
  for (const [index, call] of calls.entries()) {
    const who = call.by === 'operator' ? call.caller : holders[call.by]
    const when = call.after === null ? await whenOf(access, call, who ?? '') : `when ${call.after}`
    const by = `${call.by} ${who}${await delayOf(access, call, who ?? '')}`
    numbered(index + 1, call.what, { by, target: call.target, data: call.data, when })
  }
  if (calls.length === 0) return
  console.log(
    'Each caller runs `complete-market --send` with its own key. A caller with a delay can also call',
  )
  console.log(
    `ExchangeAccess ${accessAddress}: schedule(target, data, 0), and execute(target, data) after the delay.`,
  )
}

async function delayOf(access: ExchangeAccess, { by }: MarketCall, who: string): Promise<string> {
  if (by === 'operator') return ''
  const [isMember, delay] = await access.hasRole(ROLES[by], who)
  if (!isMember) return ' (has not accepted the role yet)'
  return delay === 0n ? ' (acts at once)' : ` (acts ${duration(Number(delay))} after scheduling)`
}

async function whenOf(access: ExchangeAccess, call: MarketCall, who: string): Promise<string> {
  const earliest = call.from === 0 ? 'now' : `from ${timeOfSeconds(call.from)}`
  if (call.by === 'operator') return earliest
  const at = Number(await access.getSchedule(await access.hashOperation(who, call.target, call.data)))
  return at === 0 ? earliest : `scheduled: execute from ${timeOfSeconds(Math.max(at, call.from))}`
}
