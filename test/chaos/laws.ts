/** Laws that hold once everything is healed and nothing trades. Each returns one line for each violation. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { ShadowRun } from '../../stack/shadow/shadow-run.ts'
import { differencesOf } from '../e2e/support/stack.ts'
import type { Command } from './commands.ts'
import type { Audited } from './exchange.ts'
import type { Load } from './load.ts'

/** Bound of the time to the next batch and to the next accepted order of each market. */
export const MOST_PAUSE_MS = 5_000
/** Until the transactions of relayers are mined. */
const NONCES_MS = 60_000
const PACE_MS = 250

type Law = (exchange: Audited, load: Load) => Promise<readonly string[]>

const LAWS: readonly (readonly [name: string, law: Law])[] = [
  ['books', (exchange) => differencesOf(exchange)],
  ['tables', ({ db }) => new ShadowRun(db).compare()],
  ['commands', (exchange, { commands }) => unaccounted(exchange, commands.all)],
  ['fills', ({ db }) => wrongFills(db)],
  ['reservations', ({ db }) => leftReservations(db)],
  ['liquidations', ({ db }) => doubleLiquidations(db)],
  ['nonces', wrongNonces],
  ['feed', (_, load) => load.feedDifferences()],
  ['waits', async (_, { commands }) => commands.problems()],
]

/** One line for each violation, with the name of its law. */
export async function violations(exchange: Audited, load: Load): Promise<readonly string[]> {
  const found: string[] = []
  for (const [name, law] of LAWS) {
    const lines = await law(exchange, load).catch((error: unknown) => [String(error)])
    found.push(...lines.map((line) => `${name}: ${line}`))
  }
  return found
}

interface StoredOrder {
  readonly hash: string
  readonly market_id: number
  readonly status: string
  /** Steps. */
  readonly filled: number
  readonly read_status: string | null
}

/**
 * An acknowledged order is stored, and shown by the read model; an acknowledged cancel has ended its order, without a fill after it; a refused
 * order is not stored.
 */
async function unaccounted({ db, specs }: Audited, commands: readonly Command[]): Promise<readonly string[]> {
  const hashes = [...new Set(commands.map(({ hash }) => hash))]
  const { rows } = await sql<StoredOrder>`
    select o.hash, o.market_id, o.status, o.filled, r.status as read_status
    from orders o left join read.orders r using (order_id) where o.hash = any(${hashes}::text[])
  `.execute(db)
  const stored = new Map(rows.map((row) => [row.hash, row]))
  return commands.flatMap(({ kind, hash, outcome, order }) => {
    const found = stored.get(hash)
    if (kind === 'place' && outcome === 'refused')
      return found === undefined ? [] : [`order ${hash} was refused and is ${found.status}`]
    if (outcome !== 'acknowledged') return []
    if (found === undefined) return [`the ${kind} of ${hash} was acknowledged, and the order is not stored`]
    if (found.status !== found.read_status)
      return [`order ${hash} is ${found.status}, and ${found.read_status} in the read model`]
    if (kind === 'place') return []
    if (!ENDED.has(found.status)) return [`the cancel of ${hash} was acknowledged, and it is ${found.status}`]
    const known = BigInt(order?.filled_quantity_e18_raw ?? 0) + BigInt(order?.settling_quantity_e18_raw ?? 0)
    const step = specs.find(({ marketId }) => marketId === found.market_id)?.step ?? 0n
    return BigInt(found.filled) * step > known
      ? [`${hash} has filled after the acknowledgement of its cancel`]
      : []
  })
}

const ENDED = new Set(['FILLED', 'CANCELLED', 'EXPIRED'])

/** No fill counts twice, every order is filled by the sum of its fills, and every batch by as much as it sells. */
async function wrongFills(db: Db): Promise<readonly string[]> {
  const { rows: orders } = await sql<{ order_id: string; filled: string; sum: string; quantity: string }>`
    select o.order_id, o.filled::text, coalesce(sum(f.steps), 0)::text as sum, o.quantity::text
    from read.orders o left join read.fills f on f.order_id = o.order_id and f.status in ('MINED', 'CONFIRMED')
    group by o.order_id having coalesce(sum(f.steps), 0) <> o.filled or o.filled > o.quantity
  `.execute(db)
  const { rows: parts } = await sql<{ market_id: number; batch_id: string; part: number }>`
    select market_id, batch_id::text, part from read.fills where status in ('MINED', 'CONFIRMED') and not forced
    group by market_id, batch_id, part
    having count(distinct tx_hash) > 1 or count(*) <> count(distinct (order_id, place))
  `.execute(db)
  const { rows: sums } = await sql<{ market_id: number; size: string }>`
    select market_id, sum(size)::text as size from read.positions group by market_id having sum(size) <> 0
  `.execute(db)
  const mismatches = await db.selectFrom('settlement_mismatches').select('failure_reason').execute()
  const closed = await db.selectFrom('markets').select('market_id').where('mode', '<>', 'open').execute()
  return [
    ...orders.map(
      ({ order_id, filled, sum, quantity }) =>
        `order ${order_id} has filled ${filled} of ${quantity}, its fills sum to ${sum}`,
    ),
    ...parts.map(
      ({ market_id, batch_id, part }) => `part ${part} of batch ${batch_id} of ${market_id} settled twice`,
    ),
    ...sums.map(({ market_id, size }) => `the positions of market ${market_id} sum to ${size} steps`),
    ...mismatches.map(({ failure_reason }) => `settlement mismatch: ${failure_reason}`),
    ...closed.map(({ market_id }) => `market ${market_id} is not open`),
  ]
}

/** No order is live, so nothing may be reserved. The audit compares the parts while there are any. */
async function leftReservations(db: Db): Promise<readonly string[]> {
  const { rows } = await sql<{ user_id: number; reserved: string }>`
    select user_id, reserved::text from read.balances b where reserved <> 0
      and not exists (select from orders o where o.user_id = b.user_id and ended_at is null)
      and not exists (select from adjustment_attempts a where a.user_id = b.user_id)
  `.execute(db)
  return rows.map(
    ({ user_id, reserved }) => `account ${user_id} has no live order and reserves ${reserved} wei`,
  )
}

/** A liquidation closes a position by one order at a time. */
async function doubleLiquidations(db: Db): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('orders')
    .select(['market_id', 'user_id'])
    .where('forced', '=', true)
    .where('ended_at', 'is', null)
    .groupBy(['market_id', 'user_id'])
    .having(({ fn }) => fn.countAll(), '>', 1)
    .execute()
  return rows.map(
    ({ market_id, user_id }) => `account ${user_id} has two forced orders in market ${market_id}`,
  )
}

/** Every relayer's next nonce is the chain's, and no nonce before it is missing or mined twice. Heartbeats go on: it may take some tries. */
async function wrongNonces(exchange: Audited): Promise<readonly string[]> {
  for (const end = performance.now() + NONCES_MS; ; await sleep(PACE_MS)) {
    const found = await nonceProblems(exchange)
    if (found.length === 0 || performance.now() > end) return found
  }
}

async function nonceProblems({ db, provider }: Audited): Promise<readonly string[]> {
  const { rows } = await sql<{ address: string; lane: string; next: number; gaps: number; twice: number }>`
    select address, lane, next_nonce::float8 as next,
      coalesce((select max(nonce) - min(nonce) + 1 - count(distinct nonce) from relayer_transactions t where t.relayer = r.address), 0)::float8 as gaps,
      (select count(*) from (select from relayer_transactions t where t.relayer = r.address and status in ('MINED', 'REVERTED')
        group by nonce having count(*) > 1) twice)::float8 as twice
    from relayers r
  `.execute(db)
  const lines = rows.map(async ({ address, lane, next, gaps, twice }) => {
    const used = await provider.getTransactionCount(address)
    return [
      ...(used === next ? [] : [`lane ${lane}: next nonce ${next}, the chain has used ${used}`]),
      ...(gaps === 0 ? [] : [`lane ${lane}: ${gaps} nonces have no transaction`]),
      ...(twice === 0 ? [] : [`lane ${lane}: ${twice} nonces are mined twice`]),
    ]
  })
  return (await Promise.all(lines)).flat()
}

/** The longest time without one of `times`, from the start to the end. */
export function longestPause(times: readonly number[], from: number, until: number): number {
  const within = times.filter((time) => time >= from && time <= until)
  const bounds = [from, ...within, until]
  return Math.max(...bounds.slice(1).map((time, index) => time - (bounds[index] as number)))
}
