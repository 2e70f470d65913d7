/**
 * `npm run bench:projection`: measures projection by rows per transaction: covered placements in one shard and in
 * twenty, and reduce-only orders, whose steps depend on positions.
 */
import { performance } from 'node:perf_hooks'
import { createDb, createPool, type Db, LOOKUP_SETTINGS } from '../db/client.ts'
import { TransactionClient } from '../db/transaction-client.ts'
import type { JournalRow, OrderPlaced } from '../domain/journal/journal-row.ts'
import { projectChunk } from '../indexer/project/project-chunk.ts'
import { registerShards } from '../indexer/project/project-shards.ts'
import { resetReadModel } from '../indexer/project/rebuild.ts'
import { argumentsOf } from '../service/command-line.ts'
import { freshDatabase } from '../test/support/postgres.ts'
import { appendRows, createShard, lockShard } from '../test/support/rows/journal.ts'
import { measureSignatures } from './intake/signatures.ts'
import { processorTimes } from './mix/processor-time.ts'

const ROWS = 40_000
const ACCOUNTS = 500
/** Number of price levels: 400 ticks around the oracle price, as in an active market. */
const PRICES = 400
const CHUNKS = [100, 500, 1_000, 4_000]
/** Maximum chunks of a measurement. */
const MOST_CHUNKS = 200
/** Signature recoveries per second on one core. */
const RECOVERIES_PER_SECOND = measureSignatures().bare
/** Shards of covered orders and of reduce-only orders. */
const SHARDS = ['m1', 'm2'] as const
/** Further shards of covered orders, which are projected together. */
const MANY = Array.from({ length: 20 }, (_, at) => `m${11 + at}`)
/** Accounts with a position, each with this many open reduce-only orders. */
const HOLDERS = 100
const OPEN_ORDERS = 50

const hex = (value: number, bytes: number): string => `0x${value.toString(16).padStart(2 * bytes, '0')}`

function placed(seq: number): OrderPlaced {
  const account = 1 + (seq % ACCOUNTS)
  return {
    kind: 'order_placed',
    order_id: `1-${seq}`,
    user_id: account,
    maker: hex(account, 20),
    signer: hex(account, 20),
    hash: hex(seq, 32),
    salt: seq,
    side: seq % 2 === 0 ? 'LONG' : 'SHORT',
    type: 'LIMIT',
    price: 60_000 + ((seq * 7_919) % PRICES),
    quantity: 100 + (seq % 50),
    trigger: 0,
    leverage: 5,
    reduce_only: false,
    expiration: 0,
    alive_until: 0,
    status: 'OPEN',
    accepted_at: 1_700_000_000_000 + seq,
    openable: 100 + (seq % 50),
    reserved: '123456789012345678901',
    reserved_price: 60_000,
  }
}

/**
 * Positions first, then placements. Once each holder has its open orders, each placement is followed by a cancel of the
 * oldest order.
 */
function* reduceOnlyRows(): Generator<JournalRow, never> {
  const place = { rollback: false, block: 1, tx_hash: '0x', log_index: 0, at: 1 }
  yield {
    ...{ kind: 'positions_moved', cause: 'inherited', ...place, balances: [] },
    positions: Array.from({ length: HOLDERS }, (_, at) => ({
      ...{ user_id: 1 + at, size_delta: 2_000, entry_notional_delta: '1', folded_margin_delta: '1' },
      ...{ leverage_before: 1, leverage_after: 1 },
    })),
  }
  for (let number = 0; ; number++) {
    const holder = 1 + (number % HOLDERS)
    const order_id = `2-${number}`
    yield {
      ...{ ...placed(number), order_id, user_id: holder, side: 'SHORT', reduce_only: true },
      ...{ openable: 0, reserved: '0' },
    }
    const oldest = number - HOLDERS * OPEN_ORDERS
    if (oldest < 0) continue
    yield {
      ...{
        kind: 'order_ended',
        order_id: `2-${oldest}`,
        user_id: holder,
        status: 'CANCELLED',
        reserved_delta: '0',
      },
      ...{ reason: 'USER_CANCELLED', note: null, at: 1_700_000_000_000 + number },
    }
  }
}

async function writeJournal(db: Db): Promise<void> {
  const cancelling = reduceOnlyRows()
  for (const shard of [...SHARDS, ...MANY]) await createShard(db, shard)
  for (const shard of MANY)
    await db.transaction().execute(async (tx) => {
      const rows = Array.from({ length: ROWS / MANY.length }, (_, at) => placed(1 + at))
      const order_id = (at: number): string => `${shard.slice(1)}-${1 + at}`
      await appendRows(
        tx,
        await lockShard(tx, shard),
        rows.map((row, at) => ({ ...row, order_id: order_id(at) })),
      )
    })
  for (let seq = 1; seq <= ROWS; seq += 5_000) {
    const rows: JournalRow[] = Array.from({ length: 5_000 }, (_, at) => placed(seq + at))
    const others = Array.from({ length: 5_000 }, () => cancelling.next().value as JournalRow)
    await db.transaction().execute(async (tx) => {
      await appendRows(tx, await lockShard(tx, SHARDS[0]), rows)
      await appendRows(tx, await lockShard(tx, SHARDS[1]), others)
    })
  }
}

interface Figures {
  /** Rows per second. */
  readonly rate: number
  /** Microseconds of this process per row. */
  readonly cpu: number
  /** Processor time per chunk, here and in the database, in signature recoveries. */
  readonly recoveries: number
}

/** Processor time of this process and of the database, in seconds. */
async function processorSeconds(db: Db): Promise<number> {
  const times = await processorTimes(db, new Map([[process.pid, 'bench']]))
  return [...times].reduce(
    (sum, [kind, seconds]) => sum + (kind === 'bench' || kind.startsWith('database') ? seconds : 0),
    0,
  )
}

async function measure(db: Db, shards: readonly string[], limit: number): Promise<Figures> {
  await resetReadModel(db)
  await registerShards(db)
  // Marks the tables as complete, as in operation: projections that are being filled append nothing to the feed.
  await db.updateTable('read.places').set({ fill_to: null }).execute()
  const before = await processorSeconds(db)
  const cpu = process.cpuUsage()
  const start = performance.now()
  let [rows, chunks] = [0, 0]
  for (; rows < ROWS && chunks < MOST_CHUNKS; chunks++)
    rows += (await projectChunk(db, shards, { limit, killPoint() {} }))?.rows ?? 0
  const seconds = (performance.now() - start) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  const used = (await processorSeconds(db)) - before
  return {
    rate: Math.round(rows / seconds),
    cpu: Math.round((user + system) / rows),
    recoveries: Math.round((used / chunks) * RECOVERIES_PER_SECOND),
  }
}

argumentsOf({ command: 'npm run bench:projection', flags: {} })
// The indexer's connection settings.
const pool = createPool({
  ...{ url: await freshDatabase(), connections: 8, name: 'bench' },
  ...{ settings: LOOKUP_SETTINGS, Client: TransactionClient },
})
const db = createDb(pool)
await writeJournal(db)
console.log('       orders  rows per chunk      rows/s   µs of this process per row  recoveries per chunk')
const results: Record<string, number> = {}
for (const [name, shards] of [
  ['covered', [SHARDS[0]]],
  ['reduce_only', [SHARDS[1]]],
  ['twenty_shards', MANY],
] as const) {
  for (const chunk of CHUNKS) {
    const { rate, cpu, recoveries } = await measure(db, shards, chunk)
    results[`${name}_${chunk}`] = rate
    results[`${name}_${chunk}_recoveries`] = recoveries
    const cells = [
      name.padStart(13),
      String(chunk).padStart(16),
      String(rate).padStart(12),
      String(cpu).padStart(29),
      String(recoveries).padStart(22),
    ]
    console.log(cells.join(''))
  }
}
console.log(
  JSON.stringify({ bench: 'projection', unit: 'rows per second; recoveries per chunk', ...results }),
)
await db.destroy()
