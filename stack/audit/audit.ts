/** Compares the balances, positions, funding payments and forwarder nonces of every account in chain, journal, read model and REST. */
import type { JsonRpcProvider } from 'ethers'
import { sql } from 'kysely'
import { Client } from '../../client/client.ts'
import type { Db, Tx } from '../../db/client.ts'
import { readClock } from '../../db/clock.ts'
import { loadFunding } from '../../db/funding.ts'
import { readRows } from '../../db/journal.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { type FundingState, fundingIndexAt } from '../../domain/prices/funding-state.ts'
import type { Millis } from '../../domain/units.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../typechain-types/factories/MarginBank__factory.ts'
import type { StackAccount } from '../stack-file.ts'
import { deltaDifferences } from './deltas.ts'
import { fold, type Holdings, noHoldings } from './fold.ts'
import { forwarderNonceDifferences } from './forwarder-nonces.ts'
import { fundingDifferences, fundingInRest, fundingSnapshot } from './funding.ts'
import { compare, positionName, put, user, type Values } from './values.ts'

export interface AuditInput {
  readonly db: Db
  readonly provider: JsonRpcProvider
  readonly specs: readonly MarketSpec[]
  readonly marginBank: string
  readonly forwarder: string
  readonly baseUrl: string
  /** The accounts to compare in REST, which needs their API keys. The other sources are compared for every user. */
  readonly accounts: readonly StackAccount[]
}

export interface Audit {
  readonly users: number
  readonly positions: number
  /** One line per difference; empty if all sources agree. */
  readonly differences: readonly string[]
}

const TRIES = 20
const PAUSE_MS = 250

/**
 * Compares database and chain at one block and snapshot, while trading continues. REST is outside the snapshot:
 * differences are read again, up to 20 times, and may remain for busy accounts.
 */
export async function audit(input: AuditInput): Promise<Audit> {
  for (let attempt = 1; ; attempt++) {
    const result = await auditOnce(input)
    if (result !== null && (result.differences.length === 0 || attempt >= TRIES)) return result
    if (result === null && attempt >= 10 * TRIES)
      throw new Error(`the read model was behind the journal in ${attempt} snapshots, ${PAUSE_MS} ms apart`)
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
}

/** Null if the read model is behind the journal in the snapshot. */
async function auditOnce(input: AuditInput): Promise<Audit | null> {
  const snapshot = await input.db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute((tx) => auditSnapshot(input, tx))
  if (snapshot === null) return null
  const { users, chain, sources, others, funding } = snapshot
  const rest = {
    ...{ name: 'REST', values: await valuesInRest(input, chain) },
    users: new Set(input.accounts.map(({ user_id }) => user(user_id))),
  }
  const payments = await fundingInRest(input.baseUrl, input.accounts, funding.accrued)
  const positions = [...chain.keys()].filter((name) => name.endsWith('size')).length
  const differences = [
    ...compare({ name: 'chain', values: chain }, [...sources, rest]),
    ...others,
    ...fundingDifferences(funding, payments),
  ]
  return { users, positions, differences }
}

async function auditSnapshot(input: AuditInput, tx: Tx) {
  const { rows } = await sql<{ block: number; unread: number }>`
    select (select next_block - 1 from chain_progress) as block,
      (select count(*) from shards s where s.head > (select coalesce(min(p.seq), 0) from read.places p where p.shard = s.shard)) as unread
  `.execute(tx)
  const { block = 0, unread = 0 } = rows[0] ?? {}
  if (unread > 0) return null
  const users = await tx.selectFrom('users').select(['user_id', 'address']).execute()
  const sources = [
    { name: 'journal', values: await valuesInJournal(tx, input.specs) },
    { name: 'read model', values: await valuesInReadModel(tx) },
  ]
  const others = [
    ...(await wrongReservations(tx)),
    ...(await deltaDifferences(tx)),
    ...(await forwarderNonceDifferences(tx, input, block)),
  ]
  const { provider, specs } = input
  const funding = await fundingSnapshot(tx, { provider, specs, users, block })
  const chain = await valuesOnChain(input, users, block)
  return { users: users.length, chain, sources, others, funding }
}

/** The margin without the funding that has accrued: it changes with fills only, so that sources with another time compare equal. */
const FOLDED = 'folded margin'

async function valuesOnChain(
  { provider, specs, marginBank }: AuditInput,
  users: readonly { user_id: number; address: string }[],
  blockTag: number,
): Promise<Values> {
  const values = new Map<string, string>()
  const bank = MarginBank__factory.connect(marginBank, provider)
  const traders = specs.map((spec) => ({
    spec,
    trader: IsolatedTrader__factory.connect(spec.trader, provider),
  }))
  const indexes = await Promise.all(traders.map(({ trader }) => trader.lastReference({ blockTag })))
  for (const { user_id, address } of users) {
    const { free, pending } = await bank.account(address, { blockTag })
    put(values, user(user_id), { free, pending })
    for (const [at, { spec, trader }] of traders.entries()) {
      const { size, entryNotional, margin } = await trader.position(address, { blockTag })
      const folded = margin + size * (indexes[at]?.fundingIndex ?? 0n)
      put(values, positionName(user_id, spec.marketId), { size, entry: entryNotional, [FOLDED]: folded })
    }
  }
  return values
}

const PAGE = 2_000

async function valuesInJournal(db: Tx, specs: readonly MarketSpec[]): Promise<Values> {
  const holdings = noHoldings()
  await foldShard(db, holdings, ACCOUNTS_SHARD, 0)
  for (const { marketId } of specs) await foldShard(db, holdings, marketShard(marketId), marketId)

  const values = new Map<string, string>()
  for (const [userId, balance] of holdings.balances) put(values, user(userId), { ...balance })
  for (const [key, { size, entryNotional, foldedMargin }] of holdings.positions) {
    const [userId = '', marketId = ''] = key.split(':')
    put(values, positionName(Number(userId), Number(marketId)), {
      size,
      entry: entryNotional,
      [FOLDED]: foldedMargin,
    })
  }
  return values
}

async function foldShard(db: Tx, holdings: Holdings, shard: string, marketId: number): Promise<void> {
  for (let after = 0; ; ) {
    const rows = await readRows(db, shard, after, PAGE)
    for (const { row } of rows) fold(holdings, row, marketId)
    const last = rows.at(-1)
    if (last === undefined) return
    after = last.seq
  }
}

async function valuesInReadModel(db: Tx): Promise<Values> {
  const values = new Map<string, string>()
  for (const { user_id, free, pending_withdrawal } of await db
    .selectFrom('read.balances')
    .selectAll()
    .execute()) {
    put(values, user(user_id), { free, pending: pending_withdrawal })
  }
  for (const row of await db.selectFrom('read.positions').selectAll().execute()) {
    const mined = { size: row.size, entry: row.entry_notional, [FOLDED]: row.folded_margin }
    put(values, positionName(row.user_id, row.market_id), mined)
  }
  return values
}

/** How far the clock of an api may be from the database's. */
const CLOCK_ERROR_MS = 250

async function valuesInRest({ db, baseUrl, accounts, specs }: AuditInput, chain: Values): Promise<Values> {
  const values = new Map<string, string>()
  const markets = new Map(specs.map((spec) => [spec.marketId as number, spec]))
  for (const { user_id, api_key, private_key } of accounts) {
    const client = new Client({ baseUrl, apiKey: api_key, privateKey: private_key })
    const { free_e18_raw, pending_withdrawals_e18_raw } = await client.account.balance()
    putAll(values, user(user_id), { free: free_e18_raw, pending: pending_withdrawals_e18_raw })
    const from = (await readClock(db)) - CLOCK_ERROR_MS
    const positions = await client.account.positions()
    const until = (await readClock(db)) + CLOCK_ERROR_MS
    for (const position of positions) {
      const name = positionName(user_id, position.market_id)
      const size = BigInt(position.size_e18_raw) / (markets.get(position.market_id)?.step ?? 1n)
      const funding = await db.transaction().execute((tx) => loadFunding(tx, position.market_id))
      const margin = BigInt(position.margin_e18_raw)
      const possible = foldedMargins({ size, margin }, funding, { from, until })
      const known = BigInt(chain.get(`${name} ${FOLDED}`) ?? 0)
      const folded = possible.has(known) ? known : [...possible].at(-1)
      putAll(values, name, {
        size: `${size}`,
        entry: position.entry_notional_e18_raw,
        [FOLDED]: `${folded}`,
      })
    }
  }
  return values
}

/** REST accrues funding to the time of the read, which its answer does not contain: the folded margins for each millisecond of the interval. */
function foldedMargins(
  { size, margin }: { readonly size: bigint; readonly margin: bigint },
  funding: FundingState,
  { from, until }: { readonly from: number; readonly until: number },
): Set<bigint> {
  const folded = new Set<bigint>()
  for (let at = from; at <= until; at++) folded.add(margin + size * fundingIndexAt(funding, at as Millis))
  return folded
}

const putAll = (values: Map<string, string>, name: string, fields: Record<string, string>): void => {
  for (const [field, value] of Object.entries(fields)) values.set(`${name} ${field}`, value)
}

/** An account's `reserved` in the read model must equal the sum over its orders, their held amounts included, and adjustments. */
async function wrongReservations(db: Tx): Promise<string[]> {
  const { rows } = await sql<{ user_id: number; parts: bigint; read: bigint }>`
    select user_id, coalesce(sum(o.reserved), 0) as parts, coalesce(b.reserved, 0) as read
    from read.balances b full join (
      select user_id, reserved from read.orders
      union all select user_id, held from adjustment_attempts
    ) o using (user_id)
    group by user_id, b.reserved
    having coalesce(sum(o.reserved), 0) <> coalesce(b.reserved, 0)
  `.execute(db)
  return rows.map(
    ({ user_id, parts, read }) =>
      `${user(user_id)} reserved: orders and adjustments ${parts}, read model ${read}`,
  )
}

/** Waits until every part of a batch is settled and the read model has every row of the journal. */
export async function settled(db: Db, budgetMs = 30_000): Promise<void> {
  const deadline = Date.now() + budgetMs
  for (;;) {
    const { rows } = await sql<{ settling: number; unread: number }>`
      select (
          select count(*) from actions where kind = 'settle_part' and status in ('QUEUED', 'SIGNED', 'SUBMITTED')
        ) as settling,
        (select count(*) from shards s where s.head > (select coalesce(min(p.seq), 0) from read.places p where p.shard = s.shard)) as unread
    `.execute(db)
    const { settling = 0, unread = 0 } = rows[0] ?? {}
    if (settling === 0 && unread === 0) return
    if (Date.now() > deadline)
      throw new Error(
        `after ${budgetMs} ms ${settling} parts are not settled and ${unread} shards are not projected`,
      )
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

export const auditLine = ({ users, positions, differences }: Audit): string =>
  differences.length === 0
    ? `chain = journal = read model = REST for ${users} users and ${positions} positions, to the last wei; funding payments agree with event logs and contract views and sum to zero`
    : `${differences.length} DIFFERENCES:\n  ${differences.join('\n  ')}`
