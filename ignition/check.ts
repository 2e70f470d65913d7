/** The post-deployment check: compares code, parameters, markets and roles on chain with the configuration. */
import { type Block, type Provider, TypedDataEncoder, ZeroAddress } from 'ethers'
import { FUNCTIONS, type Restricted, ROLES, type Role } from '../stack/access.ts'
import { feedsOf, gridOf, parametersOf } from '../stack/deploy.ts'
import { AccountManager__factory } from '../typechain-types/factories/AccountManager__factory.ts'
import { Backstop__factory } from '../typechain-types/factories/Backstop__factory.ts'
import { ExchangeAccess__factory } from '../typechain-types/factories/ExchangeAccess__factory.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../typechain-types/factories/MarginBank__factory.ts'
import { PauseLatch__factory } from '../typechain-types/factories/PauseLatch__factory.ts'
import { SignedPriceOracle__factory } from '../typechain-types/factories/SignedPriceOracle__factory.ts'
import type { IsolatedTrader } from '../typechain-types/IsolatedTrader.ts'
import { backdoorsIn } from './backdoors.ts'
import { type CodeInput, checkContract, checkExchangeCode } from './check-code.ts'
import type { Compiled } from './code.ts'
import { type CreationHashes, type Creations, creationsOf, firstBlockOf } from './creations.ts'
import { contractOf, type Deployment, traderOf } from './deployment.ts'
import { type Finding, finding, text } from './finding.ts'
import type { NetworkParameters } from './handover.ts'
import { type History, historyOf } from './history.ts'
import { latchOf } from './immutables.ts'
import type { MarketFile } from './market-file.ts'
import { selectorsOf } from './selectors.ts'

/** Value of `OperatorStatus`: none, proposed, approved. */
const APPROVED = 2n

/** A time in milliseconds far enough ahead that `feedAt` returns the scheduled signers of a feed. */
const LATER = 2n ** 47n

export interface CheckInput {
  readonly provider: Provider
  readonly deployment: Deployment
  readonly parameters: NetworkParameters
  readonly markets: readonly MarketFile[]
  /** Transactions that created the contracts, from the deployment's journal. */
  readonly creationHashes: CreationHashes
  /** Compiled contracts by name. */
  readonly compiled: (name: string) => Promise<Compiled>
  /** True if the deployer must have renounced all roles, and every role must be with its holder. */
  readonly handedOver: boolean
}

/** The part of the input that concerns code, and the creations that the journal names. */
async function codeInputOf(input: Omit<CheckInput, 'handedOver' | 'markets'>): Promise<CodeInput> {
  const { provider, deployment, parameters, compiled } = input
  const addresses = [...Object.values(deployment.contracts), ...deployment.markets.values()]
  return {
    provider,
    deployment,
    exchange: parameters.exchange,
    chainId: (await provider.getNetwork()).chainId,
    creations: await creationsOf(provider, addresses, input.creationHashes),
    compiled,
  }
}

export async function checkDeployment(input: CheckInput): Promise<readonly Finding[]> {
  const { provider } = input
  const head = await provider.getBlock('latest')
  if (head === null) throw new Error('the node has no latest block')
  const code = await codeInputOf(input)
  const findings = [...(await checkExchangeCode(code)), ...(await checkMarketCode(input, code))]
  try {
    return [...findings, ...(await checkState(input, code, head))]
  } catch (error) {
    // A getter of unknown code can return anything, so a failed code check explains the error.
    if (findings.every(({ ok }) => ok)) throw error
    return [...findings, finding('state of the contracts', 'readable', (error as Error).message)]
  }
}

async function checkState(input: CheckInput, { creations }: CodeInput, head: Block): Promise<Finding[]> {
  const findings = [...(await checkShared(input)), ...(await checkFunctions(input))]
  for (const file of input.markets) findings.push(...(await checkTerms(input, file)))
  return [...findings, ...(await checkReplayed(input, creations, head))]
}

/** Checks that replay the events since deployment, which are complete only from the deployment's first block. */
async function checkReplayed(input: CheckInput, creations: Creations, head: Block): Promise<Finding[]> {
  const from = firstBlockOf(creations)
  if (from === null) return [finding('history: first block of the deployment', 'known', 'unknown')]
  const history = await historyOf(input.provider, input.deployment, from, head.number)
  const findings = [
    ...(await checkMembers(input, history)),
    ...(await checkHistory(input, history, creations, head)),
  ]
  for (const file of input.markets) findings.push(...(await checkMarket(input, file, history)))
  return findings
}

// ---------------------------------------------------------------------- code

/** Before the hand-over, markets may lack a description. */
async function checkMarketCode({ deployment, markets }: CheckInput, code: CodeInput): Promise<Finding[]> {
  const files = new Map<number, MarketFile>(markets.map((file) => [file.spec.marketId, file]))
  const findings: Finding[] = []
  for (const [marketId, address] of deployment.markets)
    findings.push(...(await checkContract(code, 'IsolatedTrader', address, files.get(marketId))))
  return findings
}

// ---------------------------------------------------------------------- contracts shared by all markets

async function checkShared(input: CheckInput): Promise<Finding[]> {
  const { provider, deployment, parameters } = input
  const at = (name: string): string => contractOf(deployment, name)
  const { roleDelay, listingDelay, oracleNotice, treasury } = parameters.exchange
  const access = ExchangeAccess__factory.connect(at('ExchangeAccess'), { provider })
  const bank = MarginBank__factory.connect(at('MarginBank'), { provider })
  const oracle = SignedPriceOracle__factory.connect(at('SignedPriceOracle'), { provider })
  const backstop = Backstop__factory.connect(at('Backstop'), { provider })
  const keys = AccountManager__factory.connect(at('AccountManager'), { provider })
  return [
    ...(await checkLatch(input)),
    finding('minimum delay of roles, s', roleDelay, await access.minimumDelay()),
    finding('bank: token', parameters.exchange.usdm ?? at('TestUSDM'), await bank.token()),
    finding('bank: authority', at('ExchangeAccess'), await bank.authority()),
    finding('bank: treasury', treasury, await bank.treasury()),
    finding('bank: listing delay, s', listingDelay, await bank.listingDelay()),
    finding('oracle: authority', at('ExchangeAccess'), await oracle.authority()),
    finding('oracle: notice, s', oracleNotice, await oracle.notice()),
    finding('backstop: authority', at('ExchangeAccess'), await backstop.authority()),
    finding('backstop: bank', at('MarginBank'), await backstop.bank()),
    finding('backstop: session keys', at('AccountManager'), await backstop.accountManager()),
    finding('session keys: forwarder', true, await keys.isTrustedForwarder(at('Forwarder'))),
  ]
}

/** The latch must hold the wei while no pause is active: a pause needs it, and payments cost more while the bank has it. */
async function checkLatch({ provider, deployment }: CheckInput): Promise<Finding[]> {
  const address = contractOf(deployment, 'MarginBank')
  const bank = MarginBank__factory.connect(address, { provider })
  const latch = latchOf(address)
  const findings = [
    finding('bank: latch', latch, await bank.pauseLatch()),
    finding('latch: bank', address, await PauseLatch__factory.connect(latch, { provider }).bank()),
  ]
  if (await bank.isPaused()) return findings
  return [
    ...findings,
    finding('latch: has a balance', true, (await provider.getBalance(latch)) > 0n),
    finding('bank: ether, none while it is not paused (restoreLatch)', 0, await provider.getBalance(address)),
  ]
}

// ---------------------------------------------------------------------- roles

async function checkFunctions({ provider, deployment }: CheckInput): Promise<Finding[]> {
  const access = ExchangeAccess__factory.connect(contractOf(deployment, 'ExchangeAccess'), { provider })
  const targets: [Restricted, string][] = [
    ...(['MarginBank', 'SignedPriceOracle', 'Backstop'] as const).map((name): [Restricted, string] => [
      name,
      contractOf(deployment, name),
    ]),
    ...[...deployment.markets.values()].map((address): [Restricted, string] => ['IsolatedTrader', address]),
  ]
  const findings: Finding[] = []
  for (const [name, target] of targets) {
    findings.push(finding(`${name} ${target}: open`, true, !(await access.isTargetClosed(target))))
    for (const [role, functions] of Object.entries(FUNCTIONS[name])) {
      for (const [index, selector] of selectorsOf(name, functions).entries()) {
        const found = await access.getTargetFunctionRole(target, selector)
        findings.push(finding(`${name}.${functions[index]} ${target}: role`, ROLES[role as Role], found))
      }
    }
  }
  return findings
}

/** Every account that ever accepted a role and still has it must be a configured holder. */
async function checkMembers(input: CheckInput, { standing }: History): Promise<Finding[]> {
  const { provider, deployment, parameters, handedOver } = input
  const access = ExchangeAccess__factory.connect(contractOf(deployment, 'ExchangeAccess'), { provider })
  const granted = standing.filter(({ event }) => event === 'RoleGranted')
  const findings: Finding[] = []
  for (const [role, id] of Object.entries(ROLES) as [Role, bigint][]) {
    const accounts = new Set(granted.filter((log) => log.args.roleId === id).map((log) => log.args.account))
    const members: string[] = []
    for (const account of accounts) {
      const [isMember, delay] = await access.hasRole(id, account)
      if (!isMember) continue
      members.push(account)
      if (!handedOver) continue
      const least = role === 'guardian' ? 0 : Math.max(Number(delay), parameters.exchange.roleDelay)
      findings.push(finding(`${role} ${account}: delay, s`, least, delay))
    }
    const holder = parameters.holders[role]
    if (handedOver) findings.push(finding(`${role}: held by`, holder, members))
    else findings.push(finding(`${role}: has a member`, true, members.length > 0))
  }
  return findings
}

/** The constructor of ExchangeAccess emits the first event. */
function hashOf(creations: Creations, deployment: Deployment): string {
  const creation = creations.get(text(contractOf(deployment, 'ExchangeAccess'))) ?? 'unknown'
  return typeof creation === 'string' ? creation : creation.hash
}

/** The history must be complete and contain only changes that the description lists. */
async function checkHistory(
  input: CheckInput,
  { standing, first }: History,
  creations: Creations,
  head: Block,
): Promise<Finding[]> {
  const { provider, deployment } = input
  const access = ExchangeAccess__factory.connect(contractOf(deployment, 'ExchangeAccess'), { provider })
  const now = BigInt(head.timestamp)
  const admins = standing.filter(({ event, args }) => event === 'RoleGranted' && args.roleId === ROLES.admin)
  const active: string[] = []
  for (const { args } of admins)
    if ((await access.hasRole(ROLES.admin, args.account))[0]) active.push(args.account)
  const backdoors = backdoorsIn(standing, { ...input, deployer: first?.account ?? null, now })
  return [
    finding('history: transaction of the first event', hashOf(creations, deployment), first?.transaction),
    finding('history: active admins', await access.adminCount(), active.length),
    finding('history: events that the description does not mention', 0, backdoors.length),
    ...backdoors.map(({ what, expected, found }) => ({ what, expected, found, ok: false })),
  ]
}

// ---------------------------------------------------------------------- a market

/**
 * Difference of the market, or of the exchange's code, from its description, in one line, or null. Any account can deploy a market: a
 * market that differs must not be announced or listed.
 */
export async function differenceOf(
  input: Omit<CheckInput, 'handedOver' | 'markets'>,
  file: MarketFile,
): Promise<string | null> {
  const code = await codeInputOf(input)
  const trader = traderOf(input.deployment, file.spec.marketId)
  const ofCode = [
    ...(await checkContract(code, 'IsolatedTrader', trader, file)),
    ...(await checkExchangeCode(code)),
  ]
  const ofTerms = await checkTermsAndOperators(input, file).catch((error: unknown): Finding[] => {
    // Other code may answer a getter with anything.
    if (ofCode.every(({ ok }) => ok)) throw error
    return []
  })
  const wrong = [...ofTerms, ...ofCode].find(({ ok }) => !ok)
  return wrong === undefined ? null : `${wrong.what}: expected ${wrong.expected}, found ${wrong.found}`
}

/** An operator can settle batches from the listing on. The number of operators reveals unknown operators without the history of the market. */
async function checkTermsAndOperators(
  input: Pick<CheckInput, 'provider' | 'deployment'>,
  file: MarketFile,
): Promise<Finding[]> {
  const { provider, deployment } = input
  const { marketId } = file.spec
  const trader = IsolatedTrader__factory.connect(traderOf(deployment, marketId), { provider })
  const [, count] = await trader.readiness()
  const statuses = await Promise.all(file.operators.map((each) => trader.operatorStatus(each)))
  const described = BigInt(statuses.filter((status) => status === APPROVED).length)
  return [
    ...(await checkTerms(input, file)),
    finding(`market ${marketId}: operators that the description does not list`, 0, count - described),
  ]
}

/** Terms that the market's getters return. They are trustworthy only if the code check passed. */
async function checkTerms(
  { provider, deployment }: Pick<CheckInput, 'provider' | 'deployment'>,
  { spec, reports }: MarketFile,
): Promise<Finding[]> {
  const address = traderOf(deployment, spec.marketId)
  const at = (name: string): string => contractOf(deployment, name)
  const name = `market ${spec.marketId}`
  const trader = IsolatedTrader__factory.connect(address, { provider })
  const domain = { name: 'IsolatedTrader', version: '2.0', chainId: spec.chainId, verifyingContract: address }
  return [
    finding(`${name}: extension`, at('MarketExtension'), await trader.extension()),
    finding(`${name}: domain separator`, TypedDataEncoder.hashDomain(domain), await trader.domainSeparator()),
    finding(`${name}: grid`, Object.values(gridOf(spec)), [...(await trader.grid())]),
    ...(await checkEnding(trader, name, spec)),
    finding(`${name}: parameters`, Object.values(parametersOf(spec, reports)), [
      ...(await trader.parameters()),
    ]),
    finding(`${name}: authority`, at('ExchangeAccess'), await trader.authority()),
    finding(`${name}: bank`, at('MarginBank'), await trader.bank()),
    finding(`${name}: session keys`, at('AccountManager'), await trader.accountManager()),
    finding(`${name}: oracle`, at('SignedPriceOracle'), await trader.oracle()),
    finding(`${name}: forwarder`, true, await trader.isTrustedForwarder(at('Forwarder'))),
  ]
}

async function checkMarket(input: CheckInput, file: MarketFile, history: History): Promise<Finding[]> {
  const { provider, deployment } = input
  const { spec, oracle: feeds } = file
  const address = traderOf(deployment, spec.marketId)
  const at = (name: string): string => contractOf(deployment, name)
  const name = `market ${spec.marketId}`
  const trader = IsolatedTrader__factory.connect(address, { provider })
  const bank = MarginBank__factory.connect(at('MarginBank'), { provider })
  const oracle = SignedPriceOracle__factory.connect(at('SignedPriceOracle'), { provider })
  const findings = [finding(`${name}: listed`, true, (await bank.market(address)).openFrom > 0n)]
  const latest = await provider.getBlock('latest')
  for (const feed of feedsOf(spec)) {
    for (const [when, at] of [
      ['', BigInt(latest?.timestamp ?? 0) * 1000n],
      ['scheduled ', LATER],
    ] as const) {
      const [signers, threshold] = await oracle.feedAt(feed, at)
      findings.push(finding(`${name}: ${when}signers of feed ${feed}`, feeds.signers, [...signers]))
      findings.push(finding(`${name}: ${when}threshold of feed ${feed}`, feeds.threshold, threshold))
    }
  }
  const risk = await trader.riskTerms()
  const backstop = file.backstopCap > 0n ? at('Backstop') : ZeroAddress
  findings.push(
    finding(`${name}: backstop and cap`, [backstop, file.backstopCap], [risk.backstop, risk.backstopCap]),
  )
  const operators = history.standing
    .filter((each) => each.event === 'OperatorChanged' && text(each.address) === text(address))
    .filter(({ args }) => args.status === APPROVED)
    .map(({ args }) => text(args.operator))
  return [
    ...findings,
    finding(`${name}: operators`, [...file.operators].sort(), operators.sort()),
    finding(`${name}: number of operators`, operators.length, (await trader.readiness())[1]),
    ...(await checkPending(trader, name)),
  ]
}

/** Expiry and window are as listed. The parameters role can extend both, and the market may have ended. */
async function checkEnding(
  trader: IsolatedTrader,
  name: string,
  { expiresAt, disputeWindow }: MarketFile['spec'],
): Promise<Finding[]> {
  const [ending, windDown] = [await trader.ending(), await trader.windDown()]
  return [
    finding(`${name}: expiry in force, ms`, expiresAt, ending.expiresAt),
    finding(`${name}: dispute window in force, ms`, disputeWindow, ending.disputeWindow),
    finding(`${name}: time of its end, ms`, 0, windDown.endedAt),
  ]
}

/** Changes of parameters and modes are announced on chain, and take effect without another call. */
async function checkPending(trader: IsolatedTrader, name: string): Promise<Finding[]> {
  const { parametersFrom, modeFrom, restrictionFrom } = await trader.pendingChange()
  return [
    finding(`${name}: time of scheduled parameters`, 0, parametersFrom),
    finding(`${name}: time of a scheduled mode`, 0, modeFrom),
    finding(`${name}: time of a restriction`, 0, restrictionFrom),
  ]
}
