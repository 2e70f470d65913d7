/** Prepares every local exchange besides its processes: database, funded accounts with API keys, first prices, and `stack.json`. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonRpcProvider } from 'ethers'
import { createDb, createPool, type Db } from '../db/client.ts'
import { latestReport } from '../db/oracle-reports.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { ForeignHistoryError, requireEngineHistory } from '../keeper/engine/genesis.ts'
import { type Entrance, fund, issueApiKeys } from './accounts.ts'
import { type Anvil, type AnvilOptions, startAnvil } from './anvil.ts'
import { fundBackstop } from './backstop.ts'
import { repairChainState } from './chain-state.ts'
import { type DataDir, readJson, writePrivate } from './data-dir.ts'
import type { Deployment } from './deployment.ts'
import type { Key, Keys } from './keys.ts'
import { StackError } from './options.ts'
import type { StackAccount, StackFile } from './stack-file.ts'
import type { Managed, Supervisor } from './supervisor.ts'

export const CHAIN_ID = 6343
const ACCOUNTS = 12
const BOTS = 4
const FUNDS = { wallet: 100_000n * 10n ** 18n, deposit: 1_000_000n * 10n ** 18n } as const
const BOT_FUNDS = { wallet: 0n, deposit: 20_000_000n * 10n ** 18n } as const

type ChainOptions = Pick<AnvilOptions, 'port' | 'host' | 'launcher' | 'logFile'>

/** Starts the chain that the folder has saved. A block is mined every second, and with each transaction. */
export function startChainOf({ chainState: stateFile }: DataDir, options: ChainOptions): Promise<Anvil> {
  repairChainState(stateFile)
  return startAnvil({ ...options, chainId: CHAIN_ID, blockTime: 1, mixedMining: true, stateFile })
}

/**
 * Starts a chain for measurements, which is not saved. Anvil reads all of its state for the root of each block, so four
 * blocks per second leave the processors to the exchange.
 */
export const startMeasuredChain = (options: ChainOptions): Promise<Anvil> =>
  startAnvil({ ...options, chainId: CHAIN_ID, blockTime: 0.25 })

/** Throws a StackError for the database of a version without an engine, which stays as it is. */
export async function requireOwnHistory(db: Db): Promise<void> {
  try {
    await requireEngineHistory(db)
  } catch (error) {
    throw error instanceof ForeignHistoryError ? new StackError(error.message) : error
  }
}

export const openDatabase = (url: string): Db =>
  createDb(createPool({ url, connections: 4, name: 'stack', idleInTransactionMs: 0 }))

/** Bound of the wait for the first prices. A keeper that was killed keeps its lease for some seconds. */
const FIRST_PRICES_MS = 15_000

/** Clients find a price in every market from the start. */
export async function awaitPrices(db: Db, specs: readonly MarketSpec[]): Promise<void> {
  const deadline = Date.now() + FIRST_PRICES_MS
  for (const { marketId, symbol } of specs) {
    while ((await latestReport(db, { marketId, feed: 'index' })) === null) {
      if (Date.now() > deadline)
        throw new StackError(`${symbol} has no price after ${FIRST_PRICES_MS} ms: see the log of the keeper`)
      await sleep(50)
    }
  }
}

interface Prepare {
  readonly db: Db
  readonly dir: DataDir
  readonly provider: JsonRpcProvider
  readonly keys: Keys
  readonly deployment: Deployment
  /** The session key that signs the orders of the backstop; null without a backstop. */
  readonly backstopKey: Key | null
  readonly entrance: Entrance
}

/** `ready` resolves once accounts can sign in and create their keys. */
export async function prepareAccounts(prepare: Prepare, withBots: boolean, ready: () => Promise<void>) {
  const { db, dir, provider, keys, deployment, backstopKey, entrance } = prepare
  const { usdm, marginBank } = deployment.contracts
  const funding = { provider, deployer: keys.deployer, usdm, marginBank }
  const traderKeys = Array.from({ length: ACCOUNTS }, (_, index) => keys.account(index))
  const botKeys = Array.from({ length: BOTS }, (_, index) => keys.bot(index))
  await fund(funding, traderKeys, FUNDS)
  await fund(funding, botKeys, BOT_FUNDS)
  const backstop = backstopKey && (await fundBackstop(db, funding, deployment.contracts, backstopKey))

  await ready()
  const bots = withBots ? await issueApiKeys(db, entrance, botKeys) : []
  const stored = readJson(dir.accounts, areAccounts)
  if (stored !== null) return { traders: stored, bots, backstop }
  const traders = await issueApiKeys(db, entrance, traderKeys)
  writePrivate(dir.accounts, traders)
  return { traders, bots, backstop }
}

const areAccounts = (stored: readonly StackAccount[]): boolean =>
  Array.isArray(stored) &&
  stored.length === ACCOUNTS &&
  stored.every(({ api_key }) => typeof api_key === 'string')

export const startBots = (supervisor: Supervisor, file: StackFile, bots: readonly StackAccount[]): Managed =>
  supervisor.start({
    name: 'bots',
    args: ['stack/bots.ts'],
    env: { BASE_URL: file.base_url, BOT_ACCOUNTS: JSON.stringify(bots) },
    readyUrl: null,
  })

export const stackFileOf = (
  { baseUrl, issuerUrl }: Entrance,
  rpcUrl: string,
  { contracts }: Deployment,
  specs: readonly MarketSpec[],
  accounts: readonly StackAccount[],
): StackFile => ({
  base_url: baseUrl,
  ws_url: `${baseUrl.replace(/^http/, 'ws')}/v0/ws`,
  issuer_url: issuerUrl,
  rpc_url: rpcUrl,
  chain_id: CHAIN_ID,
  contracts: {
    usdm: contracts.usdm,
    margin_bank: contracts.marginBank,
    account_manager: contracts.accountManager,
    forwarder: contracts.forwarder,
  },
  markets: specs.map(({ marketId, symbol, kind, trader }) => ({
    market_id: marketId,
    symbol,
    type: kind,
    trader_address: trader,
  })),
  accounts,
})
