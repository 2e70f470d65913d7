/** Asks everyone who knows what an account holds, and tells where they differ: chain, log, write side, read model, REST. */
import type { JsonRpcProvider } from 'ethers'
import { sql } from 'kysely'
import { Client } from '../../client/client.ts'
import type { Db, Tx } from '../../db/client.ts'
import { readRows } from '../../db/journal.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../typechain-types/factories/MarginBank__factory.ts'
import type { StackAccount } from '../stack-file.ts'
import { fold, type Holdings, noHoldings } from './fold.ts'

export interface AuditInput {
  readonly db: Db
  readonly provider: JsonRpcProvider
  readonly specs: readonly MarketSpec[]
  readonly marginBank: string
  readonly baseUrl: string
  /** Those that REST can be asked about; the other sources are asked about every user. */
  readonly accounts: readonly StackAccount[]
}

export interface Audit {
  readonly users: number
  readonly positions: number
  /** One line each; empty where all agree. */
  readonly differences: readonly string[]
}

/** What one source says of everything, as text by name: `user 3 free` -> `1000`. */
type Statement = ReadonlyMap<string, string>

const TRIES = 20
const PAUSE_MS = 250

/**
 * Database and chain are compared at one block and one snapshot, so trading may go on. REST has no such moment: what differs there
 * is asked again, so only accounts that rest at times can be held against it.
 */
export async function audit(input: AuditInput): Promise<Audit> {
  for (let attempt = 1; ; attempt++) {
    const result = await auditOnce(input)
    if (result !== null && (result.differences.length === 0 || attempt >= TRIES)) return result
    if (result === null && attempt >= 10 * TRIES)
      throw new Error('the read model does not catch up with the log')
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
}

/** Null where the read model is behind the log in the snapshot. */
async function auditOnce(input: AuditInput): Promise<Audit | null> {
  const inside = await input.db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute((tx) => auditSnapshot(input, tx))
  if (inside === null) return null
  const { users, chain, sources, reservations } = inside
  const rest = await restSays(input)
  const positions = [...chain.keys()].filter((name) => name.endsWith('size')).length
  return { users, positions, differences: [...compare(chain, { ...sources, REST: rest }), ...reservations] }
}

async function auditSnapshot(input: AuditInput, tx: Tx) {
  const { rows } = await sql<{ block: number; unread: number }>`
    select (select next_block - 1 from chain_progress) as block,
      (select count(*) from shards s left join read.projection p using (shard) where s.head > coalesce(p.seq, 0)) as unread
  `.execute(tx)
  const { block = 0, unread = 0 } = rows[0] ?? {}
  if (unread > 0) return null
  const users = await tx.selectFrom('users').select(['user_id', 'address']).execute()
  const sources = {
    log: await logSays(tx, input.specs),
    'write side': await writeSideSays(tx),
    'read model': await readModelSays(tx),
  }
  const reservations = await wrongReservations(tx)
  return { users: users.length, chain: await chainSays(input, users, block), sources, reservations }
}

/** What a source does not mention is zero; REST has been asked about some users only. */
function compare(chain: Statement, sources: Readonly<Record<string, Statement>>): string[] {
  const names = new Set([chain, ...Object.values(sources)].flatMap((statement) => [...statement.keys()]))
  return [...names].sort().flatMap((name) => {
    const expected = chain.get(name) ?? '0'
    const wrong = Object.entries(sources)
      .filter(([who, statement]) => who !== 'REST' || statement.has(`${ownerOf(name)} free`))
      .filter(([, statement]) => (statement.get(name) ?? '0') !== expected)
      .map(([who, statement]) => `${who} ${statement.get(name) ?? '0'}`)
    return wrong.length === 0 ? [] : [`${name}: chain ${expected}, ${wrong.join(', ')}`]
  })
}

/** `user 3 market 1 size` -> `user 3`. */
const ownerOf = (name: string): string => name.split(' ').slice(0, 2).join(' ')

const put = (statement: Map<string, string>, name: string, values: Record<string, bigint | number>): void => {
  for (const [what, value] of Object.entries(values))
    if (value !== 0n && value !== 0) statement.set(`${name} ${what}`, `${value}`)
}

const user = (userId: number): string => `user ${userId}`
const place = (userId: number, marketId: number): string => `user ${userId} market ${marketId}`

async function chainSays(
  { provider, specs, marginBank }: AuditInput,
  users: readonly { user_id: number; address: string }[],
  blockTag: number,
): Promise<Statement> {
  const statement = new Map<string, string>()
  const bank = MarginBank__factory.connect(marginBank, provider)
  const traders = specs.map((spec) => ({
    spec,
    trader: IsolatedTrader__factory.connect(spec.trader, provider),
  }))
  for (const { user_id, address } of users) {
    const { free, pending } = await bank.account(address, { blockTag })
    put(statement, user(user_id), { free, pending })
    for (const { spec, trader } of traders) {
      const { size, entryNotional, margin } = await trader.position(address, { blockTag })
      put(statement, place(user_id, spec.marketId), { size, entry: entryNotional, margin })
    }
  }
  return statement
}

const PAGE = 2_000

async function logSays(db: Tx, specs: readonly MarketSpec[]): Promise<Statement> {
  const holdings = noHoldings()
  await foldShard(db, holdings, ACCOUNTS_SHARD, 0)
  for (const { marketId } of specs) await foldShard(db, holdings, marketShard(marketId), marketId)

  const statement = new Map<string, string>()
  for (const [userId, balance] of holdings.balances) put(statement, user(userId), { ...balance })
  for (const [key, { size, entryNotional, foldedMargin }] of holdings.positions) {
    const [userId = '', marketId = ''] = key.split(':')
    put(statement, place(Number(userId), Number(marketId)), {
      size,
      entry: entryNotional,
      margin: foldedMargin,
    })
  }
  return statement
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

async function writeSideSays(db: Tx): Promise<Statement> {
  const statement = new Map<string, string>()
  const accounts = await db.selectFrom('accounts').selectAll().execute()
  for (const { user_id, free, pending_withdrawal } of accounts) {
    put(statement, user(user_id), { free, pending: pending_withdrawal })
  }
  for (const row of await db.selectFrom('positions').selectAll().execute()) {
    const mined = { size: row.size, entry: row.entry_notional, margin: row.folded_margin }
    put(statement, place(row.user_id, row.market_id), mined)
  }
  return statement
}

async function readModelSays(db: Tx): Promise<Statement> {
  const statement = new Map<string, string>()
  for (const { user_id, free, pending_withdrawal } of await db
    .selectFrom('read.balances')
    .selectAll()
    .execute()) {
    put(statement, user(user_id), { free, pending: pending_withdrawal })
  }
  for (const row of await db.selectFrom('read.positions').selectAll().execute()) {
    const mined = { size: row.size, entry: row.entry_notional, margin: row.folded_margin }
    put(statement, place(row.user_id, row.market_id), mined)
  }
  return statement
}

async function restSays({ baseUrl, accounts, specs }: AuditInput): Promise<Statement> {
  const statement = new Map<string, string>()
  const steps = new Map(specs.map((spec) => [spec.marketId as number, spec.step as bigint]))
  for (const { user_id, api_key, private_key } of accounts) {
    const client = new Client({ baseUrl, apiKey: api_key, privateKey: private_key })
    const { free_e18_raw, pending_withdrawals_e18_raw } = await client.account.balance()
    tell(statement, user(user_id), { free: free_e18_raw, pending: pending_withdrawals_e18_raw })
    for (const position of await client.account.positions()) {
      const size = BigInt(position.size_e18_raw) / (steps.get(position.market_id) ?? 1n)
      tell(statement, place(user_id, position.market_id), {
        size: `${size}`,
        entry: position.entry_notional_e18_raw,
        margin: position.margin_e18_raw,
      })
    }
  }
  return statement
}

/** Unlike the others it says zero aloud: REST speaks of some users only, and its silence on these would be a difference. */
const tell = (statement: Map<string, string>, name: string, values: Record<string, string>): void => {
  for (const [what, value] of Object.entries(values)) statement.set(`${name} ${what}`, value)
}

/** What an account has reserved is what its orders hold back, in the write side and in the read model. */
async function wrongReservations(db: Tx): Promise<string[]> {
  const { rows } = await sql<{ user_id: number; account: bigint; orders: bigint; read: bigint | null }>`
    select a.user_id, a.reserved as account, coalesce(sum(o.reserved + o.held), 0) as orders, b.reserved as read
    from accounts a left join orders o using (user_id) left join read.balances b using (user_id)
    group by a.user_id, b.reserved
    having a.reserved <> coalesce(sum(o.reserved + o.held), 0) or a.reserved <> coalesce(b.reserved, 0)
  `.execute(db)
  return rows.map(
    ({ user_id, account, orders, read }) =>
      `${user(user_id)} reserved: account ${account}, orders ${orders}, read model ${read ?? 0n}`,
  )
}

/** Waits until nothing is matched and unsettled, and everything logged is in the read model. */
export async function settled(db: Db, budgetMs = 30_000): Promise<void> {
  const deadline = Date.now() + budgetMs
  for (;;) {
    const { rows } = await sql<{ settling: number; unread: number }>`
      select (select count(*) from orders where settling > 0) as settling,
        (select count(*) from shards s left join read.projection p using (shard) where s.head > coalesce(p.seq, 0)) as unread
    `.execute(db)
    const { settling = 0, unread = 0 } = rows[0] ?? {}
    if (settling === 0 && unread === 0) return
    if (Date.now() > deadline)
      throw new Error(`${settling} orders still settle, ${unread} shards are not projected`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

export const auditLine = ({ users, positions, differences }: Audit): string =>
  differences.length === 0
    ? `chain = log = write side = read model = REST for ${users} users and ${positions} positions, to the last wei`
    : `${differences.length} DIFFERENCES:\n  ${differences.join('\n  ')}`
