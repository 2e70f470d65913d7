/**
 * Measures how fast mined parts of 20 orders are applied: parts per second, statements per part, and for how long a transaction locks its
 * markets. The chain is recorded first and then served from memory, so neither anvil nor the matching of the parts is
 * measured. Every block has the same number of parts of each market. Postgres and this process share the machine. Prints tables and one JSON line.
 *
 *   npm run bench:ingest -- [--markets 10] [--per-block 1] [--blocks 10] [--step-facts 20] [--top 0]
 */
import { loadavg } from 'node:os'
import { performance } from 'node:perf_hooks'
import { Kysely, type LogEvent, PostgresDialect } from 'kysely'
import type pg from 'pg'
import { createPool, type Db } from '../db/client.ts'
import { createShard } from '../db/journal.ts'
import { listMarket } from '../db/markets.ts'
import type { Database } from '../db/schema.ts'
import { ACCOUNTS_SHARD } from '../domain/journal/journal-row.ts'
import type { Millis } from '../domain/units.ts'
import { Follower } from '../indexer/ingest/follow.ts'
import { argumentsOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { CHAIN_ID } from '../test/indexer/support/exchange-fixture.ts'
import { matchPart } from '../test/indexer/support/matched-part.ts'
import {
  copyOf,
  copyPart,
  MemoryChain,
  type Recording,
  recordParts,
  txHashOf,
} from '../test/indexer/support/recorded-chain.ts'
import { freshDatabase } from '../test/support/postgres.ts'

const { markets, perBlock, blocks, top, stepFacts } = readFlags()

function readFlags() {
  const flags = argumentsOf({
    command: 'npm run bench:ingest --',
    flags: {
      markets: withDefault(wholeNumber('markets with parts in every block', { least: 1 }), 10),
      'per-block': withDefault(wholeNumber('parts of each market in a block', { least: 1 }), 1),
      blocks: withDefault(wholeNumber('measured blocks', { least: 1 }), 10),
      'step-facts': withDefault(wholeNumber('most facts of a transaction', { least: 1 }), 20),
      top: withDefault(wholeNumber('costliest statements to list', { least: 0 }), 0),
    },
  })
  return { ...flags, perBlock: flags['per-block'], stepFacts: flags['step-facts'] }
}

/** Of each part, each of another account. */
const ORDERS = 20

/** Blocks before the measurement: connections, plans and caches. */
const WARM_UP = 3

class StatementLog {
  #statements = new Map<string, { count: number; ms: number }>()
  readonly holds: number[] = []
  count = 0
  #isMeasuring = false

  note({ query: { sql }, queryDurationMillis: ms }: LogEvent): void {
    if (!this.#isMeasuring) return
    this.count++
    const entry = this.#statements.get(sql) ?? { count: 0, ms: 0 }
    this.#statements.set(sql, { count: entry.count + 1, ms: entry.ms + ms })
  }

  /** Measures from the answer that locks shards to the end of a transaction that applies facts. */
  watch(client: pg.PoolClient): void {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown
    let lockedAt = Number.NaN
    let isApplying = false
    const timed = async (...args: unknown[]): Promise<unknown> => {
      const text = typeof args[0] === 'string' ? args[0] : ((args[0] as { text?: string }).text ?? '')
      const result = await query(...args)
      if (/from "?shards"?.* for update/s.test(text) && Number.isNaN(lockedAt)) lockedAt = performance.now()
      if (/(insert into|update) chain_logs/.test(text)) isApplying = true
      if (/^(commit|rollback)$/i.test(text)) {
        if (this.#isMeasuring && isApplying && !Number.isNaN(lockedAt))
          this.holds.push(performance.now() - lockedAt)
        lockedAt = Number.NaN
        isApplying = false
      }
      return result
    }
    client.query = timed as typeof client.query
  }

  measure(isMeasuring: boolean): void {
    this.#isMeasuring = isMeasuring
  }

  costliest(most: number, parts: number) {
    const all = [...this.#statements].sort(([, a], [, b]) => b.ms - a.ms).slice(0, most)
    return all.map(([sql, { count, ms }]) => ({
      statement: sql.replace(/\s+/g, ' ').trim().slice(0, 90),
      per_part: Number((count / parts).toFixed(2)),
      ms_per_part: Number((ms / parts).toFixed(2)),
    }))
  }
}

async function openDatabase({ spec }: Recording, log: StatementLog): Promise<Db> {
  const pool = createPool({ url: await freshDatabase(), connections: 10, name: 'bench' })
  pool.on('connect', (client) => log.watch(client))
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }), log: (event) => log.note(event) })
  await createShard(db, ACCOUNTS_SHARD)
  for (let number = 0; number < markets; number++) await listMarket(db, copyOf(spec, number))
  return db
}

/** Matches the block's parts in the database and returns their logs. */
async function mineBlock(db: Db, { spec, parts }: Recording, block: number) {
  const own = parts.slice(block * perBlock, (block + 1) * perBlock)
  const logs = []
  for (let number = 0; number < markets; number++) {
    const market = copyOf(spec, number)
    const relayer = { address: `0xrelayer${number}`, chain_id: CHAIN_ID, lane: `m${number}`, next_nonce: 0 }
    for (const { part, log } of own) {
      const txHash = txHashOf(number, part.actionId)
      await matchPart(db, copyPart(part, market), txHash, relayer)
      logs.push({ ...log, txHash, address: market.trader })
    }
  }
  return logs
}

const recording = await recordParts((WARM_UP + blocks) * perBlock, ORDERS)
const log = new StatementLog()
const db = await openDatabase(recording, log)
const chain = new MemoryChain()
const silent = { info() {}, warn() {}, error() {} }
const mismatches: string[] = []
const metrics = {
  headReached() {},
  blockApplied() {},
  rolledBack() {},
  mismatch: (kind: string) => mismatches.push(kind),
}
const clock = { now: () => Date.now() as Millis }
const ports = { db, chain, clock, logger: silent, metrics, killPoint() {} }
const follower = new Follower(ports, { ...recording.options, stepFacts })

const { timestamp } = recording
chain.append(timestamp, [])
// The markets share the accounts, so each needs the deposit that one of them had.
for (let number = 0; number < markets; number++) chain.append(timestamp, recording.deposits)
await follower.pass()

const passes: number[] = []
let statements = 0
const cpu = { user: 0, system: 0 }
for (let block = 0; block < WARM_UP + blocks; block++) {
  const logs = await mineBlock(db, recording, block)
  chain.append(timestamp, logs)
  const before = { count: log.count, cpu: process.cpuUsage(), at: performance.now() }
  log.measure(block >= WARM_UP)
  await follower.pass()
  log.measure(false)
  if (block < WARM_UP) continue
  passes.push(performance.now() - before.at)
  const used = process.cpuUsage(before.cpu)
  cpu.user += used.user
  cpu.system += used.system
  statements += log.count - before.count
}
if (mismatches.length > 0)
  throw new Error(`parts did not settle as sent: ${mismatches.slice(0, 3).join(', ')}`)

const parts = blocks * markets * perBlock
const seconds = passes.reduce((sum, ms) => sum + ms, 0) / 1_000
const round = (value: number): number => Number(value.toFixed(1))
const result = {
  parts_per_second: round(parts / seconds),
  statements_per_part: round(statements / parts),
  ms_of_this_process_per_part: round((cpu.user + cpu.system) / 1_000 / parts),
  block_ms_p50: round(percentile(passes, 0.5)),
  locks_held_ms_p50: round(percentile(log.holds, 0.5)),
  locks_held_ms_max: round(percentile(log.holds, 1)),
  load: round(loadavg()[0] as number),
}
console.table([result])
if (top > 0) console.table(log.costliest(top, parts))
console.log(
  JSON.stringify({ bench: 'ingest', markets, per_block: perBlock, blocks, step_facts: stepFacts, ...result }),
)
await db.destroy()
