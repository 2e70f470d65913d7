/** Starts Postgres and an api process, gives the load generator its accounts, and collects what it measured. */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { createApiKey } from '../../api/credentials.ts'
import { ONE } from '../../domain/units.ts'
import { createDb, createPool, type Db, migrate } from '../../indexer/db/client.ts'
import { listMarket } from '../../indexer/db/markets.ts'
import { freePort } from '../../stack/ports.ts'
import { startPostgres } from '../../stack/postgres.ts'
import type { LoadRun, LoadTask, Measured } from './load.ts'
import { accountOf, MARKETS, ORACLE_TICKS } from './orders.ts'

const ACCOUNTS = 256
const DAY = String(24 * 3600 * 1000)
const MANY = '1000000'

const RUNS: readonly LoadRun[] = [
  { name: 'warm-up', kind: 'closed', clients: 32, seconds: 3 },
  { name: '1 client', kind: 'closed', clients: 1, seconds: 4 },
  { name: '32 clients', kind: 'closed', clients: 32, seconds: 5 },
  { name: '256 clients', kind: 'closed', clients: 256, seconds: 5 },
  { name: '200/s', kind: 'open', rate: 200, seconds: 8 },
  { name: '2000/s', kind: 'open', rate: 2000, seconds: 15 },
]

const apiEnv = (url: string, port: number) => ({
  PATH: process.env.PATH,
  DATABASE_URL: url,
  PORT: String(port),
  CHAIN_ID: '6343',
  ADDRESS_USDM: `0x${'aa'.repeat(20)}`,
  ADDRESS_MARGIN_BANK: `0x${'bb'.repeat(20)}`,
  ADDRESS_ACCOUNT_MANAGER: `0x${'cc'.repeat(20)}`,
  ADDRESS_FORWARDER: `0x${'dd'.repeat(20)}`,
  LOG_LEVEL: 'warn',
  // Nobody feeds prices or follows a chain here.
  ORACLE_MAX_AGE_MS: DAY,
  CHAIN_MAX_AGE_MS: DAY,
  RATE_LIMIT_ORDERS: MANY,
  RATE_LIMIT_ADDRESS: MANY,
})

/** Markets, prices, and accounts with a balance and a key each. */
async function seed(db: Db): Promise<string[]> {
  await migrate(db)
  const at = Date.now()
  for (const spec of MARKETS) {
    await listMarket(db, spec)
    const report = {
      price: BigInt(ORACLE_TICKS) * spec.tick,
      observed_at: at,
      signatures: '0x',
      received_at: at,
    }
    await db
      .insertInto('oracle_reports')
      .values({ market_id: spec.marketId, ...report })
      .execute()
  }
  const progress = { chain_id: 6343, genesis_hash: '0x', next_block: 1, head: 0, completed_at: at }
  await db.insertInto('chain_progress').values(progress).execute()

  const keys: string[] = []
  for (let index = 0; index < ACCOUNTS; index++) {
    const values = { address: accountOf(index).address, created_at: at }
    const user = await db.insertInto('users').values(values).returning('user_id').executeTakeFirstOrThrow()
    await db
      .insertInto('accounts')
      .values({ user_id: user.user_id, free: ONE * 100_000_000n })
      .execute()
    keys.push(await createApiKey(db, user.user_id))
  }
  return keys
}

async function startApi(url: string, port: number): Promise<ChildProcess> {
  const api = spawn(process.execPath, [...[], 'api/main.ts'], {
    env: apiEnv(url, port),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  for (;;) {
    const ready = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => null)
    if (ready?.ok) return api
    if (api.exitCode !== null) throw new Error('the api did not start')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** CPU seconds that the api has used, by its own count. */
async function apiSeconds(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  return Number(/^process_cpu_seconds_total (\S+)/m.exec(text)?.[1])
}

/** CPU seconds that the backends of the intake have used; NaN where the system does not tell. */
async function databaseSeconds(db: Db): Promise<number> {
  const { rows } = await sql<{ pid: number }>`
    select pid from pg_stat_activity where application_name = 'clearbatch api intake'
  `.execute(db)
  try {
    const ticks = rows.map(
      ({ pid }) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [],
    )
    return ticks.reduce((sum, fields) => sum + (Number(fields[11]) + Number(fields[12])) / 100, 0)
  } catch {
    return Number.NaN
  }
}

/** A run as measured, and what one placement cost: on a shared machine that says more than its duration. */
export interface Costed extends Measured {
  readonly api_cpu_us: number
  readonly database_cpu_us: number
}

async function load(db: Db, port: number, keys: readonly string[]): Promise<Costed[]> {
  const generator = fork(new URL('./load.ts', import.meta.url).pathname)
  const costed: Costed[] = []
  for (const run of RUNS) {
    const before = [await apiSeconds(port), await databaseSeconds(db)] as const
    generator.send({ port, keys, run } satisfies LoadTask)
    const [measured] = (await once(generator, 'message')) as [Measured]
    const each = (from: number, to: number): number => Math.round(((to - from) / measured.accepted) * 1e6)
    costed.push({
      ...measured,
      api_cpu_us: each(before[0], await apiSeconds(port)),
      database_cpu_us: each(before[1], await databaseSeconds(db)),
    })
  }
  generator.disconnect()
  return costed
}

export async function measurePlacements(): Promise<Costed[]> {
  const dir = await mkdtemp(join(tmpdir(), 'clearbatch-bench-'))
  const postgres = await startPostgres({ dir })
  const db = createDb(createPool({ url: postgres.url, connections: 1, name: 'bench' }))
  const port = await freePort()
  let api: ChildProcess | undefined
  try {
    const keys = await seed(db)
    api = await startApi(postgres.url, port)
    return await load(db, port, keys)
  } finally {
    if (api?.kill('SIGTERM')) await once(api, 'exit')
    await db.destroy()
    await postgres.stop()
    await rm(dir, { recursive: true, force: true })
  }
}
