/**
 * `npm run bench:funding-payments`: measures a funding update with 200,000 open positions, and an account's pages of
 * transactions after a year of updates.
 */
import { performance } from 'node:perf_hooks'
import { sql } from 'kysely'
import { transactionsOfUser } from '../api/transactions/query.ts'
import { createDb, createPool, type Db } from '../db/client.ts'
import type { FundingUpdatedRow } from '../domain/journal/action-rows.ts'
import { projectChunk } from '../indexer/project/project-chunk.ts'
import { registerShards } from '../indexer/project/project-shards.ts'
import { transactions } from '../indexer/project/transactions/projection.ts'
import { argumentsOf } from '../service/command-line.ts'
import { freshDatabase } from '../test/support/postgres.ts'
import { appendRows, createShard, lockShard } from '../test/support/rows/journal.ts'

const POSITIONS = 200_000
/** A year, one every 15 minutes. */
const UPDATES = 35_040
const INTERVAL_MS = 900_000
/** Changes of the position of an account that trades all the time. */
const TRADES = 100_000
const TRADER = POSITIONS + 1
const ROUNDS = 50
const SHARD = 'm1'
const options = { limit: 1_000, killPoint() {}, projections: [transactions] }

/** The state that a year of trading leaves. The last account has a span between any two of its changes; each third contains an update. */
async function fill(db: Db): Promise<void> {
  await sql
    .raw(`
    insert into read.funding_indexes (market_id, number, funding_index, previous_index, action_id, tx_hash, log_index, block, at)
    select 1, n, n * 1000003, (n - 1) * 1000003, n * 1000, '0x' || md5(n::text), 0, n, n * ${INTERVAL_MS}::bigint
    from generate_series(1, ${UPDATES}::bigint) n;
    insert into read.funding_positions
    select n, 1, case when n % 2 = 0 then n else -n end, 0, 0 from generate_series(1, ${POSITIONS}::bigint) n;
    insert into read.funding_positions values (${TRADER}, 1, 7, ${UPDATES}::bigint * 1000003, ${UPDATES});
    insert into read.funding_spans
    select '1-' || lpad((n * 300)::text, 12, '0') || '-' || ${TRADER}, ${TRADER}, 1, n % 9 + 1, n * 350003, n * ${UPDATES}::bigint / ${TRADES},
      (n + 1) * ${UPDATES}::bigint / ${TRADES}, (n + 1) * ${UPDATES}::bigint / ${TRADES} > n * ${UPDATES}::bigint / ${TRADES},
      n, '0x' || md5(n::text), 0, n, n * ${INTERVAL_MS}::bigint * ${UPDATES} / ${TRADES}
    from generate_series(1, ${TRADES}::bigint) n;
    analyze
  `)
    .execute(db)
}

const update = (number: number): FundingUpdatedRow => ({
  kind: 'funding_updated',
  ...{ rollback: false, action_id: number * 1_000, block: number, tx_hash: '0x', log_index: 0 },
  ...{
    at: number * INTERVAL_MS,
    as_of: 1,
    rate: '1',
    valid_until: 1,
    funding_index: `${number * 1_000_003}`,
  },
  ...{ oracle_price: '1', oracle_at: 1 },
})

const median = (times: readonly number[]): number => {
  const sorted = [...times].sort((a, b) => a - b)
  return Math.round((sorted[sorted.length >> 1] ?? 0) * 10) / 10
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

async function repeated(work: (round: number) => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round++) times.push(await timed(() => work(round)))
  return median(times)
}

async function projectUpdates(db: Db): Promise<number> {
  await createShard(db, SHARD)
  await registerShards(db, [transactions])
  return repeated(async (round) => {
    await db.transaction().execute(async (tx) => {
      await appendRows(tx, await lockShard(tx, SHARD), [update(UPDATES + 1 + round)])
    })
    await projectChunk(db, [SHARD], options)
  })
}

/** The payments of one update as rows of a table with the index that pages need. */
async function storePayments(db: Db): Promise<{ ms: number; bytes: number }> {
  await sql
    .raw(`
    create table stored_payments as select * from read.account_transactions limit 0;
    alter table stored_payments add primary key (id);
    create index on stored_payments (user_id, at, id)
  `)
    .execute(db)
  const ms = await timed(() =>
    sql`
      insert into stored_payments
      select '1-000000000001-' || user_id, user_id, 'funding_payment', abs(size * 1000003), 0, -size * 1000003, 1, '0x' || md5('1'), 0, 1, 1
      from read.funding_positions
    `.execute(db),
  )
  const { rows } = await sql<{
    bytes: number
  }>`select pg_total_relation_size('stored_payments') as bytes`.execute(db)
  return { ms: Math.round(ms), bytes: Math.round((rows[0]?.bytes ?? 0) / POSITIONS) }
}

const page = (db: Db, userId: number, at: number | null, limit = 100) =>
  repeated(() => transactionsOfUser(db, userId, { limit, after: at === null ? null : { at, id: '' } }))

argumentsOf({ command: 'npm run bench:funding-payments', flags: {} })
const db = createDb(createPool({ url: await freshDatabase(), connections: 2, name: 'bench' }))
await fill(db)
const middle = (UPDATES / 2) * INTERVAL_MS
const stored = await storePayments(db)
const results = {
  update_ms: await projectUpdates(db),
  stored_update_ms: stored.ms,
  stored_bytes_per_payment: stored.bytes,
  stored_rows_per_day: (POSITIONS * 86_400_000) / INTERVAL_MS,
  holder_first_page_ms: await page(db, 1, null),
  holder_page_of_half_a_year_ago_ms: await page(db, 1, middle),
  trader_first_page_ms: await page(db, TRADER, null),
  trader_page_of_half_a_year_ago_ms: await page(db, TRADER, middle),
  trader_largest_page_ms: await page(db, TRADER, middle, 1_000),
}
for (const [name, value] of Object.entries(results)) console.log(`${name.padEnd(36)}${value}`)
console.log(JSON.stringify({ bench: 'funding-payments', positions: POSITIONS, updates: UPDATES, ...results }))
await db.destroy()
