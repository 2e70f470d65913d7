/** Debian's servers of a cluster: starts each on its host, restarts it after an unexpected end, and stops all of them. */
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { startChild } from '../child.ts'
import { makeFolder, writeWhole } from '../data-dir.ts'
import { endLeftOver } from '../left-over-postmaster.ts'
import { commandOf } from '../lock.ts'
import { keepRunning, type Service } from '../services.ts'
import type { UserSwitch } from '../user-switch.ts'
import { certificateOf } from './certificates.ts'
import {
  databaseProxyConfiguration,
  edgeProxyConfiguration,
  etcdArguments,
  patroniConfiguration,
  redisConfiguration,
  type Secrets,
  sentinelConfiguration,
} from './configuration.ts'
import {
  APP_HOSTS,
  addressOf,
  DATA_HOSTS,
  type DataHost,
  endpoint,
  type HostName,
  type Layout,
  launcherOf,
  PORTS,
} from './layout.ts'
import type { Programs } from './packages.ts'

export interface ServersInput {
  readonly layout: Layout
  readonly secrets: Secrets
  readonly programs: Programs
  readonly user: UserSwitch
  /** Has one folder per host. */
  readonly dir: string
  readonly logDir: string
  readonly report: (line: string) => void
}

export interface Servers {
  /** Ends all servers of the host at once, as the loss of its machine does. */
  lose(host: DataHost): Promise<void>
  restore(host: DataHost): Promise<void>
  /** Ends the Postgres server of the host by SIGKILL, but not its Patroni. */
  killPostgres(host: DataHost): void
  /** Sends a signal to the Postgres server of the host and to all its sessions. */
  signalPostgres(host: DataHost, signal: NodeJS.Signals): void
  /** Throws for a server that the host does not have. */
  server(host: HostName, name: ServerName): Service
  stop(): Promise<void>
}

export const postgresDirOf = (dir: string, host: DataHost): string => join(dir, host, 'postgres', 'data')

export type ServerName = 'etcd' | 'patroni' | 'redis' | 'sentinel' | 'haproxy'

interface Server {
  readonly host: HostName
  readonly name: ServerName
  readonly words: readonly [string, ...string[]]
  readonly ready: () => Promise<boolean>
}

const PROBE_MS = 1_000

const responds = async (url: string): Promise<boolean> =>
  (await fetch(url, { signal: AbortSignal.timeout(PROBE_MS) })).ok

const accepts = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, timeout: PROBE_MS })
    const end = (found: boolean) => () => {
      socket.destroy()
      resolve(found)
    }
    socket.once('connect', end(true)).once('error', end(false)).once('timeout', end(false))
  })

/** The folder belongs to the user as whom the server runs. */
async function folderOf({ dir, user }: ServersInput, host: HostName, name: string): Promise<string> {
  const path = join(dir, host, name)
  makeFolder(path)
  await user.own(path)
  return path
}

async function privateFile({ user }: ServersInput, path: string, text: string): Promise<string> {
  writeWhole(path, text)
  await user.own(path)
  return path
}

async function etcd(input: ServersInput, host: DataHost): Promise<Server> {
  const { layout, programs } = input
  const folder = await folderOf(input, host, 'etcd')
  const dataDir = join(folder, 'data')
  return {
    host,
    name: 'etcd',
    words: [programs.paths.etcd, ...etcdArguments(layout, host, dataDir, certificateOf(input.dir, host))],
    ready: () => accepts(addressOf(layout, host), PORTS.etcdClient),
  }
}

async function patroni(input: ServersInput, host: DataHost): Promise<Server> {
  const { layout, programs, secrets, dir } = input
  const folder = await folderOf(input, host, 'postgres')
  const dirs = { dataDir: postgresDirOf(dir, host), binDir: programs.postgresDir }
  const file = await privateFile(
    input,
    join(folder, 'patroni.json'),
    patroniConfiguration(layout, host, secrets, dirs, certificateOf(dir, host)),
  )
  return {
    host,
    name: 'patroni',
    words: [programs.paths.patroni, file],
    ready: () => responds(`https://${endpoint(layout, host, 'patroni')}/liveness`),
  }
}

/** Redis and Sentinel write the roles of their nodes to their files, which are therefore written once. */
async function redis(input: ServersInput, host: DataHost, name: 'redis' | 'sentinel'): Promise<Server> {
  const { layout, programs, secrets } = input
  const folder = await folderOf(input, host, name)
  const path = join(folder, `${name}.conf`)
  const textOf = name === 'redis' ? redisConfiguration : sentinelConfiguration
  const text = textOf(layout, host, secrets, folder, certificateOf(input.dir, host))
  if (!existsSync(path)) await privateFile(input, path, text)
  return {
    host,
    name,
    words: [programs.paths[name === 'redis' ? 'redis-server' : 'redis-sentinel'], path],
    ready: () => accepts(addressOf(layout, host), PORTS[name]),
  }
}

async function proxy(
  input: ServersInput,
  host: HostName,
  { text, port }: { readonly text: string; readonly port: number },
): Promise<Server> {
  const folder = await folderOf(input, host, 'haproxy')
  const file = await privateFile(input, join(folder, 'haproxy.cfg'), text)
  return {
    host,
    name: 'haproxy',
    words: [input.programs.paths.haproxy, '-db', '-f', file],
    ready: () => accepts(addressOf(input.layout, host), port),
  }
}

const start = ({ layout, user, logDir, report }: ServersInput, { host, name, words, ready }: Server) =>
  keepRunning(
    `${host} ${name}`,
    async () => {
      const [command = '', ...args] = [...launcherOf(layout, host), ...user.command(...words)]
      const logFile = join(logDir, `${host}-${name}.log`)
      const child = await startChild({ command, args, stopSignal: 'TERM', logFile, ready })
      return { ...child, url: '' }
    },
    report,
  )

export async function startServers(input: ServersInput): Promise<Servers> {
  const { layout, dir } = input
  const started = new Map<HostName, Map<ServerName, Service>>()
  const keep = async (server: Server): Promise<void> => {
    const service = await start(input, server)
    const onHost = started.get(server.host) ?? new Map<ServerName, Service>()
    started.set(server.host, onHost.set(server.name, service))
  }
  const onData = (host: DataHost): readonly Service[] => [...(started.get(host)?.values() ?? [])]

  const stop = async (): Promise<void> => {
    const all = [...started.values()].flatMap((services) => [...services.values()])
    await Promise.all(all.map((service) => service.stop()))
    // A Patroni that was killed has left its Postgres server.
    for (const host of DATA_HOSTS) await endLeftOver(postgresDirOf(dir, host))
  }

  /** Null if no server runs. */
  const postmasterOf = (host: DataHost): number | null => {
    const data = postgresDirOf(dir, host)
    const file = join(data, 'postmaster.pid')
    const pid = existsSync(file) ? Number.parseInt(readFileSync(file, 'utf8'), 10) : 0
    return pid > 0 && commandOf(pid)?.includes(data) === true ? pid : null
  }
  const killPostgres = (host: DataHost): void => {
    const pid = postmasterOf(host)
    if (pid !== null) process.kill(pid, 'SIGKILL')
  }

  try {
    const first = await Promise.all(
      DATA_HOSTS.flatMap((host) => [
        etcd(input, host),
        redis(input, host, 'redis'),
        redis(input, host, 'sentinel'),
      ]),
    )
    await allOf(first.map(keep))
    const patronis = await Promise.all(DATA_HOSTS.map((host) => patroni(input, host)))
    const proxies = await Promise.all([
      ...APP_HOSTS.map((host) =>
        proxy(input, host, {
          text: databaseProxyConfiguration(layout, host, certificateOf(dir, host)),
          port: PORTS.database,
        }),
      ),
      proxy(input, 'edge', {
        text: edgeProxyConfiguration(layout, certificateOf(dir, 'edge')),
        port: layout.port,
      }),
    ])
    await allOf([...patronis, ...proxies].map(keep))
  } catch (error) {
    await stop()
    throw error
  }
  return {
    async lose(host) {
      await Promise.all(onData(host).map((service) => service.kill()))
      killPostgres(host)
    },
    async restore(host) {
      await Promise.all(onData(host).map((service) => service.restart()))
    },
    killPostgres,
    signalPostgres(host, signal) {
      const pid = postmasterOf(host)
      if (pid !== null) for (const each of [pid, ...childrenOf(pid)]) process.kill(each, signal)
    },
    server(host, name) {
      const service = started.get(host)?.get(name)
      if (service === undefined) throw new Error(`${host} has no ${name}`)
      return service
    },
    stop,
  }
}

/** Processes that Linux states as children of the process. */
const childrenOf = (pid: number): readonly number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)

/** Waits for all, and then throws the first failure: what has started meanwhile can be stopped. */
async function allOf(work: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((each) => each.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
