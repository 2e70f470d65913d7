/**
 * `npm run bench:history`: builds a day's history file of fills; prints time per million fills, additional memory, and
 * the longest block of the event loop.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { sql } from 'kysely'
import { buildFile } from '../api/history/build.ts'
import { CONTENTS } from '../api/history/content.ts'
import { createDb, createPool, type Db } from '../db/client.ts'
import { argumentsOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { perpetual } from '../test/support/markets.ts'
import { freshDatabase } from '../test/support/postgres.ts'
import { listMarket } from '../test/support/rows/markets.ts'

const DAY = 86_400_000
const START = Math.floor(Date.now() / DAY) * DAY - 2 * DAY
const FILLS_PER_BATCH = 50
const SAMPLE_MS = 20

const { fills } = argumentsOf({
  command: 'npm run bench:history --',
  flags: { fills: withDefault(wholeNumber('fills of the day', { least: FILLS_PER_BATCH }), 300_000) },
})
const batches = Math.ceil(fills / FILLS_PER_BATCH)

async function fill(db: Db): Promise<void> {
  await listMarket(db, perpetual)
  const at = `${START}::bigint + (n - 1) * ${DAY}::bigint / ${batches}`
  await sql
    .raw(`
    insert into read.batches (market_id, batch_id, as_of, price, lo, hi, volume, demand, supply, rule, parts, oracle_price, oracle_at, status, filled,
      fills, part_states, is_final)
    select 1, n, ${at}, 1000 + n % 37, 900, 1100, 50, 50, 60, 'volume', 1, 1, 1, 'SETTLED', 50, ${FILLS_PER_BATCH}, '[]', true
    from generate_series(1, ${batches}::bigint) n;
    insert into read.fills (fill_id, market_id, batch_id, part, place, order_id, user_id, side, price, steps, taker_steps, fee, realized_pnl, status,
      tx_hash, block, matched_at, updated_at)
    select n || '-1-' || place, 1, n, 1, place, '1-' || n * 100 + place, place, case place % 2 when 0 then 'LONG' else 'SHORT' end, 1000 + n % 37,
      1 + (n * 7 + place * 13) % 211, place % 3, 5, 0, 'CONFIRMED', '0x' || md5(n::text) || md5((n * 31)::text), n, ${at}, ${at}
    from generate_series(1, ${batches}::bigint) n, generate_series(0, ${FILLS_PER_BATCH - 1}) place;
    analyze
  `)
    .execute(db)
}

async function measure(db: Db, directory: string) {
  const content = CONTENTS.fills
  const key = { kind: 'fills', marketId: perpetual.marketId, day: START } as const
  const before = process.memoryUsage().rss
  let most = before
  const sampling = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss)
  }, SAMPLE_MS)
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const started = performance.now()
  const source = {
    spec: perpetual,
    content,
    page: (page: Parameters<typeof content.page>[2]) => content.page(db, key, page),
  }
  const file = await buildFile(directory, source, new AbortController().signal)
  const seconds = (performance.now() - started) / 1_000
  delay.disable()
  clearInterval(sampling)
  await file.handle.close()
  const rounded = (value: number): number => Number(value.toFixed(1))
  return {
    fills: file.rows,
    seconds: rounded(seconds),
    'seconds per million': rounded((seconds * 1e6) / file.rows),
    'MB of the file': rounded(file.size / 1e6),
    'MB of memory above the start': rounded((most - before) / 1e6),
    'event loop blocked, p99 ms': rounded(delay.percentile(99) / 1e6),
    'event loop blocked, most ms': rounded(delay.max / 1e6),
  }
}

const db = createDb(createPool({ url: await freshDatabase(), connections: 2, name: 'history bench' }))
const directory = await mkdtemp(join(tmpdir(), 'history-bench-'))
try {
  await fill(db)
  const measured = await measure(db, directory)
  console.table(measured)
  console.log(JSON.stringify({ bench: 'history', ...measured }))
} finally {
  await db.destroy()
  await rm(directory, { recursive: true })
}
