/** An api process, an engine process and durable Postgres, without keeper, indexer and chain. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApiKey } from '../../api/auth/credentials.ts'
import { insertProgress, recordHead } from '../../db/chain.ts'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { migrate } from '../../db/migrator.ts'
import { publishReports } from '../../db/oracle-reports.ts'
import { findUsers } from '../../db/users.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { type Address, type Millis, ONE, type Price, type Ticks } from '../../domain/units.ts'
import type { Env } from '../../service/environment.ts'
import { createLogins } from '../../stack/database-logins.ts'
import { freePort } from '../../stack/ports.ts'
import { startPostgres } from '../../stack/postgres.ts'
import { sealGroups } from '../../test/support/rows/journal.ts'
import { listMarket } from '../../test/support/rows/markets.ts'
import { fundAccounts, type IsolatedEngine, startIsolatedEngine } from './isolated-engine.ts'
import { accountOf, type BenchMarket } from './orders.ts'
import { ACCOUNTS, type Target } from './target.ts'

const DAY = String(24 * 3600 * 1000)
const MANY = '1000000'
/** No process updates prices or chain progress here, so their age must not matter. */
const AGES = { ORACLE_MAX_AGE_MS: DAY, CHAIN_MAX_AGE_MS: DAY }

export const isolatedMarket = (marketId: number): BenchMarket => ({
  spec: {
    marketId,
    symbol: `BENCH-${marketId}`,
    kind: 'perpetual',
    trader: `0x${String(marketId).padStart(40, '0')}`,
    chainId: 6343n,
    tick: ONE / 10n,
    step: ONE / 1000n,
    minPrice: 1,
    minQuantity: 1,
    maxQuantity: 10_000_000,
    maxLeverage: 20,
    imr: (ONE * 45n) / 1000n,
    mmr: (ONE * 225n) / 10_000n,
    mtbLong: ONE / 20n,
    mtbShort: ONE / 20n,
    makerFee: 0n,
    takerFee: (ONE * 5n) / 10_000n,
    fundingCap: 0n,
    fundingSession: false,
    finalLow: 0n,
    finalHigh: 0n,
    expiresAt: 0,
    disputeWindow: 86_400_000,
  } as unknown as MarketSpec,
  oracle: 1_000 as Ticks,
})

export const ISOLATED_MARKETS: readonly BenchMarket[] = [1, 2, 3, 4].map(isolatedMarket)

const apiEnv = (url: string, port: number) => ({
  PATH: process.env.PATH,
  DATABASE_URL: url,
  PORT: String(port),
  INTERNAL_PORT: '0',
  CHAIN_ID: '6343',
  ADDRESS_USDM: `0x${'aa'.repeat(20)}`,
  ADDRESS_MARGIN_BANK: `0x${'bb'.repeat(20)}`,
  ADDRESS_ACCOUNT_MANAGER: `0x${'cc'.repeat(20)}`,
  ADDRESS_FORWARDER: `0x${'dd'.repeat(20)}`,
  LOG_LEVEL: 'warn',
  ...AGES,
  RATE_LIMIT_READS: MANY,
  RATE_LIMIT_ORDERS: MANY,
  RATE_LIMIT_BATCHES: MANY,
  RATE_LIMIT_CANCELS: MANY,
  RATE_LIMIT_ADDRESS: MANY,
  RATE_LIMIT_ACCOUNTS: MANY,
  HTTP_CONNECTIONS_PER_ADDRESS: MANY,
})

/** Lists the markets, before the engine starts for the first time. */
async function seed(db: Db): Promise<void> {
  await migrate(db)
  const at = Date.now() as Millis
  for (const { spec, oracle } of ISOLATED_MARKETS) {
    await listMarket(db, spec)
    const price = BigInt(oracle) * spec.tick
    const report = { price: price as Price, observedAt: at, signatures: '0x' } as const
    await publishReports(db, [{ marketId: spec.marketId, feed: 'index', report, readings: [] }])
  }
  await sealGroups(db)
  await insertProgress(db, { chainId: 6343, hash: '0x' }, 1)
  await recordHead(db, 6343, 0, at)
}

/** Accounts with a balance, and an API key of each. */
async function createAccounts(db: Db, engine: IsolatedEngine): Promise<string[]> {
  const addresses = Array.from({ length: ACCOUNTS }, (_, index) => accountOf(index).address as Address)
  await fundAccounts(db, engine, addresses, ISOLATED_MARKETS)
  const users = await findUsers(db, addresses)
  return Promise.all(addresses.map((address) => createApiKey(db, users.get(address) as number)))
}

async function startApi(url: string, port: number, env: Env): Promise<ChildProcess> {
  const api = spawn(process.execPath, ['api/main.ts'], {
    env: { ...apiEnv(url, port), ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  for (;;) {
    const ready = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => null)
    if (ready?.ok) return api
    if (api.exitCode !== null) throw new Error(`the api exited with code ${api.exitCode} before it was ready`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

export interface IsolatedTarget extends Target {
  readonly engine: IsolatedEngine
}

/** `env` is added to the environment of the api. */
export async function startIsolated(env: Env = {}): Promise<IsolatedTarget> {
  const dir = await mkdtemp(join(tmpdir(), 'clearbatch-bench-'))
  const postgres = await startPostgres({ dir })
  const db = createDb(createPool({ url: postgres.url, connections: 1, name: 'bench' }))
  const port = await freePort()
  const children: ChildProcess[] = []
  const stop = async (): Promise<void> => {
    for (const child of children.toReversed()) if (child.kill('SIGTERM')) await once(child, 'exit')
    await db.destroy()
    await postgres.stop()
    await rm(dir, { recursive: true, force: true })
  }
  try {
    await seed(db)
    const logins = await createLogins(postgres.url)
    const engine = await startIsolatedEngine(dir, logins.engine, AGES)
    children.push(engine.process)
    const keys = await createAccounts(db, engine)
    const api = await startApi(logins.api, port, { ...engine.env, ...env })
    children.push(api)
    const processes = { api: api.pid ?? 0, engine: engine.process.pid ?? 0 }
    const databaseUrl = postgres.url
    const markets = ISOLATED_MARKETS
    return { port, keys, markets, db, databaseUrl, processes, keeperUrl: null, engine, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
