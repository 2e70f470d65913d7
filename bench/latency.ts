/**
 * How long an order takes: accepted, matched in a batch, settled on the chain, readable. Starts a stack of its own, sends buys and
 * sells that cross at a fixed rate, and watches the read model through its notifications.
 *
 *   npm run bench:latency -- [--rate 100] [--seconds 20] [--warmup 5]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { sql } from 'kysely'
import pg from 'pg'
import type { Market } from '../client/answers.ts'
import { Client } from '../client/client.ts'
import { roundPrice } from '../client/rounding.ts'
import type { Side } from '../domain/order.ts'
import type { Db } from '../indexer/db/client.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { type Stack, startStack } from '../stack/stack.ts'

const MARKET = 1
const QUANTITY = '0.01'
/** Far enough through the oracle price that every batch clears everything. */
const THROUGH = 0.001

interface Sample {
  readonly sentAt: number
  answeredAt: number
}

/** When a fill was first seen in the read model, and first seen there as mined. */
interface Seen {
  readonly orderId: string
  readonly batchId: number
  readonly readableAt: number
  minedAt: number | null
}

interface Run {
  readonly rate: number
  readonly seconds: number
  readonly warmup: number
}

function readFlags(): Run {
  const text = { type: 'string' } as const
  const { values } = parseArgs({ options: { rate: text, seconds: text, warmup: text } })
  const { rate = '100', seconds = '20', warmup = '5' } = values
  return { rate: Number(rate), seconds: Number(seconds), warmup: Number(warmup) }
}

/** Looks at the newest fills whenever the projector says that it has committed some. */
async function watchFills(
  stack: Stack,
): Promise<{ readonly seen: Map<string, Seen>; stop(): Promise<void> }> {
  const seen = new Map<string, Seen>()
  const client = new pg.Client(stack.postgres.url)
  await client.connect()
  let since = 0
  let busy = false
  let again = false
  const look = async (): Promise<void> => {
    again = true
    if (busy) return
    busy = true
    while (again) {
      again = false
      const rows = await newestFills(stack.db, since)
      const now = Date.now()
      for (const { fill_id, order_id, batch_id, status } of rows) {
        const known = seen.get(fill_id) ?? {
          orderId: order_id,
          batchId: batch_id,
          readableAt: now,
          minedAt: null,
        }
        if (known.minedAt === null && (status === 'MINED' || status === 'CONFIRMED')) known.minedAt = now
        seen.set(fill_id, known)
        since = Math.max(since, batch_id - 50)
      }
    }
    busy = false
  }
  client.on('notification', ({ payload }) => {
    if (payload?.startsWith(`m${MARKET}:`)) void look()
  })
  await client.query('listen projected')
  return { seen, stop: () => client.end() }
}

const newestFills = (db: Db, since: number) =>
  db
    .selectFrom('read.fills')
    .select(['fill_id', 'order_id', 'batch_id', 'status'])
    .where('market_id', '=', MARKET)
    .where('batch_id', '>=', since)
    .execute()

/** Alternates sides over all accounts, at the market's present price. */
async function send(stack: Stack, { rate, seconds, warmup }: Run) {
  const { base_url, accounts } = stack.file
  const clients = accounts.map(
    ({ private_key, api_key }) => new Client({ baseUrl: base_url, privateKey: private_key, apiKey: api_key }),
  )
  let market = await (clients[0] as Client).market(MARKET)
  const samples = new Map<string, Sample>()
  const refused = new Map<string, number>()
  const flying: Promise<void>[] = []
  const began = Date.now()
  const total = rate * (seconds + warmup)

  for (let index = 0; index < total; index++) {
    await sleep(Math.max(0, began + (1000 * index) / rate - Date.now()))
    if (index % rate === 0) market = await (clients[0] as Client).market(MARKET)
    const client = clients[index % clients.length] as Client
    // The side changes with each account and each round, so that positions stay small.
    const side = (index + Math.floor(index / clients.length)) % 2 === 0 ? 'LONG' : 'SHORT'
    const counted = Date.now() - began > warmup * 1000
    flying.push(place(client, market, side, counted ? samples : new Map(), refused))
  }
  await Promise.all(flying)
  return { samples, refused, lasted: Date.now() - began }
}

async function place(
  client: Client,
  market: Market,
  side: Side,
  samples: Map<string, Sample>,
  refused: Map<string, number>,
): Promise<void> {
  const through = 1 + (side === 'LONG' ? THROUGH : -THROUGH)
  const price = roundPrice(market, ((market.oracle_price ?? 0) * through).toFixed(6), side)
  try {
    const order = await client.sign({ marketId: MARKET, side, price, quantity: QUANTITY, leverage: 5 })
    const sentAt = Date.now()
    const { order: accepted } = await client.send(order)
    samples.set(accepted.order_id, { sentAt, answeredAt: Date.now() })
  } catch (error) {
    const code = (error as { code?: string }).code ?? String(error)
    refused.set(code, (refused.get(code) ?? 0) + 1)
  }
}

type Stage = 'accepted' | 'batch' | 'fill readable' | 'settled' | 'settlement readable'

/** Milliseconds per stage of each order's first fill; all but the first from its acceptance on. */
async function stages(db: Db, samples: ReadonlyMap<string, Sample>, seen: ReadonlyMap<string, Seen>) {
  const { rows: batches } = await sql<{ batch_id: number; created_at: number; mined_at: number | null }>`
    select b.batch_id, b.created_at, (select max((l.row->>'at')::bigint) from shard_log l
      where l.shard = ${`m${MARKET}`} and l.row->>'kind' = 'part_settled' and (l.row->>'batch_id')::bigint = b.batch_id) as mined_at
    from batches b where b.market_id = ${MARKET}
  `.execute(db)
  const batchOf = new Map(batches.map((batch) => [batch.batch_id, batch]))
  const orders = await db
    .selectFrom('orders')
    .select(['order_id', 'accepted_at'])
    .where('market_id', '=', MARKET)
    .execute()
  const acceptedAt = new Map(orders.map(({ order_id, accepted_at }) => [order_id, accepted_at]))
  const times: Record<Stage, number[]> = {
    accepted: [],
    batch: [],
    'fill readable': [],
    settled: [],
    'settlement readable': [],
  }
  for (const { sentAt, answeredAt } of samples.values()) times.accepted.push(answeredAt - sentAt)
  const first = new Set<string>()
  for (const { orderId, batchId, readableAt, minedAt } of seen.values()) {
    const accepted = acceptedAt.get(orderId)
    const batch = batchOf.get(batchId)
    if (!samples.has(orderId) || first.has(orderId) || accepted === undefined || batch === undefined) continue
    first.add(orderId)
    times.batch.push(batch.created_at - accepted)
    times['fill readable'].push(readableAt - accepted)
    if (batch.mined_at !== null) times.settled.push(batch.mined_at - accepted)
    if (minedAt !== null) times['settlement readable'].push(minedAt - accepted)
  }
  return times
}

function print(
  { rate, seconds }: Run,
  times: Record<Stage, number[]>,
  refused: ReadonlyMap<string, number>,
): void {
  const figures = Object.entries(times).map(([stage, values]) => ({
    stage,
    samples: values.length,
    p50_ms: percentile(values, 0.5),
    p99_ms: percentile(values, 0.99),
    max_ms: percentile(values, 1),
  }))
  console.log(`\n${rate} orders/s for ${seconds} s; accepted: request to answer, the others since acceptance`)
  console.table(figures)
  console.log(
    JSON.stringify({ bench: 'latency', rate, seconds, refused: Object.fromEntries(refused), figures }),
  )
}

const run = readFlags()
const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-latency-'))
const stack = await startStack({ port: 0, dataDir, fresh: false, bots: false }, console.log)
try {
  const watched = await watchFills(stack)
  const { samples, refused } = await send(stack, run)
  await sleep(3_000)
  await watched.stop()
  print(run, await stages(stack.db, samples, watched.seen), refused)
} finally {
  await stack.stop()
  rmSync(dataDir, { recursive: true, force: true })
}
