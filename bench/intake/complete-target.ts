/** A complete stack with funded accounts: database, chain, contracts, prices, indexer, keeper and api. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toHex } from '../../domain/hex.ts'
import type { Ticks } from '../../domain/units.ts'
import { openAdmin } from '../../stack/admin.ts'
import { dataDirAt } from '../../stack/data-dir.ts'
import { SEED_MARKETS } from '../../stack/seed-markets.ts'
import { type Stack, startStack } from '../../stack/stack.ts'
import { accountOf, type BenchMarket } from './orders.ts'
import { ACCOUNTS, type Target } from './target.ts'

const DEPOSIT = 1_000_000n * 10n ** 18n

/** Deposits for the accounts, waits until the indexer has ingested the deposits, and returns an API key for each. */
async function openAccounts(stackFile: string, count: number): Promise<string[]> {
  const admin = await openAdmin(stackFile)
  try {
    const accounts = Array.from({ length: count }, (_, index) => accountOf(index))
    const keys = accounts.map(({ address, key }) => ({ address, privateKey: toHex(key) }))
    return (await admin.accounts(keys, DEPOSIT)).map(({ api_key }) => api_key)
  } finally {
    await admin.close()
  }
}

const marketsOf = ({ specs }: Stack): BenchMarket[] =>
  specs.map((spec) => {
    const seed = SEED_MARKETS.find(({ plan }) => plan.marketId === spec.marketId)
    return { spec, oracle: Number((seed?.firstPrice ?? 0n) / spec.tick) as Ticks }
  })

export interface CompleteTarget extends Target {
  readonly stack: Stack
}

export interface CompleteOptions {
  readonly accounts?: number
  /** Run-time parameters of Postgres. */
  readonly databaseSettings?: readonly string[]
}

export async function startComplete(options: CompleteOptions = {}): Promise<CompleteTarget> {
  const { accounts = ACCOUNTS, databaseSettings = [] } = options
  const dataDir = await mkdtemp(join(tmpdir(), 'clearbatch-bench-'))
  const remove = () => rm(dataDir, { recursive: true, force: true })
  const choices = {
    port: 0,
    dataDir,
    fresh: false,
    bots: false,
    backstop: false,
    savesChain: false,
    databaseSettings,
  }
  const start = () => startStack(choices, () => {})
  const stack = await start().catch(async (error) => {
    await remove()
    throw error
  })
  const stop = async (): Promise<void> => {
    await stack.stop()
    await remove()
  }
  try {
    const keys = await openAccounts(dataDirAt(dataDir).stackFile, accounts)
    const { api, keeper, indexer, engine } = stack
    return {
      port: Number(new URL(stack.file.base_url).port),
      keys,
      markets: marketsOf(stack),
      db: stack.db,
      databaseUrl: stack.postgres.url,
      processes: {
        engine: engine.pid() ?? 0,
        api: api.pid() ?? 0,
        keeper: keeper.pid() ?? 0,
        indexer: indexer.pid() ?? 0,
      },
      keeperUrl: keeper.url,
      stack,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
