/**
 * `npm run bench:projection`: measures how fast placements of one shard are projected from the journal, by rows per transaction. Prints a
 * table and one JSON line.
 */
import { performance } from 'node:perf_hooks'
import { createDb, createPool, type Db } from '../db/client.ts'
import { appendRows, createShard, lockShard } from '../db/journal.ts'
import type { JournalRow, OrderPlaced } from '../domain/journal/journal-row.ts'
import { projectChunk, registerShards } from '../indexer/project/project-shard.ts'
import { resetReadModel } from '../indexer/project/rebuild.ts'
import { argumentsOf } from '../service/command-line.ts'
import { freshDatabase } from '../test/support/postgres.ts'

const ROWS = 40_000
const ACCOUNTS = 500
/** Number of price levels: 400 ticks around the oracle price, as in an active market. */
const PRICES = 400
const CHUNKS = [100, 500, 1_000, 4_000]
const SHARD = 'm1'

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

async function writeJournal(db: Db): Promise<void> {
  await createShard(db, SHARD)
  for (let seq = 1; seq <= ROWS; seq += 5_000) {
    const rows: JournalRow[] = Array.from({ length: 5_000 }, (_, at) => placed(seq + at))
    await db.transaction().execute(async (tx) => appendRows(tx, await lockShard(tx, SHARD), rows))
  }
}

async function measure(db: Db, limit: number): Promise<{ rate: number; cpu: number }> {
  await resetReadModel(db)
  await registerShards(db)
  const cpu = process.cpuUsage()
  const start = performance.now()
  let rows = 0
  while (rows < ROWS) rows += (await projectChunk(db, SHARD, { limit, killPoint() {} }))?.rows ?? 0
  const seconds = (performance.now() - start) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  return { rate: Math.round(rows / seconds), cpu: Math.round((user + system) / rows) }
}

argumentsOf({ command: 'npm run bench:projection', flags: {} })
const db = createDb(createPool({ url: await freshDatabase(), connections: 2, name: 'bench' }))
await writeJournal(db)
console.log('rows per chunk      rows/s   µs of this process per row')
const results: Record<string, number> = {}
for (const chunk of CHUNKS) {
  const { rate, cpu } = await measure(db, chunk)
  results[`chunk_${chunk}`] = rate
  console.log(`${String(chunk).padStart(14)}${String(rate).padStart(12)}${String(cpu).padStart(29)}`)
}
console.log(JSON.stringify({ bench: 'projection', unit: 'rows per second', ...results }))
await db.destroy()
