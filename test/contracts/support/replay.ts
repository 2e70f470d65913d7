/** The state of an exchange's contracts, rebuilt from their events alone and compared with their views. */
import { expect } from 'chai'
import type { BaseContract, LogDescription, Result } from 'ethers'
import type { ExchangeAccess } from '../../../typechain-types/ExchangeAccess.ts'
import { Backstop__factory } from '../../../typechain-types/factories/Backstop__factory.ts'
import type { Exchange } from '../../support/exchange.ts'
import { audit } from './audit.ts'
import { forwarderOf } from './forward.ts'
import { MarketReplay } from './replay-market.ts'

type EventHandlers = Readonly<Record<string, (args: Result, at: bigint) => void>>

/** Replays the events of one contract; an event without a handler is an error. */
interface ContractReplay {
  readonly contract: BaseContract
  follow(event: LogDescription, at: bigint, raw: { topics: readonly string[]; data: string }): void
  compare(): Promise<void>
}

const contractReplay = (
  contract: BaseContract,
  handlers: EventHandlers,
  compare: () => Promise<void>,
): ContractReplay => ({
  contract,
  compare,
  follow: ({ name, args }, at) => {
    const handler = handlers[name]
    if (handler === undefined) throw new Error(`no handler for event ${name}`)
    handler(args, at)
  },
})

const nothing = (): void => undefined

// ---------------------------------------------------------------------- the bank except balances

function bankOf({ bank, shared }: Exchange): ContractReplay {
  const announced = new Map<string, { codeHash: string; listableFrom: bigint; lapsesAt: bigint }>()
  const openFrom = new Map<string, bigint>()
  let pause = { startedAt: 0n, endsAt: 0n }
  let treasury = ''
  const forget = (market: string) =>
    announced.set(market, { codeHash: `0x${'0'.repeat(64)}`, listableFrom: 0n, lapsesAt: 0n })
  const handlers: EventHandlers = {
    MarketAnnounced: ({ market, codeHash, listableFrom, lapsesAt }) =>
      void announced.set(market, { codeHash, listableFrom, lapsesAt }),
    AnnouncementWithdrawn: ({ market }) => void forget(market),
    MarketListed: ({ market }, at) => {
      forget(market)
      openFrom.set(market, at)
    },
    Paused: ({ endsAt }, at) => {
      pause = { startedAt: at, endsAt }
    },
    Unpaused: (_, at) => {
      pause = { ...pause, endsAt: at }
    },
    TreasuryChanged: (args) => {
      treasury = args.treasury
    },
    Deposited: nothing,
    WithdrawalRequested: nothing,
    Withdrawn: nothing,
    FeesCollected: nothing,
    AuthorityUpdated: ({ authority }) => expect(authority.toLowerCase()).to.equal(shared.access),
  }
  return contractReplay(bank, handlers, async () => {
    for (const [market, announcement] of announced) {
      const { codeHash, listableFrom, lapsesAt } = await bank.announcement(market)
      expect({ codeHash, listableFrom, lapsesAt }).to.deep.equal(announcement)
    }
    expect(await bank.markets()).to.deep.equal([...openFrom.keys()])
    for (const [market, from] of openFrom) expect((await bank.market(market)).openFrom).to.equal(from)
    const { startedAt, endsAt } = await bank.lastPause()
    expect({ startedAt, endsAt }).to.deep.equal(pause)
    expect(await bank.treasury()).to.equal(treasury)
  })
}

// ---------------------------------------------------------------------- session keys, forwarder, backstop, oracle

function keysOf({ keys }: Exchange): ContractReplay {
  const known = new Map<string, [permissions: bigint, registeredAt: bigint, revokedAt: bigint]>()
  const handlers: EventHandlers = {
    SessionKeyRegistered: ({ owner, key, permissions, registeredAt }) =>
      void known.set(`${owner} ${key}`, [permissions, registeredAt, 0n]),
    SessionKeyRevoked: ({ owner, key, revokedAt }) => {
      const [permissions, registeredAt] = known.get(`${owner} ${key}`) ?? [0n, 0n]
      known.set(`${owner} ${key}`, [permissions, registeredAt, revokedAt])
    },
  }
  return contractReplay(keys, handlers, async () => {
    for (const [pair, state] of known) {
      const [owner = '', key = ''] = pair.split(' ')
      expect([...(await keys.sessionKey(owner, key))]).to.deep.equal(state)
    }
  })
}

function forwarderReplay(exchange: Exchange): ContractReplay {
  const forwarder = forwarderOf(exchange)
  const nonces = new Map<string, bigint>()
  const handlers: EventHandlers = {
    ExecutedForwardRequest: ({ signer, nonce }) => void nonces.set(signer, nonce + 1n),
    EIP712DomainChanged: nothing,
  }
  return contractReplay(forwarder, handlers, async () => {
    for (const [signer, next] of nonces) expect(await forwarder.nonces(signer)).to.equal(next)
  })
}

function backstopOf({ shared, admin }: Exchange): ContractReplay {
  const backstop = Backstop__factory.connect(shared.backstop, admin)
  const backed = new Map<string, boolean>()
  const handlers: EventHandlers = {
    MarketBacked: ({ market, backed: agrees }) => void backed.set(market, agrees),
    Paid: nothing,
    AuthorityUpdated: nothing,
  }
  return contractReplay(backstop, handlers, async () => {
    for (const [market, agrees] of backed) expect(await backstop.backs(market)).to.equal(agrees)
  })
}

/** Signers of a feed from a time on (milliseconds). */
interface Feed {
  readonly signers: readonly string[]
  readonly threshold: bigint
  readonly activeFrom: bigint
}

const UNKNOWN_FEED: Feed = { signers: [], threshold: 0n, activeFrom: 0n }
const FAR = 2n ** 47n

function oracleOf(oracle: Exchange['oracle']): ContractReplay {
  const feeds = new Map<string, { former: Feed; latest: Feed }>()
  const handlers: EventHandlers = {
    FeedSet: ({ feedId, signers, threshold, activeFrom }, at) => {
      const { former, latest } = feeds.get(feedId) ?? { former: UNKNOWN_FEED, latest: UNKNOWN_FEED }
      const isWaiting = at * 1000n < latest.activeFrom
      const next = { signers: [...signers], threshold, activeFrom }
      feeds.set(feedId, { former: isWaiting ? former : latest, latest: next })
    },
    FeedCancelled: ({ feedId }) => {
      const { former } = feeds.get(feedId) ?? { former: UNKNOWN_FEED }
      feeds.set(feedId, { former: UNKNOWN_FEED, latest: former })
    },
    AuthorityUpdated: nothing,
    EIP712DomainChanged: nothing,
  }
  return contractReplay(oracle, handlers, async () => {
    for (const [feedId, { former, latest }] of feeds) {
      const before = latest.activeFrom === 0n ? latest : former
      for (const [at, feed] of [
        // Before the former set was active, no set is known any more.
        [1n, before.activeFrom <= 1n ? before : UNKNOWN_FEED],
        [latest.activeFrom === 0n ? 1n : latest.activeFrom - 1n, before],
        [FAR, latest],
      ] as const) {
        const [signers, threshold] = await oracle.feedAt(feedId, at)
        expect([[...signers], threshold]).to.deep.equal([[...feed.signers], feed.threshold])
      }
    }
  })
}

// ---------------------------------------------------------------------- roles

function accessOf(access: ExchangeAccess): ContractReplay {
  const members = new Map<string, bigint>()
  const offers = new Map<string, [delay: bigint, expiresAt: bigint]>()
  const functions = new Map<string, bigint>()
  const guardians = new Map<bigint, bigint>()
  const schedules = new Map<string, bigint>()
  const handlers: EventHandlers = {
    RoleGranted: ({ roleId, account, delay }) => {
      members.set(`${roleId} ${account}`, delay)
      offers.delete(`${roleId} ${account}`)
    },
    RoleRevoked: ({ roleId, account }) => void members.delete(`${roleId} ${account}`),
    RoleOffered: ({ roleId, account, executionDelay, expiresAt }) =>
      void offers.set(`${roleId} ${account}`, [executionDelay, expiresAt]),
    RoleOfferWithdrawn: ({ roleId, account }) => void offers.delete(`${roleId} ${account}`),
    TargetFunctionRoleUpdated: ({ target, selector, roleId }) =>
      void functions.set(`${target} ${selector}`, roleId),
    RoleGuardianChanged: ({ roleId, guardian }) => void guardians.set(roleId, guardian),
    RoleLabel: nothing,
    OperationScheduled: ({ operationId, schedule }) => void schedules.set(operationId, schedule),
    OperationExecuted: ({ operationId }) => void schedules.set(operationId, 0n),
    OperationCanceled: ({ operationId }) => void schedules.set(operationId, 0n),
  }
  return contractReplay(access, handlers, async () => {
    const split = (pair: string): [string, string] => pair.split(' ') as [string, string]
    for (const [pair, delay] of members) {
      expect([...(await access.hasRole(...split(pair)))], pair).to.deep.equal([true, delay])
    }
    for (const [pair, offer] of offers) {
      expect([...(await access.offeredRole(...split(pair)))], pair).to.deep.equal(offer)
    }
    for (const [pair, role] of functions) {
      expect(await access.getTargetFunctionRole(...split(pair)), pair).to.equal(role)
    }
    for (const [role, guardian] of guardians) expect(await access.getRoleGuardian(role)).to.equal(guardian)
    for (const [operation, at] of schedules) expect(await access.getSchedule(operation)).to.equal(at)
    const admins = [...members.keys()].filter((pair) => pair.startsWith('0 '))
    expect(await access.adminCount()).to.equal(BigInt(admins.length))
  })
}

// ---------------------------------------------------------------------- all contracts

function marketOf(exchange: Exchange): ContractReplay {
  const replay = new MarketReplay(exchange)
  return {
    contract: exchange.trader,
    follow: (event, at, raw) => replay.follow(event, at, raw),
    compare: () => replay.compare(),
  }
}

/** Replays all events of these contracts and of further oracles since deployment and compares every state. */
export async function replayAndCompare(
  exchange: Exchange,
  oracles: readonly Exchange['oracle'][] = [],
): Promise<void> {
  const replays = [
    accessOf(exchange.access),
    bankOf(exchange),
    keysOf(exchange),
    forwarderReplay(exchange),
    backstopOf(exchange),
    marketOf(exchange),
    ...[exchange.oracle, ...oracles].map(oracleOf),
  ]
  const { provider } = exchange.connection.ethers
  const byAddress = new Map<string, ContractReplay>()
  for (const each of replays) byAddress.set((await each.contract.getAddress()).toLowerCase(), each)
  const logs = await provider.getLogs({ address: [...byAddress.keys()], fromBlock: 0 })
  for (const log of logs) {
    const replay = byAddress.get(log.address.toLowerCase())
    const event = replay?.contract.interface.parseLog(log)
    if (!replay || !event) throw new Error(`${log.address} emitted an undeclared event`)
    replay.follow(event, BigInt((await log.getBlock()).timestamp), log)
  }
  for (const replay of replays) await replay.compare()
  await audit(exchange)
}
