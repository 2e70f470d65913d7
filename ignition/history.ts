/** Current access rules, announcements and operators of an exchange, rebuilt from all events since its deployment. */
import type { Interface, Provider, Result } from 'ethers'
import { AccountManager__factory } from '../typechain-types/factories/AccountManager__factory.ts'
import { Backstop__factory } from '../typechain-types/factories/Backstop__factory.ts'
import { ExchangeAccess__factory } from '../typechain-types/factories/ExchangeAccess__factory.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../typechain-types/factories/MarginBank__factory.ts'
import { contractOf, type Deployment } from './deployment.ts'
import { type LogFilter, logsOf } from './logs.ts'

/** The last event about a subject, unless a later event has ended it. */
export interface Standing {
  readonly contract: string
  readonly address: string
  readonly event: string
  readonly args: Result
  readonly block: number
}

interface Effect {
  /** Subject of the event. The event replaces the earlier event with the same subject. */
  readonly sets?: string
  readonly ends?: string
}

type Effects = Readonly<Record<string, (args: Result, address: string) => Effect>>

/** Every event of the access manager. */
const ACCESS: Effects = {
  RoleLabel: ({ roleId }) => ({ sets: `label ${roleId}` }),
  RoleOffered: ({ roleId, account }) => ({ sets: `offer ${roleId} ${account}` }),
  RoleOfferWithdrawn: ({ roleId, account }) => ({ ends: `offer ${roleId} ${account}` }),
  RoleGranted: ({ roleId, account }) => ({
    sets: `member ${roleId} ${account}`,
    ends: `offer ${roleId} ${account}`,
  }),
  RoleRevoked: ({ roleId, account }) => ({ ends: `member ${roleId} ${account}` }),
  RoleAdminChanged: ({ roleId }) => ({ sets: `admin ${roleId}` }),
  RoleGuardianChanged: ({ roleId }) => ({ sets: `guardian ${roleId}` }),
  RoleGrantDelayChanged: ({ roleId }) => ({ sets: `grant delay ${roleId}` }),
  TargetFunctionRoleUpdated: ({ target, selector }) => ({ sets: `function ${target} ${selector}` }),
  TargetAdminDelayUpdated: ({ target }) => ({ sets: `target delay ${target}` }),
  TargetClosed: ({ target }) => ({ sets: `closed ${target}` }),
  OperationScheduled: ({ operationId }) => ({ sets: `operation ${operationId}` }),
  OperationExecuted: ({ operationId }) => ({ ends: `operation ${operationId}` }),
  OperationCanceled: ({ operationId }) => ({ ends: `operation ${operationId}` }),
}

const BANK: Effects = {
  MarketAnnounced: ({ market }) => ({ sets: `announcement ${market}` }),
  AnnouncementWithdrawn: ({ market }) => ({ ends: `announcement ${market}` }),
  MarketListed: ({ market }) => ({ sets: `listing ${market}`, ends: `announcement ${market}` }),
}

const BACKSTOP: Effects = { MarketBacked: ({ market }) => ({ sets: `backed ${market}` }) }

const KEYS: Effects = {
  SessionKeyRegistered: ({ owner, key }) => ({ sets: `session key ${owner} ${key}` }),
  SessionKeyRevoked: ({ owner, key }) => ({ ends: `session key ${owner} ${key}` }),
}

const MARKET: Effects = {
  OperatorChanged: ({ operator }, address) => ({ sets: `operator ${address} ${operator}` }),
}

interface Source {
  readonly name: string
  readonly abi: Interface
  readonly effects: Effects
}

const SOURCES = {
  ExchangeAccess: { abi: ExchangeAccess__factory.createInterface(), effects: ACCESS },
  MarginBank: { abi: MarginBank__factory.createInterface(), effects: BANK },
  Backstop: { abi: Backstop__factory.createInterface(), effects: BACKSTOP },
  AccountManager: { abi: AccountManager__factory.createInterface(), effects: KEYS },
  IsolatedTrader: { abi: IsolatedTrader__factory.createInterface(), effects: MARKET },
} as const

const topicsOf = ({ abi, effects }: Omit<Source, 'name'>): string[] =>
  Object.keys(effects).map((name) => {
    const fragment = abi.getEvent(name)
    if (fragment === null) throw new Error(`cannot replay ${name}: the contract has no such event`)
    return fragment.topicHash
  })

export interface History {
  /** In the order of the events. */
  readonly standing: readonly Standing[]
  /** The first grant of a role: the constructor of ExchangeAccess grants the admin role to the deployer. Null if there is none. */
  readonly first: { readonly account: string; readonly transaction: string } | null
}

/** The history of an exchange that was deployed in block `from` or later, up to block `to`. */
export async function historyOf(
  provider: Provider,
  deployment: Deployment,
  from: number,
  to: number,
): Promise<History> {
  const sources = new Map<string, Source>()
  const add = (name: keyof typeof SOURCES, address: string) =>
    sources.set(address.toLowerCase(), { name, ...SOURCES[name] })
  for (const name of ['ExchangeAccess', 'MarginBank', 'Backstop'] as const)
    add(name, contractOf(deployment, name))
  for (const trader of deployment.markets.values()) add('IsolatedTrader', trader)
  const all: LogFilter = {
    address: [...sources.keys()],
    topics: [[...new Set([...sources.values()].flatMap(topicsOf))]],
  }
  // Every user has session keys, so those of the backstop are queried by their owner.
  const keys = contractOf(deployment, 'AccountManager')
  add('AccountManager', keys)
  const owner = `0x${contractOf(deployment, 'Backstop').slice(2).toLowerCase().padStart(64, '0')}`
  const ofBackstop: LogFilter = { address: [keys], topics: [topicsOf(SOURCES.AccountManager), owner] }

  const standing = new Map<string, Standing>()
  let first: History['first'] = null
  for (const filter of [all, ofBackstop])
    for (const log of await logsOf(provider, filter, from, to)) {
      const source = sources.get(log.address.toLowerCase()) as Source
      const parsed = source.abi.parseLog(log)
      if (parsed === null) continue
      if (parsed.name === 'RoleGranted')
        first ??= { account: parsed.args.account, transaction: log.transactionHash }
      const { sets, ends } = source.effects[parsed.name]?.(parsed.args, log.address) ?? {}
      if (ends !== undefined) standing.delete(ends)
      if (sets === undefined) continue
      const { address, blockNumber: block } = log
      standing.delete(sets)
      standing.set(sets, { contract: source.name, address, event: parsed.name, args: parsed.args, block })
    }
  return { standing: [...standing.values()], first }
}
