/** Starts a complete exchange on this machine: database, chain, contracts, processes, prices, and accounts. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonRpcProvider } from 'ethers'
import type { Db } from '../db/client.ts'
import { migrate } from '../db/migrator.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { localProvider } from './accounts.ts'
import type { AdminFile } from './admin.ts'
import { ensureBackstop } from './backstop.ts'
import { boundChainState } from './chain-state.ts'
import { preferPort, requirePort } from './choose-port.ts'
import { type DataDir, dataDirAt, emptyDataDir, makeFolder, writePrivate } from './data-dir.ts'
import { createLogins, type DatabaseUrls } from './database-logins.ts'
import { ensureDeployment, marketSpecs } from './deployment.ts'
import { type EngineFiles, listMarkets, membersOf, writeEngineFiles } from './engine.ts'
import { type Environment, type EnvironmentInput, environmentOf, type Ports } from './environment.ts'
import { loadIssuerKeys } from './issuer/keys.ts'
import { type Keys, loadKeys } from './keys.ts'
import { lockDataDir } from './lock.ts'
import type { StackOptions } from './options.ts'
import { createReportSigner, type ReportSigner } from './oracle.ts'
import { pageDir } from './page.ts'
import { freePort, internalPorts } from './ports.ts'
import { startPostgres } from './postgres.ts'
import {
  awaitPrices,
  CHAIN_ID,
  openDatabase,
  prepareAccounts,
  requireOwnHistory,
  stackFileOf,
  startBots,
  startChainOf,
  startMeasuredChain,
} from './prepare.ts'
import { priceConfigOf } from './price-config.ts'
import type { ProcessSpec } from './process-spec.ts'
import { keepRunning, onOnePort, type Service } from './services.ts'
import type { StackAccount, StackFile } from './stack-file.ts'
import { createSupervisor, type Managed } from './supervisor.ts'

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
  const ports = await portsOf(port, options)
  const engineAccess = { ...accessOf(engineFiles), databaseUrl: databaseUrls.engine }
  const environment = environmentOf({
    ...{ databaseUrls, rpcUrl: chain.url, deployment, keys, ports },
    pricesFile: dir.prices,
    issuerKeysFile: dir.issuer,
    pageDir: await page,
    engine: engineAccess,
  })
  const startProcess = async (spec: ProcessSpec): Promise<Managed> =>
    supervisor.start((await options.adapt?.(spec)) ?? spec)
  const { engine, standby } = await startEngine(startProcess, environment, engineFiles, ports.standby)
  await listMarkets(db, engineAccess, specs, calendar)
  report('markets are listed')
  const processes = await startProcesses(startProcess, environment)
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
    process: await startProcess(environment.backstop(accounts.backstop)),
  }
  const file = stackFileOf(prepared.entrance, chain.url, deployment, specs, accounts.traders)
  if (options.bots) startBots(supervisor, file, accounts.bots)
  const admin: AdminFile = {
    database_url: postgres.url,
    engine: { url: engineAccess.members.join(','), keys_file: engineFiles.keys.operator },
  }
  writePrivate(dir.admin, admin)
  writePrivate(dir.stackFile, file)
  const shared = { file, keys, db, provider, specs, oracle, pricesFile: dir.prices }
  return { ...shared, postgres, databaseUrls, chain, engine, standby, engineAccess, ...processes, backstop }
}

const accessOf = (files: EngineFiles) => ({
  listen: files.socket,
  members: membersOf(files),
  keys: files.keys,
})

/** `rest`: the port of the api. */
async function portsOf(rest: number, { port, standby }: StackOptions): Promise<Required<Ports>> {
  return {
    rest,
    issuer: port === 0 ? await freePort() : await preferPort(ISSUER_PORT),
    internal: await internalPorts(),
    standby: standby === true ? await freePort() : null,
  }
}

type StartProcess = (spec: ProcessSpec) => Promise<Managed>

async function startEngine(
  startProcess: StartProcess,
  { engine: spec }: Environment,
  { standbySocket: socket }: EngineFiles,
  standbyPort: number | null,
): Promise<Pick<Stack, 'engine' | 'standby'>> {
  const engine = await startProcess(spec)
  await engine.ready()
  const hasStandby = socket !== null && standbyPort !== null
  const standby = hasStandby ? await startProcess(standbyOf(spec, socket, standbyPort)) : null
  return { engine, standby }
}

const standbyOf = (engine: ProcessSpec, socket: string, port: number): ProcessSpec => ({
  name: 'engine standby',
  args: engine.args,
  env: { ...engine.env, ENGINE_LISTEN: socket, INTERNAL_PORT: `${port}` },
  readyUrl: `http://127.0.0.1:${port}/health/ready`,
})

async function startServices(
  { port, savesChain = true, databaseSettings: settings = [] }: StackOptions,
  dir: DataDir,
  report: (line: string) => void,
  onStop: OnStop,
) {
  const startDatabase = onOnePort(freePort, (at) => startPostgres({ dir: dir.postgres, port: at, settings }))
  const postgres = await keepRunning('postgres', startDatabase, report)
  onStop(() => postgres.stop())

  // Port 0 for the API means that several stacks may run at a time, so the chain uses any free port too.
  const chooseChainPort = port === 0 ? freePort : () => preferPort(CHAIN_PORT)
  const startOwnChain = onOnePort(chooseChainPort, (at) => {
    const own = { port: at, logFile: join(dir.logs, 'anvil.log') }
    return savesChain ? startChainOf(dir, own) : startMeasuredChain(own)
  })
  const chain = await keepRunning('anvil', startOwnChain, report)
  onStop(() => chain.stop())
  if (savesChain) onStop(boundChainState(dir.chainState, chain, report))
  return { postgres, chain }
}

/** The indexer starts first: API and keeper become ready only after it has ingested the chain. */
async function startProcesses(startProcess: StartProcess, environment: Environment) {
  const issuer = await startProcess(environment.issuer)
  const indexer = await startProcess(environment.indexer)
  await indexer.ready()
  const keeper = await startProcess(environment.keeper)
  const api = await startProcess(environment.api)
  return { issuer, indexer, keeper, api }
}
