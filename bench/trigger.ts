/**
 * Measures how soon a conditional order enters the book after the mark crosses its trigger. Fails if a triggered order
 * is missing from its batch. All times are the journal's.
 */

// npm run bench:trigger -- [--stops 40] [--seconds 30]
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '../client/client.ts'
import { fromE18 } from '../client/decimals.ts'
import type { NewOrder } from '../client/order-factory.ts'
import { waitFor } from '../client/wait-for.ts'
import { readRows } from '../db/journal.ts'
import type { BatchCleared } from '../domain/journal/batch-rows.ts'
import { marketShard, type OrderTriggered } from '../domain/journal/journal-row.ts'
import { argumentsOf, positiveNumber, wholeNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { type Stack, startStack } from '../stack/stack.ts'

const MARKET = 1
const QUANTITY = '0.001'
/** Ticks between two triggers, and from the mark price to the resting orders. */
const SPACING = 5
const DEPTH = 5_000

const { stops, seconds } = argumentsOf({
  command: 'npm run bench:trigger --',
  flags: {
    stops: withDefault(wholeNumber('number of conditional orders', { least: 1 }), 40),
    seconds: withDefault(positiveNumber('bound of the time in which they trigger'), 30),
  },
})

const traderOn = ({ file }: Stack, index: number): Client => {
  const account = file.accounts[index]
  if (account === undefined) throw new Error(`the stack has no account ${index}`)
  const { api_key: apiKey, private_key: privateKey } = account
  return new Client({ baseUrl: file.base_url, apiKey, privateKey })
}

async function fillBook(maker: Client, stopper: Client): Promise<void> {
  const market = await waitFor(
    () => maker.marketData.market(MARKET),
    ({ mark_price_e18_raw }) => mark_price_e18_raw !== null,
  )
  const tick = BigInt(market.tick_size_e18_raw)
  const mark = BigInt(market.mark_price_e18_raw ?? 0) / tick
  const at = (ticks: number): string => fromE18((mark + BigInt(ticks)) * tick)
  await maker.orders.placeBatch([
    { marketId: MARKET, side: 'LONG', price: at(-DEPTH), quantity: '1', leverage: 2 },
    { marketId: MARKET, side: 'SHORT', price: at(DEPTH), quantity: '1', leverage: 2 },
  ])
  const stopAt = (n: number): NewOrder => {
    const isBuy = n % 2 === 0
    const distance = SPACING * (1 + Math.floor(n / 2))
    return {
      ...{ marketId: MARKET, side: isBuy ? 'LONG' : 'SHORT', type: 'STOP_MARKET', quantity: QUANTITY },
      trigger: at(isBuy ? distance : -distance),
    }
  }
  for (let n = 0; n < stops; n += 50) {
    const batch = Array.from({ length: Math.min(50, stops - n) }, (_, at) => stopAt(n + at))
    const { refused, results } = await stopper.orders.placeBatch(batch)
    if (refused > 0) throw new Error(JSON.stringify(results.find((result) => 'error' in result)))
  }
}

interface Triggered {
  readonly row: OrderTriggered
  /** The next batch after the trigger; null if there was none. */
  readonly batch: BatchCleared | null
}

async function triggeredIn({ db }: Stack): Promise<Triggered[]> {
  const rows = (await readRows(db, marketShard(MARKET), 0, 1_000_000)).map(({ row }) => row)
  const batches = new Map(rows.flatMap((row) => (row.kind === 'batch_cleared' ? [[row.batch_id, row]] : [])))
  return rows.flatMap((row) =>
    row.kind === 'order_triggered' ? [{ row, batch: batches.get(row.batch_id) ?? null }] : [],
  )
}

const line = (times: readonly number[]) => ({
  'p50 ms': percentile(times, 0.5),
  'p99 ms': percentile(times, 0.99),
  'max ms': percentile(times, 1),
})

const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-trigger-'))
const stack = await startStack(
  { port: 0, dataDir, fresh: false, bots: false, backstop: false, savesChain: false },
  () => {},
)
try {
  await fillBook(traderOn(stack, 0), traderOn(stack, 1))
  await sleep(seconds * 1000)
  const triggered = await triggeredIn(stack)
  const batched = triggered.filter(({ batch }) => batch !== null)
  const missing = batched.filter(
    ({ row, batch }) => !batch?.fills.some(({ order_id }) => order_id === row.order_id),
  )
  const counts = { triggered: triggered.length, 'in the next batch': batched.length - missing.length }
  const times = {
    'price observed → in the book': line(triggered.map(({ row }) => row.at - row.oracle_at)),
    'in the book → batch': line(batched.map(({ row, batch }) => (batch as BatchCleared).as_of - row.at)),
  }
  console.table(times)
  console.log(counts)
  console.log(JSON.stringify({ bench: 'trigger', stops, seconds, ...counts, ...times }))
  if (missing.length > 0) throw new Error(`${missing.length} triggered orders are not in their batch`)
} finally {
  await stack.stop()
  rmSync(dataDir, { recursive: true, force: true })
}
