/**
 * Measures an order's stages under crossing flow: response, batch, fill readable, settled on chain, settlement
 * readable.
 */
// npm run bench:latency -- [--rate 100] [--seconds 20] [--warmup 5]
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Client } from '../client/client.ts'
import type { Market } from '../client/responses.ts'
import { roundPrice } from '../client/rounding.ts'
import type { Db } from '../db/client.ts'
import { readRows } from '../db/journal.ts'
import { PROJECTED_CHANNEL } from '../db/projected-notices.ts'
import { marketShard } from '../domain/journal/journal-row.ts'
import type { Side } from '../domain/orders/order.ts'
import { argumentsOf, positiveNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { type Stack, startStack } from '../stack/stack.ts'

const MARKET = 1
const QUANTITY = '0.01'
/** Distance by which each limit crosses the oracle price, as a fraction of it: far enough that every batch fills every order. */
const CROSSING = 0.001

interface Sample {
  readonly sentAt: number
  answeredAt: number
}

/** When a fill was first read from the read model, and first read as mined. */
interface FillTimes {
  readonly orderId: string
  readonly batchId: number
  readonly readableAt: number
  minedAt: number | null
}

interface StageWatch {
  readonly fills: ReadonlyMap<string, FillTimes>
  /** By batch id: when the batch's `part_settled` row was read from the journal. */
  readonly settledAt: ReadonlyMap<number, number>
  stop(): Promise<void>
}

interface Run {
  readonly rate: number
  readonly seconds: number
  readonly warmup: number
}

const readFlags = (): Run =>
  argumentsOf({
    command: 'npm run bench:latency --',
    flags: {
      rate: withDefault(positiveNumber('orders per second'), 100),
      seconds: withDefault(positiveNumber('duration of the measurement'), 20),
      warmup: withDefault(positiveNumber('seconds before the measurement'), 5),
    },
  })

/** Runs `read` now, and once more if it was called again meanwhile; never concurrently. */
function coalesced(read: () => Promise<void>): () => void {
  let busy = false
  let again = false
  return async () => {
    again = true
    if (busy) return
    busy = true
    while (again) {
      again = false
      await read()
    }
    busy = false
  }
}

/** Reads the newest fills at each notification of the projector, and settlements at each notification of the journal. */
async function watch({ db, postgres }: Stack): Promise<StageWatch> {
  const fills = new Map<string, FillTimes>()
  const settledAt = new Map<number, number>()
  const client = new pg.Client(postgres.url)
  await client.connect()
  let [firstBatch, lastRow] = [0, 0]

  const readFills = coalesced(async () => {
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
  const readJournal = coalesced(async () => {
    const rows = await readRows(db, marketShard(MARKET), lastRow, 10_000)
    const now = Date.now()
    for (const { row } of rows) if (row.kind === 'part_settled') settledAt.set(row.batch_id, now)
    lastRow = rows.at(-1)?.seq ?? lastRow
  })
  client.on('notification', ({ channel, payload }) => {
    if (channel === PROJECTED_CHANNEL) readFills()
    else if (payload?.startsWith(`${marketShard(MARKET)}:`)) readJournal()
  })
  await client.query(`listen ${PROJECTED_CHANNEL}; listen journal`)
  return { fills, settledAt, stop: () => client.end() }
}

const newestFills = (db: Db, since: number) =>
  db
    .selectFrom('read.fills')
    .select(['fill_id', 'order_id', 'batch_id', 'status'])
    .where('market_id', '=', MARKET)
    .where('batch_id', '>=', since)
    .execute()

/** Every second account buys and every other account sells, so that no account trades with itself. */
async function send(stack: Stack, { rate, seconds, warmup }: Run) {
  const { base_url, accounts } = stack.file
  const clients = accounts.map(
    ({ private_key, api_key }) => new Client({ baseUrl: base_url, privateKey: private_key, apiKey: api_key }),
  )
  let market = await (clients[0] as Client).marketData.market(MARKET)
  const samples = new Map<string, Sample>()
  const rejected = new Map<string, number>()
  const inFlight: Promise<void>[] = []
  const began = Date.now()
  const total = rate * (seconds + warmup)

  for (let index = 0; index < total; index++) {
    await sleep(Math.max(0, began + (1000 * index) / rate - Date.now()))
    if (index % rate === 0) market = await (clients[0] as Client).marketData.market(MARKET)
    const client = clients[index % clients.length] as Client
    const side = index % 2 === 0 ? 'LONG' : 'SHORT'
    const counted = Date.now() - began > warmup * 1000
    inFlight.push(place(client, market, side, counted ? samples : new Map(), rejected))
  }
  await Promise.all(inFlight)
  return { samples, rejected, lasted: Date.now() - began }
}

async function place(
  client: Client,
  market: Market,
  side: Side,
  samples: Map<string, Sample>,
  rejected: Map<string, number>,
): Promise<void> {
  const factor = 1 + (side === 'LONG' ? CROSSING : -CROSSING)
  const price = roundPrice(market, ((market.oracle_price ?? 0) * factor).toFixed(6), side)
  try {
    const order = await client.orders.sign({ marketId: MARKET, side, price, quantity: QUANTITY, leverage: 5 })
    const sentAt = Date.now()
    const { order: accepted } = await client.orders.send(order)
    samples.set(accepted.order_id, { sentAt, answeredAt: Date.now() })
  } catch (error) {
    const code = (error as { code?: string }).code ?? String(error)
    rejected.set(code, (rejected.get(code) ?? 0) + 1)
  }
}

type Stage = 'response' | 'batch' | 'fill readable' | 'settled' | 'settlement readable'

/** Milliseconds per stage of each order's first fill. `response` is measured from sending, every other stage from acceptance. */
async function stages(db: Db, samples: ReadonlyMap<string, Sample>, { fills, settledAt }: StageWatch) {
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
    response: [...samples.values()].map(({ sentAt, answeredAt }) => answeredAt - sentAt),
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
  rejected: ReadonlyMap<string, number>,
): void {
  const figures = Object.entries(times).map(([stage, values]) => ({
    stage,
    samples: values.length,
    p50_ms: percentile(values, 0.5),
    p99_ms: percentile(values, 0.99),
    max_ms: percentile(values, 1),
  }))
  console.log(
    `\n${rate} orders/s for ${seconds} s; "response" is measured from sending, every other stage from acceptance`,
  )
  console.table(figures)
  console.log(
    JSON.stringify({ bench: 'latency', rate, seconds, rejected: Object.fromEntries(rejected), figures }),
  )
}

const run = readFlags()
const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-latency-'))
const stack = await startStack(
  { port: 0, dataDir, fresh: false, bots: false, backstop: false, savesChain: false },
  console.log,
)
try {
  const watched = await watch(stack)
  const { samples, rejected } = await send(stack, run)
  await sleep(3_000)
  await watched.stop()
  print(run, await stages(stack.db, samples, watched), rejected)
} finally {
  await stack.stop()
  rmSync(dataDir, { recursive: true, force: true })
}
