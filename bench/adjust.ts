/**
 * Measures margin adjustments under a load of orders, from acceptance to commit. Fails if one is not committed, or if a
 * quantile misses its target.
 */
// npm run bench:adjust -- [--rate 10] [--orders 200] [--seconds 30]
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Client } from '../client/client.ts'
import { roundPrice } from '../client/rounding.ts'
import { ADJUSTMENT_ENDS_CHANNEL } from '../db/adjustments.ts'
import { CHAIN_CHANNEL } from '../db/relayers.ts'
import { toHex } from '../domain/hex.ts'
import { argumentsOf, positiveNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { startComplete } from './intake/complete-target.ts'
import { startGenerator } from './intake/generator.ts'
import { accountOf } from './intake/orders.ts'
import type { Target } from './intake/target.ts'

const MARKET = 1
/** Accounts with a position. Each has one adjustment in flight at most, and places no orders meanwhile. */
const ADJUSTERS = 64
const TARGET = { p50_ms: 300, p99_ms: 800 }
/** Seconds of orders, and of unmeasured adjustments, before the measurement. */
const WARM_UP = 5

interface Run {
  readonly rate: number
  readonly orders: number
  readonly seconds: number
}

function readFlags(): Run {
  const { rate, orders, seconds } = argumentsOf({
    command: 'npm run bench:adjust --',
    flags: {
      rate: withDefault(positiveNumber('adjustments per second'), 10),
      orders: withDefault(positiveNumber('orders per second'), 200),
      seconds: withDefault(positiveNumber('duration of the measurement'), 30),
    },
  })
  return { rate, orders, seconds }
}

const adjustersOf = ({ port, keys }: Target): Client[] =>
  keys.slice(0, ADJUSTERS).map((apiKey, index) => {
    const privateKey = toHex(accountOf(index).key)
    return new Client({ baseUrl: `http://127.0.0.1:${port}`, privateKey, apiKey })
  })

/** Every second account buys from the next account. */
async function openPositions(clients: readonly Client[]): Promise<void> {
  const market = await (clients[0] as Client).marketData.market(MARKET)
  const price = roundPrice(market, (market.oracle_price ?? 0).toFixed(6), 'LONG')
  await Promise.all(
    clients.map(async ({ orders }, index) => {
      const side = index % 2 === 0 ? 'LONG' : 'SHORT'
      const placed = await orders.place({ marketId: MARKET, side, price, quantity: '0.1', leverage: 5 })
      const isFilled = ({ status }: { readonly status: string }) => status === 'FILLED'
      await orders.waitFor(placed, isFilled, 60_000)
    }),
  )
}

/** When the process was notified of the end of an attempt, by its id, and first of a receipt in a block, by its number. */
interface ChainWatch {
  readonly endedAt: ReadonlyMap<string, number>
  readonly receiptAt: ReadonlyMap<string, number>
  stop(): Promise<void>
}

async function watch({ databaseUrl }: Target): Promise<ChainWatch> {
  const endedAt = new Map<string, number>()
  const receiptAt = new Map<string, number>()
  const client = new pg.Client(databaseUrl)
  await client.connect()
  client.on('notification', ({ channel, payload = '' }) => {
    const times = channel === CHAIN_CHANNEL ? receiptAt : endedAt
    if (!times.has(payload)) times.set(payload, Date.now())
  })
  await client.query(`listen ${CHAIN_CHANNEL}; listen ${ADJUSTMENT_ENDS_CHANNEL}`)
  return { endedAt, receiptAt, stop: () => client.end() }
}

interface Sample {
  readonly adjustmentId: string
  readonly sentAt: number
  readonly answeredAt: number
}

/** Open loop: an adjustment is due at its time whether or not those before it are answered. */
async function adjust(clients: readonly Client[], { rate, seconds }: Run) {
  const samples: Sample[] = []
  const failures: Record<string, number> = {}
  const one = async (client: Client, amount: bigint, isCounted: boolean): Promise<void> => {
    try {
      const signed = await client.adjustments.signMargin(MARKET, amount)
      const sentAt = Date.now()
      const { adjustment_id: adjustmentId } = await client.adjustments.send(signed)
      if (isCounted) samples.push({ adjustmentId, sentAt, answeredAt: Date.now() })
    } catch (error) {
      const code = (error as { code?: string }).code ?? String(error)
      failures[code] = (failures[code] ?? 0) + 1
    }
  }
  const inFlight: Promise<void>[] = []
  const began = Date.now()
  for (let index = 0; index < rate * (WARM_UP + seconds); index++) {
    const dueMs = (1000 * index) / rate
    await sleep(Math.max(0, began + dueMs - Date.now()))
    const round = Math.floor(index / clients.length)
    const amount = 10n ** 18n * (round % 2 === 0 ? 10n : -5n)
    inFlight.push(one(clients[index % clients.length] as Client, amount, dueMs >= WARM_UP * 1000))
  }
  await Promise.all(inFlight)
  return { samples, failures }
}

type Stage = 'signed' | 'receipt' | 'committed' | 'accepted to committed' | 'request to answer'

/**
 * Milliseconds since the previous stage. The signature's time is by the keeper's clock, which follows the database's.
 */
async function stagesOf(
  { db }: Target,
  samples: readonly Sample[],
  { endedAt, receiptAt }: ChainWatch,
): Promise<Record<Stage, number[]>> {
  const rows = await db
    .selectFrom('adjustment_attempts as a')
    .innerJoin('relayer_transactions as t', 't.tx_hash', 'a.tx_hash')
    .select(['a.adjustment_id', 'a.created_at', 't.signed_at', 't.block'])
    .where('a.status', '=', 'COMMITTED')
    .execute()
  const found = new Map(rows.map((row) => [row.adjustment_id, row]))
  const times: Record<Stage, number[]> = {
    ...{ signed: [], receipt: [], committed: [] },
    ...{ 'accepted to committed': [], 'request to answer': [] },
  }
  for (const { adjustmentId, sentAt, answeredAt } of samples) {
    const row = found.get(adjustmentId)
    if (row === undefined) throw new Error(`${adjustmentId} was answered, but has no committed attempt`)
    const ended = endedAt.get(adjustmentId) ?? Number.NaN
    const receipt = receiptAt.get(String(row.block)) ?? Number.NaN
    times.signed.push(row.signed_at - row.created_at)
    times.receipt.push(receipt - row.signed_at)
    times.committed.push(ended - receipt)
    times['accepted to committed'].push(ended - row.created_at)
    times['request to answer'].push(answeredAt - sentAt)
  }
  return times
}

/** Returns whether the targets are met. */
function print(
  run: Run,
  times: Record<Stage, number[]>,
  failures: Readonly<Record<string, number>>,
): boolean {
  const figures = Object.entries(times).map(([stage, values]) => ({
    ...{ stage, samples: values.length },
    ...{ p50_ms: percentile(values, 0.5), p99_ms: percentile(values, 0.99), max_ms: percentile(values, 1) },
  }))
  console.table(figures)
  console.log(JSON.stringify({ bench: 'adjust', ...run, failures, figures, target: TARGET }))
  const total = figures.find(({ stage }) => stage === 'accepted to committed')
  if (total === undefined || Object.keys(failures).length > 0) return false
  return total.p50_ms < TARGET.p50_ms && total.p99_ms < TARGET.p99_ms
}

const run = readFlags()
const target = await startComplete()
const generator = startGenerator()
try {
  const clients = adjustersOf(target)
  await openPositions(clients)
  const watched = await watch(target)
  const load = { name: 'orders', kind: 'open', rate: run.orders, seconds: run.seconds + 2 * WARM_UP } as const
  const keys = target.keys.slice(ADJUSTERS)
  const { port, markets } = target
  const started = Promise.withResolvers<void>()
  const placed = generator.run({ port, keys, markets, run: load, firstAccount: ADJUSTERS }, started.resolve)
  await started.promise
  const { samples, failures } = await adjust(clients, run)
  const { accepted, rejected } = await placed
  console.log(`${accepted} orders accepted, ${rejected} rejected`)
  await watched.stop()
  if (!print(run, await stagesOf(target, samples, watched), failures)) process.exitCode = 1
} finally {
  generator.stop()
  await target.stop()
}
