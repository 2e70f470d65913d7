/** Starts a complete exchange on this machine: database, chain, contracts, processes, prices, and accounts. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonRpcProvider } from 'ethers'
import { createDb, createPool, type Db } from '../db/client.ts'
import { migrate } from '../db/migrator.ts'
import { latestReport } from '../db/oracle-reports.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { ForeignHistoryError, requireEngineHistory } from '../keeper/engine/genesis.ts'
import { type Entrance, fund, issueApiKeys, localProvider } from './accounts.ts'
import type { AdminFile } from './admin.ts'
import { startAnvil } from './anvil.ts'
import { ensureBackstop, fundBackstop } from './backstop.ts'
import { boundChainState, repairChainState } from './chain-state.ts'
import { preferPort, requirePort } from './choose-port.ts'
import { type DataDir, dataDirAt, emptyDataDir, makeFolder, readJson, writePrivate } from './data-dir.ts'
import { createLogins, type DatabaseUrls } from './database-logins.ts'
import { type Deployment, ensureDeployment, marketSpecs } from './deployment.ts'
import { type EngineFiles, listMarkets, membersOf, writeEngineFiles } from './engine.ts'
import { type Environment, type EnvironmentInput, environmentOf } from './environment.ts'
import { loadIssuerKeys } from './issuer/keys.ts'
import { type Key, type Keys, loadKeys } from './keys.ts'
import { lockDataDir } from './lock.ts'
import { StackError, type StackOptions } from './options.ts'
import { createReportSigner, type ReportSigner } from './oracle.ts'
import { pageDir } from './page.ts'
import { freePort, internalPorts } from './ports.ts'
import { startPostgres } from './postgres.ts'
import { priceConfigOf } from './price-config.ts'
import { keepRunning, onOnePort, type Service } from './services.ts'
import type { StackAccount, StackFile } from './stack-file.ts'
import { createSupervisor, type Managed, type ProcessSpec, type Supervisor } from './supervisor.ts'

export const CHAIN_ID = 6343
const ACCOUNTS = 12
const BOTS = 4
const FUNDS = { wallet: 100_000n * 10n ** 18n, deposit: 1_000_000n * 10n ** 18n } as const
const BOT_FUNDS = { wallet: 0n, deposit: 20_000_000n * 10n ** 18n } as const
const CHAIN_PORT = 8545
const ISSUER_PORT = 8090

export interface Stack {
  readonly file: StackFile
  readonly keys: Keys
  readonly db: Db
  readonly provider: JsonRpcProvider
  readonly specs: readonly MarketSpec[]
  /** Signs reports with the key of the local oracle. */
  readonly oracle: ReportSigner
  /** Path of the keeper's price configuration. */
  readonly pricesFile: string
  readonly postgres: Service
  /** How each process connects; `postgres.url` is the owner's. */
  readonly databaseUrls: DatabaseUrls
  readonly chain: Service
  readonly engine: Managed
  /** Another member of the engine; null without one. */
  readonly standby: Managed | null
  readonly engineAccess: EnvironmentInput['engine']
  readonly api: Managed
  readonly keeper: Managed
  readonly indexer: Managed
  /** The identity provider. */
  readonly issuer: Managed
  /** Null without a backstop. */
  readonly backstop: { readonly account: StackAccount; readonly process: Managed } | null
  stop(): Promise<void>
}

/** If a step of the start fails, everything that was started before it is stopped. */
export async function startStack(options: StackOptions, report: (line: string) => void): Promise<Stack> {
  const dir = dataDirAt(options.dataDir)
  const undo: (() => unknown)[] = [lockDataDir(dir)]
  const stop = async (): Promise<void> => {
    for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step()
  }
  try {
    return { ...(await start(options, dir, report, (step) => undo.push(step))), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

type OnStop = (step: () => unknown) => void

async function start(
  options: StackOptions,
  dir: DataDir,
  report: (line: string) => void,
  onStop: OnStop,
): Promise<Omit<Stack, 'stop'>> {
  const port = await requirePort(options.port)
  if (options.fresh) emptyDataDir(dir)
  rmSync(dir.stackFile, { recursive: true, force: true })
  for (const path of [dir.logs, dir.postgres]) makeFolder(path)
  const page = options.page === true ? pageDir(report) : null
  // Awaited after the contracts: a failure before that must not end this process as an unhandled rejection.
  page?.catch(() => {})
  const { postgres, chain } = await startServices(options, dir, report, onStop)
  report('database and chain are ready')

  const db = openDatabase(postgres.url)
  onStop(() => db.destroy())
  await requireOwnHistory(db)
  const provider = localProvider(chain.url, CHAIN_ID)
  onStop(() => provider.destroy())

  const keys = loadKeys(dir)
  const deployment = await ensureDeployment(dir, keys, provider, CHAIN_ID)
  const backstopKey = options.backstop === false ? null : await ensureBackstop(keys, provider, deployment)
  const specs = marketSpecs(deployment)
  await migrate(db)
  const databaseUrls = await createLogins(postgres.url)
  const calendar = options.calendar ?? 'ALWAYS_OPEN'
  const engineFiles = writeEngineFiles(dir, options.standby === true)
  report('contracts are deployed')

  const { oracle: address } = deployment.contracts
  const oracle = createReportSigner(keys.oracle.privateKey, { chainId: CHAIN_ID, address })
  writePrivate(dir.prices, priceConfigOf(address))
  // Its process could report damaged keys only in its log.
  await loadIssuerKeys(dir.issuer)

  const supervisor = createSupervisor({ logDir: dir.logs, report })
  onStop(() => supervisor.stop())
  const issuerPort = options.port === 0 ? await freePort() : await preferPort(ISSUER_PORT)
  const ports = { rest: port, issuer: issuerPort, internal: await internalPorts() }
  const engineAccess = { ...engineFiles, databaseUrl: databaseUrls.engine }
  const environment = environmentOf({
    ...{ databaseUrls, rpcUrl: chain.url, deployment, keys, ports },
    pricesFile: dir.prices,
    issuerKeysFile: dir.issuer,
    pageDir: await page,
    engine: engineAccess,
  })
  const { engine, standby } = await startEngine(supervisor, environment, engineFiles)
  await listMarkets(db, engineFiles, specs, calendar)
  report('markets are listed')
  const processes = await startProcesses(supervisor, environment)
  const { baseUrl, issuerUrl } = environment
  const prepared = { db, dir, provider, keys, deployment, backstopKey, entrance: { baseUrl, issuerUrl } }
  const ready = async (): Promise<void> => {
    await Promise.all([processes.api.ready(), processes.keeper.ready(), processes.issuer.ready()])
  }
  const accounts = await prepareAccounts(prepared, options.bots, ready)
  report('accounts are funded and have API keys')
  await awaitPrices(db, specs)

  const backstop = accounts.backstop && {
    account: accounts.backstop,
    process: supervisor.start(environment.backstop(accounts.backstop)),
  }
  const file = describe(prepared.entrance, chain.url, deployment, specs, accounts.traders)
  if (options.bots) startBots(supervisor, file, accounts.bots)
  const admin: AdminFile = {
    database_url: postgres.url,
    engine: { url: membersOf(engineFiles).join(','), keys_file: engineFiles.keys.operator },
  }
  writePrivate(dir.admin, admin)
  writePrivate(dir.stackFile, file)
  const shared = { file, keys, db, provider, specs, oracle, pricesFile: dir.prices }
  return { ...shared, postgres, databaseUrls, chain, engine, standby, engineAccess, ...processes, backstop }
}

async function startEngine(
  supervisor: Supervisor,
  { engine: spec }: Environment,
  { standbySocket: socket }: EngineFiles,
): Promise<Pick<Stack, 'engine' | 'standby'>> {
  const engine = supervisor.start(spec)
  await engine.ready()
  const standby = socket === null ? null : supervisor.start(standbyOf(spec, socket, await freePort()))
  return { engine, standby }
}

const standbyOf = (engine: ProcessSpec, socket: string, port: number): ProcessSpec => ({
  name: 'engine standby',
  args: engine.args,
  env: { ...engine.env, ENGINE_LISTEN: socket, INTERNAL_PORT: `${port}` },
  readyUrl: `http://127.0.0.1:${port}/health/ready`,
})

/** Throws a StackError for the database of a version without an engine, which stays as it is. */
async function requireOwnHistory(db: Db): Promise<void> {
  try {
    await requireEngineHistory(db)
  } catch (error) {
    throw error instanceof ForeignHistoryError ? new StackError(error.message) : error
  }
}

const openDatabase = (url: string): Db =>
  createDb(createPool({ url, connections: 4, name: 'stack', idleInTransactionMs: 0 }))

async function startServices(
  { port, databaseSettings: settings = [] }: StackOptions,
  dir: DataDir,
  report: (line: string) => void,
  onStop: OnStop,
) {
  const startDatabase = onOnePort(freePort, (at) => startPostgres({ dir: dir.postgres, port: at, settings }))
  const postgres = await keepRunning('postgres', startDatabase, report)
  onStop(() => postgres.stop())

  // Port 0 for the API means that several stacks may run at a time, so the chain uses any free port too.
  const chooseChainPort = port === 0 ? freePort : () => preferPort(CHAIN_PORT)
  const startChain = onOnePort(chooseChainPort, (at) => {
    repairChainState(dir.chainState)
    return startAnvil({
      port: at,
      chainId: CHAIN_ID,
      blockTime: 1,
      mixedMining: true,
      stateFile: dir.chainState,
      logFile: join(dir.logs, 'anvil.log'),
    })
  })
  const chain = await keepRunning('anvil', startChain, report)
  onStop(() => chain.stop())
  onStop(boundChainState(dir.chainState, chain, report))
  return { postgres, chain }
}

/** Bound of the wait for the first prices. A keeper that was killed keeps its lease for some seconds. */
const FIRST_PRICES_MS = 15_000

/** Clients find a price in every market from the start. */
async function awaitPrices(db: Db, specs: readonly MarketSpec[]): Promise<void> {
  const deadline = Date.now() + FIRST_PRICES_MS
  for (const { marketId, symbol } of specs) {
    while ((await latestReport(db, { marketId, feed: 'index' })) === null) {
      if (Date.now() > deadline)
        throw new StackError(`${symbol} has no price after ${FIRST_PRICES_MS} ms: see the log of the keeper`)
      await sleep(50)
    }
  }
}

/** The indexer starts first: API and keeper become ready only after it has ingested the chain. */
async function startProcesses(supervisor: Supervisor, environment: Environment) {
  const issuer = supervisor.start(environment.issuer)
  const indexer = supervisor.start(environment.indexer)
  await indexer.ready()
  const keeper = supervisor.start(environment.keeper)
  const api = supervisor.start(environment.api)
  return { issuer, indexer, keeper, api }
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
async function prepareAccounts(prepare: Prepare, withBots: boolean, ready: () => Promise<void>) {
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

const startBots = (supervisor: Supervisor, file: StackFile, bots: readonly StackAccount[]): Managed =>
  supervisor.start({
    name: 'bots',
    args: ['stack/bots.ts'],
    env: { BASE_URL: file.base_url, BOT_ACCOUNTS: JSON.stringify(bots) },
    readyUrl: null,
  })

const describe = (
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
