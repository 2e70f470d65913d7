/** Rebuilds an exchange from its events alone and compares the result with the contracts' views, to the wei. */
import { expect } from 'chai'
import type { Log } from 'ethers'
import type { IgnoredEvent, TraderFact } from '../../../domain/chain/facts.ts'
import { FLAT, foldMargin, type Position } from '../../../domain/positions/position.ts'
import type { FundingUpdated } from '../../../domain/prices/funding.ts'
import type { BatchSettled } from '../../../domain/settlement/settlement.ts'
import {
  applyFillStates,
  applyFreeDelta,
  applySettled,
  type FillStates,
  feesOf,
  type LedgerAccount,
  ledgerDeltas,
} from '../../../domain/settlement/settlement-replay.ts'
import type { Address, FundingIndex, Quote, Seconds, Steps } from '../../../domain/units.ts'
import { decodeTraderLog } from '../../../indexer/ingest/decode/isolated-trader.ts'
import { LATCH_WEI } from '../../../stack/deploy.ts'
import type { Exchange } from '../../support/exchange.ts'
import { applyAdjustment, applyRisk, noWindDown, type RiskBooks, type WindDown } from './audit-risk.ts'

interface Books extends RiskBooks {
  states: FillStates
  fees: bigint
  /** The last update, if there was one. */
  funding: FundingUpdated | null
}

const EMPTY: LedgerAccount = { free: 0n as Quote, pending: 0n as Quote, requestedAt: 0 as Seconds }
const lower = (text: unknown): Address => String(text).toLowerCase() as Address

function applyBatch(books: Books, event: BatchSettled, exchange: Exchange): void {
  for (const [account, position] of applySettled(books.positions, event, exchange.spec)) {
    books.positions.set(account, position)
  }
  books.states = applyFillStates(books.states, event)
  for (const { account, delta } of ledgerDeltas(event)) {
    const moved = applyFreeDelta(books.accounts.get(account) ?? EMPTY, delta, event.asOf)
    if (moved === null) throw new Error('an event debits more than the free balance')
    books.accounts.set(account, moved)
    books.pool -= delta
  }
  books.pool -= feesOf(event)
  books.fees += feesOf(event)
}

function applyBankLog(books: Books, name: string, args: Record<string, unknown>): void {
  const owner = lower(name === 'FeesCollected' ? args.treasury : args.account)
  const account = books.accounts.get(owner) ?? EMPTY
  const amount = args.amount as bigint
  if (name === 'Deposited') books.accounts.set(owner, { ...account, free: (account.free + amount) as Quote })
  if (name === 'Withdrawn') {
    expect(amount).to.equal(account.pending)
    books.accounts.set(owner, { ...account, pending: 0n as Quote })
  }
  if (name === 'FeesCollected') {
    expect(amount).to.equal(books.fees)
    books.fees = 0n
    books.accounts.set(owner, { ...account, free: (account.free + amount) as Quote })
  }
  if (name === 'WithdrawalRequested') {
    books.accounts.set(owner, {
      free: (account.free - amount) as Quote,
      pending: (account.pending + amount) as Quote,
      requestedAt: Number(args.requestedAt) as Seconds,
    })
  }
}

type Unmoving = Extract<
  TraderFact | IgnoredEvent,
  { kind: 'salts_cancelled' | 'ending_changed' | 'terms_changed' | 'margin_nonces_invalidated' | 'ignored' }
>

const movesNothing = (fact: TraderFact | IgnoredEvent): fact is Unmoving =>
  ['salts_cancelled', 'ending_changed', 'terms_changed', 'margin_nonces_invalidated', 'ignored'].includes(
    fact.kind,
  )

function applyTraderFact(books: Books, fact: TraderFact | IgnoredEvent, exchange: Exchange): void {
  if (fact.kind === 'part_mined') applyBatch(books, fact.settled, exchange)
  else if (fact.kind === 'position_adjusted') applyAdjustment(books, fact.event)
  else if (fact.kind === 'funding_updated') books.funding = fact.event
  else if (!movesNothing(fact)) applyRisk(books, fact, exchange.spec)
}

/** Replays all events of bank and market in order. */
export async function rebuild(exchange: Exchange): Promise<Books> {
  const { bank, shared, spec } = exchange
  const books: Books = {
    accounts: new Map(),
    positions: new Map(),
    states: { orders: new Map(), slots: new Map() },
    pool: 0n,
    fees: 0n,
    windDown: noWindDown(),
    funding: null,
  }
  const logs: Log[] = await exchange.connection.ethers.provider.getLogs({
    address: [shared.marginBank, spec.trader],
    fromBlock: 0,
  })
  for (const log of logs) {
    if (lower(log.address) === shared.marginBank) {
      const parsed = bank.interface.parseLog(log)
      if (parsed !== null) applyBankLog(books, parsed.name, parsed.args.toObject())
    } else applyTraderFact(books, decodeTraderLog(log, spec), exchange)
  }
  return books
}

interface Share {
  readonly size: bigint
  /** Margin less entry for a long, plus entry for a short: the pool's liability at price 0. */
  readonly claim: bigint
}

async function comparePosition(exchange: Exchange, owner: Address, rebuilt: Position): Promise<Share> {
  const held = await exchange.trader.position(owner)
  const { fundingIndex } = await exchange.trader.lastReference()
  const size = Number(held.size) as Steps
  expect({
    size,
    entryNotional: held.entryNotional,
    foldedMargin: foldMargin(held.margin, size, fundingIndex as FundingIndex),
    leverage: Number(held.leverage),
  }).to.deep.equal(rebuilt)
  const claim = held.margin + (held.size > 0n ? -held.entryNotional : held.entryNotional)
  return { size: held.size, claim }
}

async function compareOrders(exchange: Exchange, states: FillStates): Promise<void> {
  for (const [key, state] of states.orders) {
    const [maker = '', salt = ''] = key.split(':')
    const chainState = Number(await exchange.trader.saltState(maker, BigInt(salt)))
    expect(chainState === 2, `salt ${key} dead`).to.equal(state.isDead)
  }
  for (const [key, salt] of states.slots) {
    const [maker = '', index = ''] = key.split('#')
    const [held, filled] = await exchange.trader.partialSlot(maker, index)
    const state = states.orders.get(`${maker}:${salt}`)
    expect(held).to.equal(salt)
    if (state && !state.isDead) expect(Number(filled)).to.equal(state.filled)
  }
}

/** After a market has ended, accounts have unpaid claims instead of positions: the amounts owed less the amounts paid. */
async function compareWindDown(
  { trader }: Exchange,
  { ended, deficit, haircut, unpaid }: WindDown,
  owners: readonly Address[],
): Promise<void> {
  const windDown = await trader.windDown()
  expect([windDown.endedAt > 0n, windDown.price]).to.deep.equal([ended !== null, ended?.price ?? 0n])
  expect([windDown.poolAtEnd, windDown.deficit]).to.deep.equal([ended?.pool ?? 0n, deficit])
  expect([windDown.haircutFixed, windDown.haircutPool]).to.deep.equal([haircut !== null, haircut?.pool ?? 0n])
  for (const owner of owners) expect(await trader.unpaidClaim(owner)).to.equal(unpaid.get(owner) ?? 0n)
}

/** The wei that signals a pause: bank and latch together always have it. */
async function compareLatch({ bank, connection }: Exchange): Promise<void> {
  const { provider } = connection.ethers
  const held = await provider.getBalance(bank)
  const now = (await provider.getBlock('latest'))?.timestamp ?? 0
  const runs = now < (await bank.lastPause()).endsAt
  expect(await bank.isPaused()).to.equal(runs)
  expect(held > 0n || !runs, 'an active pause without its wei').to.equal(true)
  expect(held + (await provider.getBalance(await bank.pauseLatch()))).to.be.at.least(LATCH_WEI)
}

/** Events rebuild every view; the bank's tokens cover its liabilities; longs equal shorts; the pool equals the claims at any price. */
export async function audit(exchange: Exchange): Promise<void> {
  const { bank, usdm, users, treasury, spec, shared } = exchange
  const books = await rebuild(exchange)
  await compareLatch(exchange)
  let owed = 0n
  let size = 0n
  let claims = 0n
  const owners = [...users.map(({ address }) => lower(address)), lower(treasury.address), shared.backstop]
  for (const owner of owners) {
    const account = await bank.account(owner)
    const rebuilt = books.accounts.get(owner) ?? EMPTY
    expect([account.free, account.pending, Number(account.requestedAt)]).to.deep.equal([
      rebuilt.free,
      rebuilt.pending,
      rebuilt.requestedAt,
    ])
    owed += account.free + account.pending
    const share = await comparePosition(exchange, owner, books.positions.get(owner) ?? FLAT)
    size += share.size
    claims += share.claim
  }
  await compareOrders(exchange, books.states)
  const market = await bank.market(spec.trader)
  expect([market.pool, market.fees]).to.deep.equal([books.pool, books.fees])
  expect(await usdm.balanceOf(shared.marginBank)).to.equal(owed + market.pool + market.fees)
  await compareWindDown(exchange, books.windDown, owners)
  if (books.windDown.ended !== null) return
  expect(size).to.equal(0n)
  // Sizes cancel out, so the claims at price 0 equal the claims at every price.
  expect(market.pool).to.equal(claims)
}
