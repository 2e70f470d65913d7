/**
 * `npm run bench:candles`: what a page of candles, the statistics of 100 markets and a chunk that clears a batch cost in a database with 10
 * million fills. Prints a table and one JSON line.
 */
import { performance } from 'node:perf_hooks'
import { sql } from 'kysely'
import { candlePage } from '../api/candles/query.ts'
import { marketStats, tickers } from '../api/market-stats/query.ts'
import { createDb, createPool, type Db, type Tx } from '../db/client.ts'
import { INTERVALS, type Interval } from '../domain/market-data/interval.ts'
import type { MarketId, Millis } from '../domain/units.ts'
import { candlesOf } from '../indexer/project/tables/candles.ts'
import { argumentsOf } from '../service/command-line.ts'
import { perpetual } from '../test/support/markets.ts'
import { freshDatabase } from '../test/support/postgres.ts'
import { listMarket } from '../test/support/rows/markets.ts'

const FILLS = 10_000_000
const FILLS_PER_BATCH = 25
const BATCHES = FILLS / FILLS_PER_BATCH
const MARKETS = 100
/** 23 days of one market; every other market has candles of its last three days. */
const BATCH_MS = 5_000
const MINUTE = 60_000
const START = Math.floor((Date.now() - BATCHES * BATCH_MS) / MINUTE) * MINUTE
/** Minutes whose candles are computed by one statement, as a chunk of a fill touches them. */
const MINUTES_PER_CHUNK = 500
const ROUNDS = 30

async function writeCandles(tx: Tx, minutes: readonly number[]): Promise<void> {
  for (const statement of candlesOf(1, minutes)) await statement.execute(tx)
}

async function fill(db: Db): Promise<void> {
  for (let marketId = 1; marketId <= MARKETS; marketId++) {
    const trader = `0x${marketId.toString(16).padStart(40, '0')}` as typeof perpetual.trader
    await listMarket(db, { ...perpetual, marketId: marketId as MarketId, symbol: `M${marketId}`, trader })
  }
  await sql
    .raw(`
    insert into read.batches (market_id, batch_id, as_of, price, lo, hi, volume, demand, supply, rule, parts, oracle_price, oracle_at, status, filled,
      fills, part_states, is_final)
    select 1, n, ${START}::bigint + n * ${BATCH_MS}, 1000 + n % 37, 900, 1100, 50, 50, 60, 'volume', 1, 1, 1, 'SETTLED', 50, ${FILLS_PER_BATCH},
      '[{"status": "CONFIRMED", "tx_hash": "0x01"}]', true
    from generate_series(1, ${BATCHES}::bigint) n
  `)
    .execute(db)
  const minutes = Math.ceil((BATCHES * BATCH_MS) / MINUTE)
  for (let first = 0; first <= minutes; first += MINUTES_PER_CHUNK) {
    const touched = Array.from({ length: MINUTES_PER_CHUNK }, (_, at) => START + (first + at) * MINUTE)
    await db.transaction().execute((tx) => writeCandles(tx, touched))
  }
  await sql
    .raw(`
    insert into read.candles select m, span, start, open, high, low, close, steps, turnover, auctions, fills
    from read.candles, generate_series(2, ${MARKETS}) m
    where start >= ${START + (minutes - 3 * 24 * 60) * MINUTE}::bigint;
    insert into read.price_candles select 1, span, start, 1000, 1010, 990, 1000, 1000, 1010, 990, 1000 from read.candles where market_id = 1;
    analyze
  `)
    .execute(db)
}

interface Measured {
  readonly what: string
  readonly p50: number
  readonly p99: number
}

async function measure(what: string, act: () => Promise<unknown>): Promise<Measured> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const begun = performance.now()
    await act()
    times.push(performance.now() - begun)
  }
  times.sort((a, b) => a - b)
  const at = (part: number) =>
    Number((times[Math.min(ROUNDS - 1, Math.floor(ROUNDS * part))] as number).toFixed(1))
  return { what, p50: at(0.5), p99: at(0.99) }
}

async function run(db: Db): Promise<Measured[]> {
  const now = (START + BATCHES * BATCH_MS) as Millis
  const measured: Measured[] = []
  for (const interval of Object.keys(INTERVALS) as Interval[]) {
    const range = { interval, from: null, to: now, limit: 1000 }
    for (const priceType of ['last', 'mark'] as const) {
      if (priceType === 'mark' && interval !== '3m') continue
      const page = () => candlePage(db, perpetual, { ...range, priceType })
      measured.push(await measure(`1,000 candles of ${interval}, ${priceType}`, page))
    }
  }
  measured.push(await measure(`statistics of ${MARKETS} markets`, () => marketStats(db, now)))
  measured.push(await measure(`tickers of ${MARKETS} markets`, () => tickers(db, now)))
  const last = now - (now % MINUTE) - MINUTE
  const write = () => db.transaction().execute((tx) => writeCandles(tx, [last]))
  measured.push(await measure('candles of a chunk that clears a batch', write))
  return measured
}

argumentsOf({ command: 'npm run bench:candles', flags: {} })
const db = createDb(createPool({ url: await freshDatabase(), connections: 4, name: 'candles bench' }))
try {
  await fill(db)
  const measured = await run(db)
  console.table(measured)
  console.log(JSON.stringify({ bench: 'candles', fills: FILLS, measured }))
} finally {
  await db.destroy()
}
