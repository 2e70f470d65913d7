/** The hosts of `clearbatch cluster` in network namespaces, of which servers, processes and networks fail. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Cluster, startCluster } from '../../stack/cluster/cluster.ts'
import {
  APP_HOSTS,
  addressOf,
  DATA_HOSTS,
  type HostName,
  namespaceOf,
  ORACLE_HOSTS,
} from '../../stack/cluster/layout.ts'
import { findPrograms, missingPackages } from '../../stack/cluster/packages.ts'
import { acceptsCommits, postgresNodes } from '../../stack/cluster/patroni.ts'
import { type ClusterState, storedState } from '../../stack/cluster/state.ts'
import { clusterStatus } from '../../stack/cluster/status.ts'
import type { ProcessSpec } from '../../stack/process-spec.ts'
import { ChainFaults } from './chain.ts'
import { Clocks, stepOf } from './clock.ts'
import { failOver, flush, switchOver } from './cluster-roles.ts'
import { Disks } from './disks.ts'
import { type Audited, type ChaosExchange, chosen, type Injected, type Skipped } from './exchange.ts'
import type { PlannedFault } from './plan.ts'
import { engineCanFail, until } from './recovery.ts'
import { DATABASE_PAUSE_MS, type Victim, victimOf } from './victims.ts'

const PORT = 8080
/** Sizes in megabytes. */
const DISKS = { data: 512, postgres: 512, etcd: 384, redis: 96, sentinel: 16, log: 64 }
const READY_MS = 120_000
const PROCESSES = ['engine', 'api', 'keeper', 'indexer'] as const
/** A bucket that is emptied at this rate delays what comes faster; a short queue before it loses it. */
const RATE = 'rate 4mbit burst 8kb'
const QUEUES = { delay: 'latency 250ms', loss: 'limit 8kb' } as const

const processNames = [
  ...APP_HOSTS.flatMap((host) => PROCESSES.map((name) => `${host}-${name}`)),
  ...ORACLE_HOSTS.map((host) => `${host}-signer`),
]

/** The reason why this machine has no cluster; null if it can have one. */
export function clusterProblem(): string | null {
  const programs = findPrograms()
  if (!('paths' in programs)) return missingPackages(programs)
  return process.getuid?.() === 0 ? null : 'network namespaces need root'
}

const logFolder = (dir: string, name: string): string => join(dir, 'logs', name)

export async function startClusterExchange(): Promise<ChaosExchange> {
  const dir = mkdtempSync(join(tmpdir(), 'cb-chaos-cluster-'))
  const disks = Disks.mount(dir, [
    [dir, DISKS.data],
    ...DATA_HOSTS.flatMap((host) =>
      (['postgres', 'etcd', 'redis', 'sentinel'] as const).map(
        (name) => [join(dir, host, name), DISKS[name]] as const,
      ),
    ),
    ...processNames.map((name) => [logFolder(dir, name), DISKS.log] as const),
  ])
  const clocks = new Clocks(join(dir, 'clocks'))
  const adapt = (spec: ProcessSpec): ProcessSpec => {
    if (!processNames.includes(spec.name)) return spec
    return {
      ...spec,
      env: { ...spec.env, ...clocks.variables(spec.name) },
      logDir: logFolder(dir, spec.name),
    }
  }
  try {
    const cluster = await startCluster(
      { dir, port: PORT, fresh: false, bots: false, backstop: false, adapt },
      () => {},
    )
    const state = storedState(dir)
    if (state === null) throw new Error('the cluster has stored no state')
    return new ClusterExchange(
      { cluster, state, disks, clocks, dir },
      await cluster.provider.getBlockNumber(),
    )
  } catch (error) {
    await disks.remove()
    throw error
  }
}

interface Parts {
  readonly cluster: Cluster
  readonly state: ClusterState
  readonly disks: Disks
  readonly clocks: Clocks
  readonly dir: string
}

class ClusterExchange implements ChaosExchange {
  readonly kind = 'cluster'
  readonly audited: Audited
  readonly oracle = null
  readonly apis: readonly string[]
  readonly #parts: Parts
  readonly #chain: ChainFaults

  constructor(parts: Parts, firstBlock: number) {
    const { cluster } = parts
    this.#parts = parts
    this.audited = cluster
    this.apis = [cluster.file.base_url]
    this.#chain = new ChainFaults(cluster.chain, cluster.provider, firstBlock)
  }

  get keptLogs(): string {
    return `${this.#parts.dir}-logs`
  }

  async stop(keep: boolean): Promise<void> {
    const { cluster, disks, dir } = this.#parts
    await cluster.stop()
    if (keep) cpSync(join(dir, 'logs'), this.keptLogs, { recursive: true })
    await disks.remove()
  }

  async recovered(): Promise<void> {
    const { cluster, state } = this.#parts
    await until('every server has its role', async () => {
      const found = await clusterStatus(state)
      const rolesOf = (service: string): string =>
        found
          .filter((each) => each.service === service)
          .map(({ role }) => role)
          .sort()
          .join()
      return (
        found.every((each) => each.state === 'up') &&
        rolesOf('postgres') === 'primary,standby,synchronous standby' &&
        rolesOf('redis') === 'primary,replica,replica' &&
        acceptsCommits(await postgresNodes(cluster.layout))
      )
    })
    for (const process of cluster.processes.values()) await process.ready(READY_MS)
    await until('the engines have caught up', () =>
      engineCanFail(APP_HOSTS.map((host) => cluster.processes.get(`${host}-engine`)?.url ?? null)),
    )
  }

  async inject(planned: PlannedFault): Promise<Injected | Skipped> {
    const { fault, target } = planned
    if (fault === 'failover' || fault === 'flush') return this.#onRoles(planned)
    if (target === 'chain' && !['partition', 'delay', 'loss', 'disk full'].includes(fault))
      return this.#chain.inject(planned)
    const victim = await victimOf(this.#parts, planned)
    const base = {
      on: victim.name,
      hasTwin: victim.hasTwin,
      fails: [],
      ...(victim.pauseMs !== undefined && { pauseMs: victim.pauseMs }),
    }
    switch (fault) {
      case 'kill':
        await victim.kill()
        return { ...base, heal: () => victim.revive() }
      case 'stop':
        victim.signal('SIGSTOP')
        return { ...base, heal: async () => victim.signal('SIGCONT') }
      case 'restart':
        await victim.restart()
        return { ...base, heal: async () => {} }
      case 'partition': {
        const peer = chosen(victim.peers, planned.size)
        this.#routes('add', victim.host, peer)
        return {
          ...base,
          on: `${victim.host} and ${peer}`,
          heal: async () => this.#routes('del', victim.host, peer),
        }
      }
      case 'delay':
      case 'loss': {
        const queue = `${RATE} ${QUEUES[fault]}`
        const { host } = victim
        this.#run(host, `tc qdisc add dev eth0 root tbf ${queue}`)
        // All servers of the host are slow. Nothing replaces a primary that is slow.
        const hasTwin = victim.hasTwin && !DATA_HOSTS.some((each) => each === host)
        return {
          ...base,
          on: `${host}, for ${victim.name}`,
          hasTwin,
          heal: async () => this.#run(host, 'tc qdisc del dev eth0 root'),
        }
      }
      case 'clock step': {
        const { clocks } = this.#parts
        const step = stepOf(planned)
        clocks.set(victim.name, step)
        return {
          ...base,
          on: `${victim.name} (${step} ms)`,
          heal: async () => clocks.set(victim.name, 0),
        }
      }
      case 'disk full':
        return this.#disk(victim, base)
      default:
        throw new Error(`the cluster has no fault ${fault} of ${target}`)
    }
  }

  async #onRoles({ fault, target }: PlannedFault): Promise<Injected> {
    const { state } = this.#parts
    const base = { on: target, hasTwin: true, fails: [], heal: async () => {} }
    if (fault === 'flush') {
      await flush(state)
      return base
    }
    if (target === 'redis') {
      await failOver(state)
      return base
    }
    const [from, to] = await switchOver(state)
    return { ...base, on: `primary, from ${from} to ${to}`, pauseMs: DATABASE_PAUSE_MS }
  }

  #disk(victim: Victim, base: Omit<Injected, 'heal'>): Injected | Skipped {
    const { disks } = this.#parts
    if (disks.problem !== null) return { skipped: disks.problem }
    if (victim.folder === null) throw new Error(`${victim.name} has no folder`)
    const { folder } = victim
    disks.fill(folder)
    return { ...base, heal: async () => disks.free(folder) }
  }

  #run(host: HostName, command: string): void {
    const namespace = namespaceOf(this.#parts.cluster.layout, host)
    execFileSync('ip', ['netns', 'exec', namespace, ...command.split(' ')], { stdio: 'pipe' })
  }

  #routes(change: 'add' | 'del', one: HostName, other: HostName): void {
    const { layout } = this.#parts.cluster
    for (const [host, peer] of [
      [one, other],
      [other, one],
    ] as const)
      this.#run(host, `ip route ${change} blackhole ${addressOf(layout, peer)}/32`)
  }
}
