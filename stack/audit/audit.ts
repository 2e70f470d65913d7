/** Asks everyone who knows what an account holds, and tells where they differ: chain, log, write side, read model, REST. */
import type { JsonRpcProvider } from 'ethers'
import { sql } from 'kysely'
import { Client } from '../../client/client.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../domain/log.ts'
import type { MarketSpec } from '../../domain/market.ts'
import type { Db } from '../../indexer/db/client.ts'
import { readRows } from '../../indexer/db/shard-log.ts'
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
type Statements = Readonly<Record<'chain' | 'log' | 'write side' | 'read model' | 'rest', Statement>>

/** The exchange should be quiet: between two of the questions anything may move. */
export async function audit(input: AuditInput): Promise<Audit> {
  const users = await input.db.selectFrom('users').select(['user_id', 'address']).execute()
  const statements: Statements = {
    chain: await chainSays(input, users),
    log: await logSays(input),
    'write side': await writeSideSays(input.db),
    'read model': await readModelSays(input.db),
    rest: await restSays(input),
  }
  const differences = [...compare(statements), ...(await wrongReservations(input.db))]
  const positions = [...statements.chain.keys()].filter((name) => name.endsWith('size')).length
  return { users: users.length, positions, differences }
}

/** What a source does not mention is zero; REST has been asked about some users only. */
function compare({ chain, rest, ...inside }: Statements): string[] {
  const sources = { ...inside, REST: rest }
  const names = new Set([chain, ...Object.values(sources)].flatMap((statement) => [...statement.keys()]))
  return [...names].sort().flatMap((name) => {
    const expected = chain.get(name) ?? '0'
    const wrong = Object.entries(sources)
      .filter(([who]) => who !== 'REST' || rest.has(`${ownerOf(name)} free`))
      .map(([who, statement]) => `${who} ${statement.get(name) ?? '0'}`)
      .filter((said) => !said.endsWith(` ${expected}`))
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
): Promise<Statement> {
  const statement = new Map<string, string>()
  const bank = MarginBank__factory.connect(marginBank, provider)
  const traders = specs.map((spec) => ({
    spec,
    trader: IsolatedTrader__factory.connect(spec.trader, provider),
  }))
  for (const { user_id, address } of users) {
    const { free, pending } = await bank.account(address)
    put(statement, user(user_id), { free, pending })
    for (const { spec, trader } of traders) {
      const { size, entryNotional, margin } = await trader.position(address)
      put(statement, place(user_id, spec.marketId), { size, entry: entryNotional, margin })
    }
  }
  return statement
}

const PAGE = 2_000

async function logSays({ db, specs }: AuditInput): Promise<Statement> {
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

async function foldShard(db: Db, holdings: Holdings, shard: string, marketId: number): Promise<void> {
  for (let after = 0; ; ) {
    const rows = await readRows(db, shard, after, PAGE)
    for (const { row } of rows) fold(holdings, row, marketId)
    const last = rows.at(-1)
    if (last === undefined) return
    after = last.seq
  }
}

async function writeSideSays(db: Db): Promise<Statement> {
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

async function readModelSays(db: Db): Promise<Statement> {
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
    const { free_e18_raw, pending_withdrawals_e18_raw } = await client.balance()
    tell(statement, user(user_id), { free: free_e18_raw, pending: pending_withdrawals_e18_raw })
    for (const position of await client.positions()) {
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
async function wrongReservations(db: Db): Promise<string[]> {
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
