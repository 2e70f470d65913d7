/** Compares what stands of the exchange's history with its description. Whatever is not described is reported with its event. */
import { type Interface, type Result, ZeroAddress } from 'ethers'
import { FUNCTIONS, type Granted, type Restricted, ROLES, type Role } from '../stack/access.ts'
import { AggregatorOracle__factory } from '../typechain-types/factories/AggregatorOracle__factory.ts'
import { Backstop__factory } from '../typechain-types/factories/Backstop__factory.ts'
import { ExchangeAccess__factory } from '../typechain-types/factories/ExchangeAccess__factory.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../typechain-types/factories/MarginBank__factory.ts'
import { SignedPriceOracle__factory } from '../typechain-types/factories/SignedPriceOracle__factory.ts'
import type { Deployment } from './deployment.ts'
import type { NetworkParameters } from './handover.ts'
import type { Standing } from './history.ts'
import type { MarketFile } from './market-file.ts'
import { selectorsOf } from './selectors.ts'

export interface Description {
  readonly deployment: Deployment
  readonly parameters: NetworkParameters
  readonly markets: readonly MarketFile[]
  readonly handedOver: boolean
  /** The account that deployed the exchange, which has every role until the hand-over; null if unknown. */
  readonly deployer: string | null
  /** Unix seconds of the block up to which the history was read. */
  readonly now: bigint
}

export interface Backdoor {
  /** The subject, its event, the contract's address and the block. */
  readonly what: string
  readonly found: string
  readonly expected: string
}

/** Seconds after its time in which a scheduled operation can be executed: `ExchangeAccess.expiration`. */
const EXPIRATION = 604_800n

/** As in `OperatorStatus`. */
const PROPOSED = 1n

const ROLE_OF = new Map<bigint, Role>(
  (Object.entries(ROLES) as [Role, bigint][]).map(([name, id]) => [id, name]),
)
const named = (id: bigint): string => ROLE_OF.get(id) ?? `${id}`
const same = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()
const timeOf = (seconds: bigint): string => new Date(Number(seconds) * 1000).toISOString()

/** Null if the standing event is described, else what it allows and what would be expected. */
type Judgement = { readonly what: string; readonly found: string; readonly expected: string } | null
type Judge = (args: Result, described: Description, standing: Standing) => Judgement

const unless = (isDescribed: boolean, what: string, found: unknown, expected: unknown): Judgement =>
  isDescribed ? null : { what, found: String(found), expected: String(expected) }

// ---------------------------------------------------------------------- roles

const roleLabel: Judge = ({ roleId, label }) => {
  const name = ROLE_OF.get(roleId)
  const expected = name === undefined ? '' : name.toUpperCase()
  return unless(
    label === expected || label === '',
    `label of role ${named(roleId)}`,
    label,
    expected || 'none',
  )
}

const offer: Judge = ({ roleId, account, expiresAt }, { handedOver, parameters, now }) => {
  const role = ROLE_OF.get(roleId)
  const isForHolder = !handedOver && role !== undefined && same(parameters.holders[role], account)
  const isOver = expiresAt <= now
  const found = `open until ${timeOf(expiresAt)}`
  return unless(isOver || isForHolder, `offer of role ${named(roleId)} to ${account}`, found, 'none')
}

const member: Judge = ({ roleId, account, since }, { handedOver, parameters, deployer }) => {
  const role = ROLE_OF.get(roleId)
  const isDeployer = !handedOver && deployer !== null && same(deployer, account)
  const isDescribed = role !== undefined && (isDeployer || same(parameters.holders[role], account))
  const expected = role === undefined ? 'no member' : parameters.holders[role]
  return unless(isDescribed, `member of role ${named(roleId)}`, `${account} since ${timeOf(since)}`, expected)
}

const roleAdmin: Judge = ({ roleId, admin }) =>
  unless(admin === ROLES.admin, `admin of role ${named(roleId)}`, named(admin), 'admin')

const GUARDED: readonly bigint[] = [ROLES.listing, ROLES.parameters, ROLES.treasury]

const roleGuardian: Judge = ({ roleId, guardian }) => {
  const expected = GUARDED.includes(roleId) ? ROLES.guardian : ROLES.admin
  return unless(guardian === expected, `guardian of role ${named(roleId)}`, named(guardian), named(expected))
}

/** A shorter delay takes effect later: until then the earlier one applies. */
const delay =
  (subject: (args: Result) => string): Judge =>
  (args, { now }) => {
    const { since } = args
    const seconds: bigint = args.delay ?? args.newDelay
    return unless(seconds === 0n && since <= now, subject(args), `${seconds} s from ${timeOf(since)}`, '0 s')
  }

// ---------------------------------------------------------------------- functions

/** The contract whose functions the role table assigns, at a target; undefined if the target is another contract. */
function restrictedAt(target: string, { contracts, markets }: Deployment): Restricted | undefined {
  const names = ['MarginBank', 'SignedPriceOracle', 'Backstop'] as const
  const shared = names.find((name) => same(contracts[name] ?? ZeroAddress, target))
  if (shared !== undefined) return shared
  return [...markets.values()].some((trader) => same(trader, target)) ? 'IsolatedTrader' : undefined
}

function assignedRole(target: string, selector: string, deployment: Deployment): bigint {
  const name = restrictedAt(target, deployment)
  if (name === undefined) return ROLES.admin
  for (const [role, functions] of Object.entries(FUNCTIONS[name]))
    if (selectorsOf(name, functions).includes(selector)) return ROLES[role as Granted]
  return ROLES.admin
}

const functionRole: Judge = ({ target, selector, roleId }, { deployment }) => {
  const expected = assignedRole(target, selector, deployment)
  const what = `role of function ${functionName(selector)} of ${target}`
  return unless(roleId === expected, what, named(roleId), named(expected))
}

const targetClosed: Judge = ({ target, closed }) => unless(!closed, `target ${target}`, 'closed', 'open')

// ---------------------------------------------------------------------- operations

const INTERFACES: readonly Interface[] = [
  ExchangeAccess__factory,
  MarginBank__factory,
  SignedPriceOracle__factory,
  AggregatorOracle__factory,
  Backstop__factory,
  IsolatedTrader__factory,
].map((factory) => factory.createInterface())

const functionName = (selector: string): string =>
  INTERFACES.map((abi) => abi.getFunction(selector)?.name).find((name) => name !== undefined) ?? selector

function callOf(data: string): string {
  for (const abi of INTERFACES) {
    const call = abi.parseTransaction({ data })
    if (call !== null) return `${call.name}(${call.args.map(String).join(', ')})`
  }
  return data
}

const operation: Judge = ({ schedule, caller, target, data }, { now }) => {
  const isLapsed = schedule + EXPIRATION <= now
  const what = `operation scheduled by ${caller}: ${callOf(data)} of ${target}`
  return unless(isLapsed, what, `executable from ${timeOf(schedule)}`, 'none')
}

// ---------------------------------------------------------------------- markets

const descriptionOf = (market: string, { deployment, markets }: Description): MarketFile | undefined =>
  markets.find(({ spec }) => same(deployment.markets.get(spec.marketId) ?? '', market))

/** Until the hand-over the deployer controls every market of the deployment, so a market needs no description. */
const isInSetUp = (market: string, { deployment, handedOver }: Description): boolean =>
  !handedOver && [...deployment.markets.values()].some((trader) => same(trader, market))

const announcement: Judge = ({ market, codeHash, listableFrom, lapsesAt }, described) => {
  const isDescribed = isInSetUp(market, described) || descriptionOf(market, described) !== undefined
  const found = `code hash ${codeHash}, listable from ${timeOf(listableFrom)}`
  return unless(lapsesAt <= described.now || isDescribed, `announced market ${market}`, found, 'none')
}

const listing: Judge = ({ market, codeHash }, described) => {
  const isDescribed = isInSetUp(market, described) || descriptionOf(market, described) !== undefined
  return unless(isDescribed, `listed market ${market}`, `code hash ${codeHash}`, 'described by --markets')
}

const backed: Judge = ({ market, backed: agrees }, described) => {
  const file = descriptionOf(market, described)
  const isDescribed = file === undefined ? isInSetUp(market, described) : file.backstopCap > 0n
  return unless(!agrees || isDescribed, `market ${market} of the backstop`, 'backed', 'not backed')
}

const sessionKey: Judge = ({ key, permissions, expiresAt }, { parameters, now }) => {
  const isDescribed = parameters.backstopKeys.some((each) => same(each, key))
  const found = `permissions ${permissions} until ${timeOf(expiresAt)}`
  return unless(expiresAt <= now || isDescribed, `session key ${key} of the backstop`, found, 'none')
}

/** `checkMarket` compares the approved operators of a market with its description. */
const operator: Judge = ({ operator: account, status }, described, { address }) => {
  const file = descriptionOf(address, described)
  const isDescribed = file?.operators.some((each) => same(each, account)) ?? isInSetUp(address, described)
  const what = `operator ${account} of market ${address}`
  return unless(status !== PROPOSED || isDescribed, what, 'proposed', 'none')
}

// ---------------------------------------------------------------------- all

const JUDGES: Readonly<Record<string, Judge>> = {
  RoleLabel: roleLabel,
  RoleOffered: offer,
  RoleGranted: member,
  RoleAdminChanged: roleAdmin,
  RoleGuardianChanged: roleGuardian,
  RoleGrantDelayChanged: delay(({ roleId }) => `grant delay of role ${named(roleId)}`),
  TargetFunctionRoleUpdated: functionRole,
  TargetAdminDelayUpdated: delay(({ target }) => `admin delay of target ${target}`),
  TargetClosed: targetClosed,
  OperationScheduled: operation,
  MarketAnnounced: announcement,
  MarketListed: listing,
  MarketBacked: backed,
  SessionKeyRegistered: sessionKey,
  OperatorChanged: operator,
}

export function backdoorsIn(history: readonly Standing[], described: Description): readonly Backdoor[] {
  return history.flatMap((standing) => {
    const { args, contract, address, event, block } = standing
    const judge = JUDGES[event]
    if (judge === undefined) throw new Error(`cannot judge the event ${event} of ${contract}`)
    const judgement = judge(args, described, standing)
    if (judgement === null) return []
    return [{ ...judgement, what: `${judgement.what} (${event} of ${contract} ${address}, block ${block})` }]
  })
}
