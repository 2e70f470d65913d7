/** The post-deployment check: compares code, parameters, markets and roles on chain with the configuration. */
import { type Block, type Provider, TypedDataEncoder, ZeroAddress, zeroPadValue } from 'ethers'
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
import { type Compiled, codeDifference, immutablesOf } from './code.ts'
import { contractOf, type Deployment, traderOf } from './deployment.ts'
import type { NetworkParameters } from './handover.ts'
import { type History, historyOf } from './history.ts'
import { firstBlockOf } from './journal.ts'
import type { MarketFile } from './market-file.ts'
import { selectorsOf } from './selectors.ts'

/** Value of `OperatorStatus`: none, proposed, approved. */
const APPROVED = 2n

/** A time in milliseconds far enough ahead that `feedAt` returns the scheduled signers of a feed. */
const LATER = 2n ** 47n

/** One compared value. */
export interface Finding {
  readonly what: string
  readonly expected: string
  readonly found: string
  readonly ok: boolean
}

export interface CheckInput {
  readonly provider: Provider
  readonly deployment: Deployment
  readonly parameters: NetworkParameters
  readonly markets: readonly MarketFile[]
  /** Compiled contracts by name. */
  readonly compiled: (name: string) => Promise<Compiled>
  /** True if the deployer must have renounced all roles, and every role must be with its holder. */
  readonly handedOver: boolean
}

const text = (value: unknown): string =>
  Array.isArray(value) ? value.map(text).join(' ') : String(value).toLowerCase()

const finding = (what: string, expected: unknown, found: unknown): Finding => ({
  what,
  expected: text(expected),
  found: text(found),
  ok: text(expected) === text(found),
})

export async function checkDeployment(input: CheckInput): Promise<readonly Finding[]> {
  const { provider, deployment } = input
  const head = await provider.getBlock('latest')
  if (head === null) throw new Error('the node has no latest block')
  const history = await historyOf(provider, deployment, firstBlockOf(deployment.id), head.number)
  const findings = [
    ...(await checkCode(input)),
    ...(await checkShared(input)),
    ...(await checkFunctions(input)),
    ...(await checkMembers(input, history)),
    ...(await checkHistory(input, history, head)),
  ]
  for (const file of input.markets) findings.push(...(await checkMarket(input, file, history)))
  return findings
}

// ---------------------------------------------------------------------- code

/** Code of the exchange's contracts and of markets without a description; `checkTrader` checks the others. */
async function checkCode({ provider, deployment, compiled, markets }: CheckInput): Promise<Finding[]> {
  const described = new Set<number>(markets.map(({ spec }) => spec.marketId))
  const others = [...deployment.markets].filter(([marketId]) => !described.has(marketId))
  const addresses: [string, string][] = [
    ...Object.entries(deployment.contracts),
    ...others.map(([, address]): [string, string] => ['IsolatedTrader', address]),
  ]
  const findings: Finding[] = []
  for (const [name, address] of addresses) {
    const difference = await codeDifference(provider, address, await compiled(name), deployment.contracts)
    findings.push(finding(`code of ${name} ${address}`, 'as compiled', difference ?? 'as compiled'))
  }
  return findings
}

// ---------------------------------------------------------------------- what all markets share

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
async function checkLatch({ provider, deployment, compiled }: CheckInput): Promise<Finding[]> {
  const address = contractOf(deployment, 'MarginBank')
  const bank = MarginBank__factory.connect(address, { provider })
  const latch = await bank.pauseLatch()
  const difference = await codeDifference(provider, latch, await compiled('PauseLatch'), {})
  const findings = [
    finding(`code of PauseLatch ${latch}`, 'as compiled', difference ?? 'as compiled'),
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

/** Nothing may stand in the history that the description does not mention, and the history must be complete. */
async function checkHistory(
  input: CheckInput,
  { standing, deployer }: History,
  head: Block,
): Promise<Finding[]> {
  const { provider, deployment } = input
  const access = ExchangeAccess__factory.connect(contractOf(deployment, 'ExchangeAccess'), { provider })
  const now = BigInt(head.timestamp)
  const admins = standing.filter(({ event, args }) => event === 'RoleGranted' && args.roleId === ROLES.admin)
  const active: string[] = []
  for (const { args } of admins)
    if ((await access.hasRole(ROLES.admin, args.account))[0]) active.push(args.account)
  const backdoors = backdoorsIn(standing, { ...input, deployer, now })
  return [
    finding('history: the node returned the first event', true, deployer !== null),
    finding('history: active admins', await access.adminCount(), active.length),
    finding('history: events that the description does not mention', 0, backdoors.length),
    ...backdoors.map(({ what, expected, found }) => ({ what, expected, found, ok: false })),
  ]
}

// ---------------------------------------------------------------------- a market

/** Code and constructor arguments of a market. A market that differs from its description must not be announced or listed. */
export async function checkTrader(
  { provider, deployment, compiled }: Pick<CheckInput, 'provider' | 'deployment' | 'compiled'>,
  { spec, reports }: MarketFile,
): Promise<Finding[]> {
  const address = traderOf(deployment, spec.marketId)
  const at = (name: string): string => contractOf(deployment, name)
  const name = `market ${spec.marketId}`
  const trader = IsolatedTrader__factory.connect(address, { provider })
  const domain = { name: 'IsolatedTrader', version: '2.0', chainId: spec.chainId, verifyingContract: address }
  const build = await compiled('IsolatedTrader')
  const words = await immutablesOf(provider, address, build)
  const difference = await codeDifference(provider, address, build, deployment.contracts)
  return [
    finding(`${name}: code at ${address}`, 'as compiled', difference ?? 'as compiled'),
    finding(`${name}: domain separator`, TypedDataEncoder.hashDomain(domain), await trader.domainSeparator()),
    finding(`${name}: grid`, Object.values(gridOf(spec)), [...(await trader.grid())]),
    finding(`${name}: parameters`, Object.values(parametersOf(spec, reports)), [
      ...(await trader.parameters()),
    ]),
    finding(`${name}: authority`, at('ExchangeAccess'), await trader.authority()),
    finding(`${name}: bank`, at('MarginBank'), await trader.bank()),
    finding(`${name}: session keys`, at('AccountManager'), await trader.accountManager()),
    finding(`${name}: oracle`, at('SignedPriceOracle'), await trader.oracle()),
    finding(
      `${name}: delegates to the extension`,
      true,
      words.has(zeroPadValue(at('MarketExtension').toLowerCase(), 32)),
    ),
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
  const findings = [
    ...(await checkTrader(input, file)),
    finding(`${name}: listed`, true, (await bank.market(address)).openFrom > 0n),
  ]
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

/** Changes of parameters and modes are announced on chain, and take effect without another call. */
async function checkPending(trader: IsolatedTrader, name: string): Promise<Finding[]> {
  const { parametersFrom, modeFrom, restrictionFrom } = await trader.pendingChange()
  return [
    finding(`${name}: time of scheduled parameters`, 0, parametersFrom),
    finding(`${name}: time of a scheduled mode`, 0, modeFrom),
    finding(`${name}: time of a restriction`, 0, restrictionFrom),
  ]
}
