/** An engine process without ingest, publisher and workers: the benchmark sends what they would, once. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Db } from '../../db/client.ts'
import { type Address, type Millis, ONE, type Price } from '../../domain/units.ts'
import { keysOf } from '../../keeper/engine/link/access.ts'
import { connectEngine, identityOf } from '../../keeper/engine/link/connect.ts'
import { ask } from '../../keeper/engine/link/engine.ts'
import { ROLES } from '../../keeper/engine/link/messages.ts'
import { freePort } from '../../stack/ports.ts'
import type { BenchMarket } from './orders.ts'

const CHAIN_ID = 6343
const BUDGET_MS = 30_000
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
const DEPOSIT = ONE * 100_000_000n

const hashOf = (number: number): `0x${string}` => `0x${number.toString(16).padStart(64, '0')}`

export interface IsolatedEngine {
  readonly process: ChildProcess
  /** How an api process finds it. */
  readonly env: { readonly ENGINE_URL: string; readonly ENGINE_KEYS_FILE: string }
}

/** `url`: of a login of the engine. `limits`: ages above which placements are refused. */
export async function startIsolatedEngine(
  dir: string,
  url: string,
  limits: Readonly<Record<string, string>>,
): Promise<IsolatedEngine> {
  const env = { ENGINE_URL: join(dir, 'engine'), ENGINE_KEYS_FILE: join(dir, 'engine-keys.json') }
  const keys = Object.fromEntries(ROLES.map((role) => [role, randomBytes(32).toString('hex')]))
  writeFileSync(env.ENGINE_KEYS_FILE, JSON.stringify(keys), { mode: 0o600 })
  const port = await freePort()
  const child = spawn(process.execPath, ['keeper/engine/main.ts'], {
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: url,
      CHAIN_ID: String(CHAIN_ID),
      ADDRESS_MARGIN_BANK: `0x${'bb'.repeat(20)}`,
      ENGINE_LISTEN: env.ENGINE_URL,
      ENGINE_KEYS_FILE: env.ENGINE_KEYS_FILE,
      INTERNAL_PORT: String(port),
      LOG_LEVEL: 'warn',
      ...limits,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  for (;;) {
    const ready = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => null)
    if (ready?.ok) return { process: child, env }
    if (child.exitCode !== null)
      throw new Error(`the engine exited with code ${child.exitCode} before it was ready`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Deposits for each account by one block, and a report for each market. */
export async function fundAccounts(
  db: Db,
  { env }: IsolatedEngine,
  addresses: readonly Address[],
  markets: readonly BenchMarket[],
): Promise<void> {
  const access = { members: [env.ENGINE_URL], keys: keysOf('keys', env.ENGINE_KEYS_FILE, ROLES) }
  const identity = await identityOf(db, CHAIN_ID)
  const ingest = connectEngine(identity, access, 'ingest', SILENT)
  const publisher = connectEngine(identity, access, 'publisher', SILENT)
  const now = Date.now() as Millis
  try {
    await ask<'apply_block'>(
      ingest.engine,
      {
        kind: 'apply_block',
        block: { number: 1, hash: hashOf(1), parentHash: hashOf(0), timestamp: Math.floor(now / 1000) },
        from: 1,
        facts: addresses.map((account, logIndex) => ({
          log: { logIndex, txHash: hashOf(1), address: account },
          fact: { kind: 'ledger_moved', cause: 'deposit', account, freeDelta: DEPOSIT, pendingDelta: 0n },
        })),
        silent: [],
        positions: [],
        gasUsed: new Map(),
      },
      BUDGET_MS,
    )
    await ingest.engine.inform({ kind: 'inform_pass', at: now })
    for (const { spec, oracle } of markets) {
      const report = {
        price: (BigInt(oracle) * spec.tick) as Price,
        observedAt: now,
        signatures: '0x',
      } as const
      await publisher.engine.inform({
        kind: 'inform_reports',
        marketId: spec.marketId,
        report,
        session: null,
      })
    }
  } finally {
    await Promise.all([ingest.close(), publisher.close()])
  }
}

/** Longer than a test. */
const DAY_MS = 86_400_000

/** Lets the engine run auctions on the first report of each market. */
export async function allowAuctions(
  db: Db,
  { env }: IsolatedEngine,
  markets: readonly BenchMarket[],
): Promise<void> {
  const access = { members: [env.ENGINE_URL], keys: keysOf('keys', env.ENGINE_KEYS_FILE, ROLES) }
  const worker = connectEngine(await identityOf(db, CHAIN_ID), access, 'worker', SILENT)
  try {
    for (const { spec } of markets) {
      const moves = { moveBase: 1_000_000n, moveSlope: 0n, moveWindow: 1_000 as Millis }
      const rules = { kind: spec.kind, tick: spec.tick as Price, maxAge: DAY_MS as Millis, ...moves }
      await worker.engine.inform({ kind: 'inform_rules', marketId: spec.marketId, rules })
    }
    await worker.engine.inform({ kind: 'inform_head', time: Date.now() as Millis })
  } finally {
    await worker.close()
  }
}
