/** Starts an exchange on several hosts of this machine: Postgres under Patroni, Redis under Sentinel, and two of each process. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonRpcProvider } from 'ethers'
import pg from 'pg'
import type { Db } from '../../db/client.ts'
import { migrate } from '../../db/migrator.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Address } from '../../domain/units.ts'
import { linkTls } from '../../keeper/engine/link/tls.ts'
import { localProvider } from '../accounts.ts'
import type { AdminFile } from '../admin.ts'
import { ensureBackstop } from '../backstop.ts'
import { boundChainState } from '../chain-state.ts'
import { type DataDir, dataDirAt, emptyDataDir, makeFolder, writePrivate } from '../data-dir.ts'
import { createLogins } from '../database-logins.ts'
import { ensureDeployment, marketSpecs } from '../deployment.ts'
import { listMarkets, writeEngineKeys } from '../engine.ts'
import { type Keys, loadKeys } from '../keys.ts'
import { lockDataDir } from '../lock.ts'
import { StackError } from '../options.ts'
import { pageDir } from '../page.ts'
import {
  awaitPrices,
  CHAIN_ID,
  openDatabase,
  prepareAccounts,
  requireOwnHistory,
  stackFileOf,
  startBots,
  startChainOf,
} from '../prepare.ts'
import { priceConfigOf } from '../price-config.ts'
import type { ProcessSpec } from '../process-spec.ts'
import { keepRunning, type Service } from '../services.ts'
import type { StackFile } from '../stack-file.ts'
import { createSupervisor, type Managed, type Supervisor } from '../supervisor.ts'
import { userSwitch } from '../user-switch.ts'
import { certificateOf, makeCertificates, serviceTlsVariables, trustCluster } from './certificates.ts'
import { DATABASE, ownerUrlOf } from './configuration.ts'
import {
  APP_HOSTS,
  addressOf,
  DATA_HOSTS,
  HOSTS,
  type HostName,
  type Layout,
  launcherOf,
  PORTS,
  publicUrl,
  THRESHOLD,
} from './layout.ts'
import { createNetwork, freeIds, startJanitor } from './network.ts'
import type { ClusterOptions } from './options.ts'
import { findPrograms, missingPackages, type Programs } from './packages.ts'
import { acceptsCommits, untilNodes } from './patroni.ts'
import {
  environmentOn,
  issuerUrlOf,
  membersOf,
  onHost,
  type ProcessesInput,
  signerEntries,
  signersOf,
} from './processes.ts'
import { postgresDirOf, type Servers, startServers } from './servers.ts'
import { type ClusterState, stateOf, storedState } from './state.ts'

type Report = (line: string) => void

export interface Cluster {
  readonly layout: Layout
  readonly file: StackFile
  readonly keys: Keys
  /** The owner's connection. */
  readonly db: Db
  readonly provider: JsonRpcProvider
  readonly specs: readonly MarketSpec[]
  readonly servers: Servers
  readonly chain: Service
  /** By host and name, such as `app1-engine`. */
  readonly processes: ReadonlyMap<string, Managed>
  stop(): Promise<void>
}

/** If a step of the start fails, everything that was started before it is stopped. */
export async function startCluster(options: ClusterOptions, report: Report): Promise<Cluster> {
  const programs = findPrograms()
  if (!('paths' in programs)) throw new StackError(missingPackages(programs))
  const dir = dataDirAt(options.dir)
  const undo: (() => unknown)[] = [lockDataDir(dir, '--dir')]
  const stop = async (): Promise<void> => {
    for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step()
  }
  try {
    const onStop = (step: () => unknown): void => void undo.push(step)
    return { ...(await start({ options, programs, dir, report, onStop })), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

interface Start {
  readonly options: ClusterOptions
  readonly programs: Programs
  readonly dir: DataDir
  readonly report: Report
  readonly onStop: (step: () => unknown) => void
}

const hostDir = (dir: DataDir, host: HostName): string => join(dir.path, host)

const FIRST_COMMIT_MS = 120_000

async function start(start: Start): Promise<Omit<Cluster, 'stop'>> {
  const { options, dir, report, onStop } = start
  if (options.fresh) emptyCluster(dir)
  rmSync(dir.stackFile, { recursive: true, force: true })
  for (const path of [dir.logs, ...HOSTS.map((host) => hostDir(dir, host))]) makeFolder(path)
  const page = options.page === true ? pageDir(report) : null
  // Awaited later: a failure before that must not end this process as an unhandled rejection.
  page?.catch(() => {})
  const state = await prepareNetwork(start)
  const { layout, secrets } = state
  const keys = loadKeys(dir)

  // Both are awaited, also if one fails: all that they have started is stopped afterwards.
  const [databases, deploying] = await Promise.allSettled([
    startDatabases(start, state),
    deploy(start, layout, keys),
  ])
  if (databases.status === 'rejected') throw databases.reason
  if (deploying.status === 'rejected') throw deploying.reason
  const { chain, provider, deployment, backstopKey } = deploying.value
  report('contracts are deployed, databases accept commits')

  const ownerUrl = ownerUrlOf(layout, 'app1', secrets, certificateOf(dir.path, 'app1'))
  const db = openDatabase(ownerUrl)
  onStop(() => db.destroy())
  await requireOwnHistory(db)
  await migrate(db)
  const databaseUrls = await createLogins(ownerUrl)
  const engineKeys = writeEngineKeys(emptyFolder(dir.engine))
  const input: ProcessesInput = {
    dir: dir.path,
    layout,
    secrets,
    keys,
    deployment,
    databaseUrls,
    engineKeys,
    pricesFile: dir.prices,
    issuerKeysFile: dir.issuer,
    pageDir: await page,
  }
  writePrivate(dir.prices, priceConfigOf(deployment.contracts.oracle, signerEntries(layout, keys), THRESHOLD))

  const specs = marketSpecs(deployment)
  const processes = await startProcesses(start, input, db, specs)
  const entrance = { baseUrl: publicUrl(layout), issuerUrl: issuerUrlOf(layout) }
  const prepared = { db, dir, provider, keys, deployment, backstopKey, entrance }
  const accounts = await prepareAccounts(prepared, options.bots, processes.ready)
  report('accounts are funded and have API keys')
  await awaitPrices(db, specs)

  const file = stackFileOf(entrance, chain.url, deployment, specs, accounts.traders)
  if (accounts.backstop) await processes.run('app1', environmentOn(input, 'app1').backstop(accounts.backstop))
  if (options.bots) startBots(processes.supervisor, file, accounts.bots)
  const admin: AdminFile = {
    database_url: ownerUrl,
    engine: {
      url: membersOf(layout).join(','),
      keys_file: engineKeys.operator,
      tls: serviceTlsVariables(dir.path, 'edge'),
    },
  }
  writePrivate(dir.admin, admin)
  writePrivate(dir.stackFile, file)
  const servers = databases.value
  return { layout, file, keys, db, provider, specs, servers, chain, processes: processes.byName }
}

interface Processes {
  readonly supervisor: Supervisor
  readonly byName: ReadonlyMap<string, Managed>
  /** Starts a further process on a host. */
  run(host: HostName, spec: ProcessSpec): Promise<Managed>
  /** Resolves once all are ready, and clients reach an api. */
  ready(): Promise<void>
}

/**
 * Engine, then indexers, then keepers and APIs, because each is ready only after the previous kind. The second of each
 * kind may start later.
 */
async function startProcesses(
  { options, dir, report, onStop }: Start,
  input: ProcessesInput,
  db: Db,
  specs: readonly MarketSpec[],
): Promise<Processes> {
  const { layout, engineKeys } = input
  const supervisor = createSupervisor({ logDir: dir.logs, report })
  onStop(() => supervisor.stop())
  const byName = new Map<string, Managed>()
  const run = async (host: HostName, spec: ProcessSpec): Promise<Managed> => {
    const placed = onHost(layout, host, spec)
    const managed = supervisor.start((await options.adapt?.(placed)) ?? placed)
    byName.set(managed.name, managed)
    return managed
  }
  const onEach = (name: 'engine' | 'indexer' | 'keeper' | 'api'): Promise<Managed[]> =>
    Promise.all(APP_HOSTS.map((host) => run(host, environmentOn(input, host)[name])))

  await run('edge', environmentOn(input, 'app1').issuer)
  for (const [host, spec] of signersOf(input, (name) => hostDir(dir, name))) await run(host, spec)
  await Promise.any((await onEach('engine')).map((engine) => engine.ready()))
  const tls = linkTls(serviceTlsVariables(dir.path, 'edge'), 'ENGINE_URL', null)
  await listMarkets(db, { members: membersOf(layout), keys: engineKeys, tls }, specs, 'ALWAYS_OPEN')
  report('markets are listed')
  await Promise.any((await onEach('indexer')).map((indexer) => indexer.ready()))
  for (const name of ['keeper', 'api'] as const) await onEach(name)
  return {
    supervisor,
    byName,
    run,
    async ready() {
      await Promise.all([...byName.values()].map((each) => each.ready()))
      await untilPublic(layout)
    },
  }
}

const emptyFolder = (path: string): string => {
  rmSync(path, { recursive: true, force: true })
  makeFolder(path)
  return path
}

function emptyCluster(dir: DataDir): void {
  emptyDataDir(dir)
  for (const path of ['cluster.json', 'tls', ...HOSTS])
    rmSync(join(dir.path, path), { recursive: true, force: true })
}

/** Network namespaces where the kernel allows them; otherwise addresses of the loopback interface. */
async function prepareNetwork({ options, dir, report, onStop }: Start): Promise<ClusterState> {
  const stored = storedState(dir.path)
  const ids = await freeIds()
  const id = stored?.layout.id ?? ids[0]
  if (id === undefined) throw new StackError('no network 10.201.x.0/24 is free: stop another cluster')
  const wanted: Layout = { network: 'namespaces', id, port: options.port }
  const problem = options.loopback === true ? '--loopback' : await createNetwork(wanted)
  if (problem !== null)
    report(`hosts are addresses of the loopback interface, without network namespaces (${problem})`)
  const layout: Layout = problem === null ? wanted : { ...wanted, network: 'loopback' }
  const postgresDirs = DATA_HOSTS.map((host) => postgresDirOf(dir.path, host))
  onStop(startJanitor(layout, postgresDirs))
  return stateOf(dir.path, layout)
}

/** Resolves once commits are answered, and the database exists. */
async function startDatabases(
  { programs, dir, report, onStop }: Start,
  { layout, secrets }: ClusterState,
): Promise<Servers> {
  const user = await userSwitch([join(programs.postgresDir, 'postgres'), '--version'])
  await makeCertificates(dir.path, layout, user.own)
  trustCluster(dir.path)
  const servers = await startServers({
    layout,
    secrets,
    programs,
    user,
    dir: dir.path,
    logDir: dir.logs,
    report,
  })
  onStop(() => servers.stop())
  report('etcd, Patroni, Redis, Sentinels and proxies run')
  await untilNodes(layout, acceptsCommits, FIRST_COMMIT_MS)
  await createDatabase(ownerUrlOf(layout, 'app1', secrets, certificateOf(dir.path, 'app1'), 'postgres'))
  return servers
}

async function createDatabase(url: string): Promise<void> {
  const client = await untilConnected(url)
  try {
    const found = await client.query('select from pg_database where datname = $1', [DATABASE])
    if (found.rowCount === 0) await client.query(`create database ${DATABASE}`)
  } finally {
    await client.end()
  }
}

/** The proxy finds a new primary by its next check. */
async function untilConnected(url: string): Promise<pg.Client> {
  const deadline = Date.now() + 10_000
  for (;;) {
    const client = new pg.Client(url)
    try {
      await client.connect()
      return client
    } catch (error) {
      if (Date.now() > deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}

async function deploy({ options, dir, report, onStop }: Start, layout: Layout, keys: Keys) {
  const startChain = () =>
    startChainOf(dir, {
      port: PORTS.chain,
      host: addressOf(layout, 'chain'),
      launcher: launcherOf(layout, 'chain'),
      logFile: join(dir.logs, 'chain-anvil.log'),
    })
  const chain = await keepRunning('chain anvil', startChain, report)
  onStop(() => chain.stop())
  onStop(boundChainState(dir.chainState, chain, report))
  const provider = localProvider(chain.url, CHAIN_ID)
  onStop(() => provider.destroy())
  const addresses = signerEntries(layout, keys).map(({ address }) => address as Address)
  const signers = { addresses, threshold: THRESHOLD }
  const deployment = await ensureDeployment(dir, keys, provider, CHAIN_ID, signers)
  const backstopKey = options.backstop === false ? null : await ensureBackstop(keys, provider, deployment)
  return { chain, provider, deployment, backstopKey }
}

const PUBLIC_MS = 15_000

/** The proxy has found an api that is ready. */
async function untilPublic(layout: Layout): Promise<void> {
  const deadline = Date.now() + PUBLIC_MS
  for (;;) {
    try {
      if ((await fetch(`${publicUrl(layout)}/health/live`)).ok) return
    } catch {}
    if (Date.now() > deadline)
      throw new StackError(
        `${publicUrl(layout)} does not answer after ${PUBLIC_MS / 1000} s: see the logs of the apis`,
      )
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}
