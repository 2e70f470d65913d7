/**
 * `npm run bench:projection`: measures how fast the journal of one shard is projected, by rows per transaction: placements of orders that
 * their reservations cover, and placements and cancels of reduce-only orders, whose steps in the book depend on their accounts'
 * positions. Prints a table and one JSON line.
 */
import { performance } from 'node:perf_hooks'
import { createDb, createPool, type Db } from '../db/client.ts'
import { appendRows, createShard, lockShard } from '../db/journal.ts'
import type { JournalRow, OrderPlaced } from '../domain/journal/journal-row.ts'
import { projectChunk } from '../indexer/project/project-chunk.ts'
import { registerShards } from '../indexer/project/project-shard.ts'
import { resetReadModel } from '../indexer/project/rebuild.ts'
import { argumentsOf } from '../service/command-line.ts'
import { freshDatabase } from '../test/support/postgres.ts'

const ROWS = 40_000
const ACCOUNTS = 500
/** Number of price levels: 400 ticks around the oracle price, as in an active market. */
const PRICES = 400
const CHUNKS = [100, 500, 1_000, 4_000]
/** The shard of the covered orders, and that of the reduce-only ones. */
const SHARDS = ['m1', 'm2'] as const
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

/** First the positions, then placements; once each holder has its open orders, a cancel of the oldest follows each placement. */
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
  for (const shard of SHARDS) await createShard(db, shard)
  for (let seq = 1; seq <= ROWS; seq += 5_000) {
    const rows: JournalRow[] = Array.from({ length: 5_000 }, (_, at) => placed(seq + at))
    const others = Array.from({ length: 5_000 }, () => cancelling.next().value as JournalRow)
    await db.transaction().execute(async (tx) => {
      await appendRows(tx, await lockShard(tx, SHARDS[0]), rows)
      await appendRows(tx, await lockShard(tx, SHARDS[1]), others)
    })
  }
}

async function measure(db: Db, shard: string, limit: number): Promise<{ rate: number; cpu: number }> {
  await resetReadModel(db)
  await registerShards(db)
  // As in operation: while tables are being filled, nothing is appended to the feed.
  await db.updateTable('read.places').set({ fill_to: null }).execute()
  const cpu = process.cpuUsage()
  const start = performance.now()
  let rows = 0
  while (rows < ROWS) rows += (await projectChunk(db, shard, { limit, killPoint() {} }))?.rows ?? 0
  const seconds = (performance.now() - start) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  return { rate: Math.round(rows / seconds), cpu: Math.round((user + system) / rows) }
}

argumentsOf({ command: 'npm run bench:projection', flags: {} })
const db = createDb(createPool({ url: await freshDatabase(), connections: 2, name: 'bench' }))
await writeJournal(db)
console.log('     orders  rows per chunk      rows/s   µs of this process per row')
const results: Record<string, number> = {}
for (const shard of SHARDS) {
  const name = shard === 'm1' ? 'covered' : 'reduce_only'
  for (const chunk of CHUNKS) {
    const { rate, cpu } = await measure(db, shard, chunk)
    results[`${name}_${chunk}`] = rate
    const cells = [
      name.padStart(11),
      String(chunk).padStart(16),
      String(rate).padStart(12),
      String(cpu).padStart(29),
    ]
    console.log(cells.join(''))
  }
}
console.log(JSON.stringify({ bench: 'projection', unit: 'rows per second', ...results }))
await db.destroy()
