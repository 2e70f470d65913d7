/** Servers and processes of a cluster that a fault is about: how each is stopped, killed and started again. */
import { join } from 'node:path'
import type { Cluster } from '../../stack/cluster/cluster.ts'
import {
  APP_HOSTS,
  DATA_HOSTS,
  type DataHost,
  type HostName,
  ORACLE_HOSTS,
} from '../../stack/cluster/layout.ts'
import { postgresNodes } from '../../stack/cluster/patroni.ts'
import type { ServerName } from '../../stack/cluster/servers.ts'
import type { ClusterState } from '../../stack/cluster/state.ts'
import type { Service } from '../../stack/services.ts'
import type { Managed } from '../../stack/supervisor.ts'
import { primaryPostgres, primaryRedis } from './cluster-roles.ts'
import { chosen } from './exchange.ts'
import type { PlannedFault } from './plan.ts'

export interface Victim {
  readonly name: string
  readonly host: HostName
  /** Hosts from which a partition cuts it off. */
  readonly peers: readonly HostName[]
  /** Folder that a full disk concerns; null if it writes nothing that matters. */
  readonly folder: string | null
  readonly hasTwin: boolean
  readonly pauseMs?: number
  kill(): Promise<void>
  /** After `kill`. */
  revive(): Promise<void>
  signal(name: 'SIGSTOP' | 'SIGCONT'): void
  restart(): Promise<void>
}

export interface VictimParts {
  readonly cluster: Cluster
  readonly state: ClusterState
  readonly dir: string
}

const READY_MS = 120_000
/** Bound of `clearbatch cluster` for orders after the loss of a database server. */
export const DATABASE_PAUSE_MS = 20_000

export async function victimOf(parts: VictimParts, planned: PlannedFault): Promise<Victim> {
  const { cluster, state } = parts
  const { target, choice } = planned
  switch (target) {
    case 'primary':
      return postgresOn(parts, await primaryPostgres(state))
    case 'replica': {
      const nodes = await postgresNodes(cluster.layout)
      return postgresOn(
        parts,
        chosen(
          nodes.filter(({ role }) => role !== 'primary'),
          choice,
        ).host,
      )
    }
    case 'etcd':
      return { ...serverOn(parts, chosen(DATA_HOSTS, choice), 'etcd'), pauseMs: DATABASE_PAUSE_MS }
    case 'sentinel':
      return serverOn(parts, chosen(DATA_HOSTS, choice), 'sentinel')
    case 'redis':
      return serverOn(parts, await primaryRedis(state), 'redis')
    case 'proxy': {
      const host = chosen([...APP_HOSTS, 'edge'] as const, choice)
      return { ...serverOn(parts, host, 'haproxy'), hasTwin: host !== 'edge' }
    }
    case 'chain':
      return chainOf(parts)
    case 'signer':
      return processOn(parts, `${chosen(ORACLE_HOSTS, choice)}-signer`, APP_HOSTS)
    default:
      return processOn(parts, `${chosen(APP_HOSTS, choice)}-${target}`, [...DATA_HOSTS, 'chain', 'edge'])
  }
}

const others = (host: HostName, hosts: readonly HostName[]): readonly HostName[] =>
  hosts.filter((each) => each !== host)

function processOn({ cluster, dir }: VictimParts, name: string, peers: readonly HostName[]): Victim {
  const process = cluster.processes.get(name)
  if (process === undefined) throw new Error(`the cluster has no ${name}`)
  return {
    name,
    host: name.split('-')[0] as HostName,
    peers,
    folder: join(dir, 'logs', name),
    hasTwin: true,
    kill: async () => signalProcess(process, 'SIGKILL'),
    revive: () => process.ready(READY_MS),
    signal: (signal) => signalProcess(process, signal),
    restart: () => process.restart('SIGTERM'),
  }
}

function signalProcess(process: Managed, signal: NodeJS.Signals): void {
  const pid = process.pid()
  if (pid !== null) globalThis.process.kill(pid, signal)
}

const ofService = (service: Service): Pick<Victim, 'kill' | 'revive' | 'signal' | 'restart'> => ({
  kill: () => service.kill(),
  revive: () => service.restart(),
  signal: (signal) => service.signal(signal),
  restart: () => service.restart(),
})

function serverOn({ cluster, dir }: VictimParts, host: HostName, name: ServerName): Victim {
  return {
    name: `${host} ${name}`,
    host,
    peers: others(host, [...DATA_HOSTS, ...APP_HOSTS]),
    folder: name === 'haproxy' ? null : join(dir, host, name),
    hasTwin: true,
    ...ofService(cluster.servers.server(host, name)),
  }
}

/** A primary that is stopped or ends is replaced by a standby; its Patroni starts it again as a standby. */
function postgresOn({ cluster, dir }: VictimParts, host: DataHost): Victim {
  const { servers } = cluster
  return {
    name: `${host} postgres`,
    host,
    peers: others(host, [...DATA_HOSTS, ...APP_HOSTS]),
    folder: join(dir, host, 'postgres'),
    hasTwin: true,
    pauseMs: DATABASE_PAUSE_MS,
    kill: async () => servers.killPostgres(host),
    revive: async () => {},
    signal: (signal) => servers.signalPostgres(host, signal),
    restart: () => servers.server(host, 'patroni').restart(),
  }
}

const chainOf = ({ cluster, dir }: VictimParts): Victim => ({
  name: 'chain',
  host: 'chain',
  peers: APP_HOSTS,
  folder: dir,
  hasTwin: false,
  ...ofService(cluster.chain),
})
