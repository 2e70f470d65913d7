/** Tasks that bring a market to life: its deployer's, and those of everyone whose word it takes. */
import type { Signer } from 'ethers'
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'
import { checkTrader } from '../ignition/check.ts'
import type { Compiled } from '../ignition/code.ts'
import { contractOf, readDeployment, traderOf } from '../ignition/deployment.ts'
import { type NetworkParameters, readParameters } from '../ignition/handover.ts'
import { marketModule, type Reach } from '../ignition/market.ts'
import { type MarketCall, type MarketState, missingCalls } from '../ignition/market-calls.ts'
import { readMarketFile } from '../ignition/market-file.ts'
import { ROLES } from '../stack/access.ts'
import type { ExchangeAccess } from '../typechain-types/ExchangeAccess.ts'
import { ExchangeAccess__factory } from '../typechain-types/factories/ExchangeAccess__factory.ts'
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
  const reach = await reachOf(access, signer.address, parameters)
  const module = marketModule(deployment, file, reach)
  await connection.ignition.deploy(module, { deploymentId: given.deploymentId, displayUi: true })
  await report({ ...given, provider: connection.ethers.provider, file }, parameters)
}

/** The deployer of the exchange holds every role without delay until it is handed over; whoever comes later, none. */
async function reachOf(
  access: ExchangeAccess,
  deployer: string,
  { exchange }: NetworkParameters,
): Promise<Reach> {
  for (const role of ['admin', 'listing', 'parameters', 'treasury'] as const) {
    const [isMember, delay] = await access.hasRole(ROLES[role], deployer)
    if (!isMember || delay > 0n) return 'code'
  }
  return exchange.listingDelay === 0 ? 'listed' : 'announced'
}

// ---------------------------------------------------------------------- completing

interface CompleteMarketArguments extends MarketArguments {
  readonly send: boolean
}

/** Says what is missing until the market is live; with `send`, does first what the one who runs it may do. */
export async function completeMarket(
  given: CompleteMarketArguments,
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const { provider, signer, chainId } = await connect(hre)
  const file = readMarketFile(given.market, chainId)
  const parameters = readParameters(given.parameters)
  if (given.send) {
    await refuseAnother({ ...given, provider, file }, hre)
    await sendAll({ ...given, provider, file }, signer)
  }
  await report({ ...given, provider, file }, parameters)
}

type Asked = Omit<MarketState, 'deployment'> & Pick<MarketArguments, 'deploymentId'>

/** Whoever brings a market to life answers for what it is: anybody may have deployed it. */
async function refuseAnother({ provider, deploymentId, file }: Asked, hre: HardhatRuntimeEnvironment) {
  const deployment = readDeployment(deploymentId)
  if ((await missingCalls({ provider, deployment, file })).length === 0) return
  const compiled = async (name: string) => (await hre.artifacts.readArtifact(name)) as unknown as Compiled
  const wrong = (await checkTrader({ provider, deployment, compiled }, file)).find(({ ok }) => !ok)
  if (wrong === undefined) return
  throw new Error(`nothing was sent: ${wrong.what}: expected ${wrong.expected}, found ${wrong.found}`)
}

/** Each call that goes through may clear the way for the next. */
async function sendAll({ deploymentId, ...asked }: Asked, signer: Signer & { address: string }) {
  const deployment = readDeployment(deploymentId)
  const access = ExchangeAccess__factory.connect(contractOf(deployment, 'ExchangeAccess'), signer)
  const tried = new Set<string>()
  for (;;) {
    const calls = await missingCalls({ ...asked, deployment })
    const call = calls.find(({ what, after }) => after === null && !tried.has(what))
    if (call === undefined) return
    tried.add(call.what)
    if (await sendOne(access, signer, call)) console.log(`done: ${call.what}`)
  }
}

async function sendOne(access: ExchangeAccess, signer: Signer & { address: string }, call: MarketCall) {
  if (call.caller === null) {
    const outcome = await callRestricted(access, signer, call)
    if (outcome.kind === 'scheduled' && outcome.isNew) {
      console.log(`scheduled for ${timeOfSeconds(outcome.at)}: ${call.what}`)
    }
    return outcome.kind === 'done'
  }
  if (call.caller.toLowerCase() !== signer.address.toLowerCase()) return false
  await (await signer.sendTransaction({ to: call.target, data: call.data })).wait()
  return true
}

// ---------------------------------------------------------------------- what is missing

async function report({ deploymentId, ...asked }: Asked, { holders }: NetworkParameters): Promise<void> {
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
    'Each runs `complete-market --send` with his own key. Whoever acts with a delay may as well call',
  )
  console.log(
    `ExchangeAccess ${accessAddress}: schedule(target, data, 0), and after it execute(target, data).`,
  )
}

async function delayOf(access: ExchangeAccess, { by }: MarketCall, who: string): Promise<string> {
  if (by === 'operator') return ''
  const [isMember, delay] = await access.hasRole(ROLES[by], who)
  if (!isMember) return ' (has not taken the role up yet)'
  return delay === 0n ? ' (acts at once)' : ` (acts ${duration(Number(delay))} after scheduling)`
}

async function whenOf(access: ExchangeAccess, call: MarketCall, who: string): Promise<string> {
  const earliest = call.from === 0 ? 'now' : `from ${timeOfSeconds(call.from)}`
  if (call.by === 'operator') return earliest
  const at = Number(await access.getSchedule(await access.hashOperation(who, call.target, call.data)))
  return at === 0 ? earliest : `scheduled: execute from ${timeOfSeconds(Math.max(at, call.from))}`
}
