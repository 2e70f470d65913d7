/**
 * Measures how fast an engine in this process records blocks with mined parts of 20 orders. The chain is recorded
 * first, so neither anvil nor matching is measured.
 */
// npm run bench:ingest -- [--markets 10] [--per-block 1] [--blocks 10]
import { loadavg } from 'node:os'
import { performance } from 'node:perf_hooks'
import { ACCOUNTS_SHARD } from '../domain/journal/journal-row.ts'
import { Follower } from '../indexer/ingest/follow.ts'
import { argumentsOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { freshDatabase } from '../test/indexer/support/database.ts'
import {
  CHAIN_ID,
  type ExchangeDatabase,
  followPorts,
  withEngine,
} from '../test/indexer/support/exchange-fixture.ts'
import { matchPart } from '../test/indexer/support/matched-part.ts'
import {
  copyOf,
  copyPart,
  MemoryChain,
  type Recording,
  recordParts,
  txHashOf,
} from '../test/indexer/support/recorded-chain.ts'
import { LocalEngine } from '../test/support/local-engine.ts'
import { createShard } from '../test/support/rows/journal.ts'
import { listMarket } from '../test/support/rows/markets.ts'

const { markets, perBlock, blocks } = readFlags()

function readFlags() {
  const flags = argumentsOf({
    command: 'npm run bench:ingest --',
    flags: {
      markets: withDefault(wholeNumber('markets with parts in every block', { least: 1 }), 10),
      'per-block': withDefault(wholeNumber('parts of each market in a block', { least: 1 }), 1),
      blocks: withDefault(wholeNumber('measured blocks', { least: 1 }), 10),
    },
  })
  return { ...flags, perBlock: flags['per-block'] }
}

/** Orders of a part, each of another account. */
const ORDERS = 20

/** Blocks before the measurement: connections, plans and caches. */
const WARM_UP = 3

async function openExchange({ spec }: Recording): Promise<ExchangeDatabase> {
  const test = await freshDatabase()
  await createShard(test.db, ACCOUNTS_SHARD)
  for (let number = 0; number < markets; number++) await listMarket(test.db, copyOf(spec, number))
  return withEngine(test, await LocalEngine.over(test))
}

/** Matches the block's parts in the database and returns their logs. */
async function mineBlock(exchange: ExchangeDatabase, { spec, parts }: Recording, block: number) {
  const own = parts.slice(block * perBlock, (block + 1) * perBlock)
  const logs = []
  for (let number = 0; number < markets; number++) {
    const market = copyOf(spec, number)
    const relayer = { address: `0xrelayer${number}`, chain_id: CHAIN_ID, lane: `m${number}`, next_nonce: 0 }
    for (const { part, log } of own) {
      const txHash = txHashOf(number, part.actionId)
      await matchPart(exchange, copyPart(part, market), txHash, relayer)
      logs.push({ ...log, txHash, address: market.trader })
    }
  }
  return logs
}

const recording = await recordParts((WARM_UP + blocks) * perBlock, ORDERS)
const exchange = await openExchange(recording)
const chain = new MemoryChain()
const mismatches: string[] = []
const ports = followPorts(exchange, chain)
const metrics = { ...ports.metrics, mismatch: (kind: string) => mismatches.push(kind) }
const follower = new Follower({ ...ports, metrics }, recording.options)

const { timestamp } = recording
chain.append(timestamp, [])
// The markets share the accounts, so each market needs the deposit that one market had.
for (let number = 0; number < markets; number++) chain.append(timestamp, recording.deposits)
await follower.pass()

const passes: number[] = []
const cpu = { user: 0, system: 0 }
for (let block = 0; block < WARM_UP + blocks; block++) {
  const logs = await mineBlock(exchange, recording, block)
  chain.append(timestamp, logs)
  const before = { cpu: process.cpuUsage(), at: performance.now() }
  await follower.pass()
  if (block < WARM_UP) continue
  passes.push(performance.now() - before.at)
  const used = process.cpuUsage(before.cpu)
  cpu.user += used.user
  cpu.system += used.system
}
if (mismatches.length > 0)
  throw new Error(`parts did not settle as sent: ${mismatches.slice(0, 3).join(', ')}`)

const parts = blocks * markets * perBlock
const seconds = passes.reduce((sum, ms) => sum + ms, 0) / 1_000
const round = (value: number): number => Number(value.toFixed(1))
const result = {
  parts_per_second: round(parts / seconds),
  ms_of_this_process_per_part: round((cpu.user + cpu.system) / 1_000 / parts),
  block_ms_p50: round(percentile(passes, 0.5)),
  block_ms_max: round(percentile(passes, 1)),
  load: round(loadavg()[0] as number),
}
console.table([result])
console.log(JSON.stringify({ bench: 'ingest', markets, per_block: perBlock, blocks, ...result }))
await exchange.close()
