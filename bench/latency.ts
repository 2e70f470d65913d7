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
import pg from 'pg'
import { Client } from '../client/client.ts'
import type { Market } from '../client/responses.ts'
import { roundPrice } from '../client/rounding.ts'
import type { Db } from '../db/client.ts'
import { readRows } from '../db/journal.ts'
import { marketShard } from '../domain/journal/journal-row.ts'
import type { Side } from '../domain/orders/order.ts'
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

interface Watched {
  readonly fills: ReadonlyMap<string, Seen>
  /** When the log said that a batch is settled. */
  readonly settledAt: ReadonlyMap<number, number>
  stop(): Promise<void>
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

/** Runs `look` now and after every call that came meanwhile, never twice at once. */
function coalesced(look: () => Promise<void>): () => void {
  let busy = false
  let again = false
  return async () => {
    again = true
    if (busy) return
    busy = true
    while (again) {
      again = false
      await look()
    }
    busy = false
  }
}

/** Looks at the newest fills whenever the projector says that it has committed some, and at settlements when the log grows. */
async function watch({ db, postgres }: Stack): Promise<Watched> {
  const fills = new Map<string, Seen>()
  const settledAt = new Map<number, number>()
  const client = new pg.Client(postgres.url)
  await client.connect()
  let [firstBatch, lastRow] = [0, 0]

  const lookAtFills = coalesced(async () => {
    const rows = await newestFills(db, firstBatch)
    const now = Date.now()
    for (const { fill_id, order_id, batch_id, status } of rows) {
      const known = fills.get(fill_id) ?? {
        orderId: order_id,
        batchId: batch_id,
        readableAt: now,
        minedAt: null,
      }
      if (known.minedAt === null && (status === 'MINED' || status === 'CONFIRMED')) known.minedAt = now
      fills.set(fill_id, known)
      firstBatch = Math.max(firstBatch, batch_id - 20)
    }
  })
  const lookAtLog = coalesced(async () => {
    const rows = await readRows(db, marketShard(MARKET), lastRow, 10_000)
    const now = Date.now()
    for (const { row } of rows) if (row.kind === 'part_settled') settledAt.set(row.batch_id, now)
    lastRow = rows.at(-1)?.seq ?? lastRow
  })
  client.on('notification', ({ channel, payload }) => {
    if (!payload?.startsWith(`${marketShard(MARKET)}:`)) return
    if (channel === 'projected') lookAtFills()
    else lookAtLog()
  })
  await client.query('listen projected; listen journal')
  return { fills, settledAt, stop: () => client.end() }
}

const newestFills = (db: Db, since: number) =>
  db
    .selectFrom('read.fills')
    .select(['fill_id', 'order_id', 'batch_id', 'status'])
    .where('market_id', '=', MARKET)
    .where('batch_id', '>=', since)
    .execute()

/** Every second account buys, the others sell, so that none meets itself. */
async function send(stack: Stack, { rate, seconds, warmup }: Run) {
  const { base_url, accounts } = stack.file
  const clients = accounts.map(
    ({ private_key, api_key }) => new Client({ baseUrl: base_url, privateKey: private_key, apiKey: api_key }),
  )
  let market = await (clients[0] as Client).marketData.market(MARKET)
  const samples = new Map<string, Sample>()
  const refused = new Map<string, number>()
  const flying: Promise<void>[] = []
  const began = Date.now()
  const total = rate * (seconds + warmup)

  for (let index = 0; index < total; index++) {
    await sleep(Math.max(0, began + (1000 * index) / rate - Date.now()))
    if (index % rate === 0) market = await (clients[0] as Client).marketData.market(MARKET)
    const client = clients[index % clients.length] as Client
    const side = index % 2 === 0 ? 'LONG' : 'SHORT'
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
    const order = await client.orders.sign({ marketId: MARKET, side, price, quantity: QUANTITY, leverage: 5 })
    const sentAt = Date.now()
    const { order: accepted } = await client.orders.send(order)
    samples.set(accepted.order_id, { sentAt, answeredAt: Date.now() })
  } catch (error) {
    const code = (error as { code?: string }).code ?? String(error)
    refused.set(code, (refused.get(code) ?? 0) + 1)
  }
}

type Stage = 'answered' | 'batch' | 'fill readable' | 'settled' | 'settlement readable'

/** Milliseconds per stage of each order's first fill; all but the first from its acceptance on. */
async function stages(db: Db, samples: ReadonlyMap<string, Sample>, { fills, settledAt }: Watched) {
  const batches = await db
    .selectFrom('batches')
    .select(['batch_id', 'created_at'])
    .where('market_id', '=', MARKET)
    .execute()
  const matchedAt = new Map(batches.map(({ batch_id, created_at }) => [batch_id, created_at]))
  const orders = await db
    .selectFrom('orders')
    .select(['order_id', 'accepted_at'])
    .where('market_id', '=', MARKET)
    .execute()
  const acceptedAt = new Map(orders.map(({ order_id, accepted_at }) => [order_id, accepted_at]))
  const times: Record<Stage, number[]> = {
    answered: [...samples.values()].map(({ sentAt, answeredAt }) => answeredAt - sentAt),
    batch: [],
    'fill readable': [],
    settled: [],
    'settlement readable': [],
  }
  const first = new Set<string>()
  for (const { orderId, batchId, readableAt, minedAt } of fills.values()) {
    const accepted = acceptedAt.get(orderId)
    if (!samples.has(orderId) || first.has(orderId) || accepted === undefined) continue
    first.add(orderId)
    times.batch.push((matchedAt.get(batchId) ?? Number.NaN) - accepted)
    times['fill readable'].push(readableAt - accepted)
    times.settled.push((settledAt.get(batchId) ?? Number.NaN) - accepted)
    times['settlement readable'].push((minedAt ?? Number.NaN) - accepted)
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
  console.log(
    `\n${rate} orders/s for ${seconds} s; answered: since it was sent; the others: since it was accepted`,
  )
  console.table(figures)
  console.log(
    JSON.stringify({ bench: 'latency', rate, seconds, refused: Object.fromEntries(refused), figures }),
  )
}

const run = readFlags()
const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-latency-'))
const stack = await startStack({ port: 0, dataDir, fresh: false, bots: false }, console.log)
try {
  const watched = await watch(stack)
  const { samples, refused } = await send(stack, run)
  await sleep(3_000)
  await watched.stop()
  print(run, await stages(stack.db, samples, watched), refused)
} finally {
  await stack.stop()
  rmSync(dataDir, { recursive: true, force: true })
}
