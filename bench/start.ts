/**
 * Measures the start of a market's auction: a keeper without memory gets the lease, reads 100,000 open orders and the open positions under
 * the shard's lock, builds the book and runs its first auction. Each start runs in a thread of its own, so that no code is compiled before.
 * Prints a table with wall time and CPU time of the thread's process, and one JSON line.
 *
 *   npm run bench:start -- [--orders 100000] [--accounts 200000] [--starts 5]
 */
import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { sql } from 'kysely'
import { createDb, createPool } from '../db/client.ts'
import { createLeases } from '../db/leases.ts'
import { createAuction } from '../keeper/auction/auction.ts'
import { createMarketMemory } from '../keeper/auction/market-memory.ts'
import type { AuctionStore } from '../keeper/auction/ports.ts'
import { createAuctionStore } from '../keeper/auction/store.ts'
import { argumentsOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { MarketFixture, NO_METRICS, RULES, SILENT_LOGGER } from '../test/keeper/support/market-fixture.ts'
import { perpetual } from '../test/support/markets.ts'
import { openOrdersSql } from '../test/support/open-orders.ts'

// The flag of every process: see `service/process.ts`.
setFlagsFromString('--no-allocation-site-pretenuring')

/** Accounts with open orders and an open position. */
const HOLDERS = 5_000
const STEPS = ['read', 'total'] as const

interface Cost {
  readonly wallMs: number
  readonly userMs: number
}
type Start = Readonly<Record<(typeof STEPS)[number], Cost>>

async function measure<Value>(work: () => Promise<Value>): Promise<{ value: Value; cost: Cost }> {
  const cpu = process.cpuUsage()
  const start = performance.now()
  const value = await work()
  return { value, cost: { wallMs: performance.now() - start, userMs: process.cpuUsage(cpu).user / 1000 } }
}

async function startOnce(url: string, now: number): Promise<Start> {
  const db = createDb(createPool({ url, connections: 2, name: 'bench' }))
  const fence = await createLeases(db, `starter ${performance.now()}`, 1).acquire('auction:m1')
  if (fence === null) throw new Error('the lease of the previous start has not expired')
  const store = createAuctionStore(db, () => sql<number>`${now}::bigint`)
  let read: Cost | null = null
  const transaction: AuctionStore['transaction'] = (marketId, own, work) =>
    store.transaction(marketId, own, (inner) =>
      work({
        ...inner,
        async loadBook() {
          const { value, cost } = await measure(() => inner.loadBook())
          read = cost
          return value
        },
      }),
    )
  const clock = { now: () => now as never }
  const ports = {
    ...{ store: { ...store, transaction }, clock, headTime: clock.now, killPoint: () => {}, wake: () => {} },
    ...{ metrics: NO_METRICS, logger: SILENT_LOGGER },
  }
  const memory = createMarketMemory({ ...RULES, kind: perpetual.kind })
  const { cost: total } = await measure(() => createAuction(ports, perpetual, memory).run(fence))
  await db.destroy()
  if (read === null || memory.view === null) throw new Error('the start did not load the book')
  return { read, total }
}

async function main(): Promise<void> {
  const count = (help: string) => wholeNumber(help, { least: 1 })
  const { orders, accounts, starts } = argumentsOf({
    command: 'npm run bench:start --',
    flags: {
      orders: withDefault(count('number of open orders'), 100_000),
      accounts: withDefault(count(`number of accounts, at least ${HOLDERS}`), 200_000),
      starts: withDefault(count('number of measured starts'), 5),
    },
  })
  const fixture = await MarketFixture.open(perpetual)
  await fixture.report(1000)
  await sql.raw(openOrdersSql(orders, accounts, fixture.clock.now())).execute(fixture.db)
  await sql`vacuum analyze`.execute(fixture.db)
  const measured: Start[] = []
  for (let start = 0; start < starts; start++) {
    const worker = new Worker(new URL(import.meta.url), {
      workerData: { url: fixture.url, now: fixture.clock.now() },
    })
    measured.push(
      await new Promise<Start>((resolve, reject) => worker.on('message', resolve).on('error', reject)),
    )
  }
  await fixture.close()
  const median = (values: number[]) => Math.round(percentile(values, 0.5))
  const results = STEPS.map((step) => ({
    step,
    wall_ms: median(measured.map((start) => start[step].wallMs)),
    user_ms: median(measured.map((start) => start[step].userMs)),
  }))
  console.table(results)
  console.log(JSON.stringify({ bench: 'start', orders, accounts, starts, results }))
}

if (isMainThread) await main()
else parentPort?.postMessage(await startOnce(workerData.url, workerData.now))
