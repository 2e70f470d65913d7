/** The state of every server and process of a cluster, found over the network, as an operator finds it. */
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { connect } from 'node:net'
import { json } from 'node:stream/consumers'
import { Redis } from 'ioredis'
import { certificateOf, trustCluster } from './certificates.ts'
import {
  APP_HOSTS,
  addressOf,
  DATA_HOSTS,
  type DataHost,
  endpoint,
  HOSTS,
  type HostName,
  type Layout,
  ORACLE_HOSTS,
  PORTS,
  publicUrl,
} from './layout.ts'
import { postgresNodes } from './patroni.ts'
import type { ClusterState } from './state.ts'

export interface ServiceStatus {
  readonly host: HostName
  readonly service: string
  readonly address: string
  readonly state: 'up' | 'down'
  /** Such as `primary`; empty where all instances do the same. */
  readonly role: string
}

interface Probe {
  readonly host: HostName
  readonly service: string
  readonly address: string
  /** The role of a service that is up; rejects for one that is not. */
  readonly role: () => Promise<string>
}

const PROBE_MS = 5_000

async function get(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_MS) })
  if (!response.ok) throw new Error(`${url} answered ${response.status}`)
  return response.text()
}

async function post(url: string, body: object): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
    signal: AbortSignal.timeout(PROBE_MS),
  })
  return (await response.json()) as Record<string, unknown>
}

const connected = (host: string, port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: PROBE_MS }, () => {
      socket.destroy()
      resolve('')
    })
    socket.once('error', reject)
    socket.once('timeout', () => socket.destroy(new Error('timed out')))
  })

/** As a client of the cluster, with the certificate of `edge`. */
function identityIn(dir: string): { readonly ca: string; readonly cert: string; readonly key: string } {
  const { ca, certificate, key } = certificateOf(dir, 'edge')
  const [first, second, third] = [ca, certificate, key].map((path) => readFileSync(path, 'utf8'))
  return { ca: first as string, cert: second as string, key: third as string }
}

async function etcdRole({ dir, layout }: ClusterState, host: DataHost): Promise<string> {
  const url = `https://${endpoint(layout, host, 'etcdClient')}/v3/maintenance/status`
  const answer = await new Promise((resolve, reject) => {
    request(url, { ...identityIn(dir), method: 'POST', signal: AbortSignal.timeout(PROBE_MS) })
      .on('response', (response) => resolve(json(response)))
      .on('error', reject)
      .end('{}')
  })
  const { header, leader } = answer as { header: { member_id: string }; leader: string }
  return header.member_id === leader ? 'leader' : 'follower'
}

async function postgresRole(layout: Layout, host: DataHost): Promise<string> {
  await connected(addressOf(layout, host), PORTS.postgres)
  const node = (await postgresNodes(layout)).find((each) => each.host === host)
  return node?.role ?? 'unknown to Patroni'
}

async function redisRole({ dir, layout, secrets }: ClusterState, host: DataHost): Promise<string> {
  const redis = new Redis({
    host: addressOf(layout, host),
    port: PORTS.redis,
    password: secrets.redis,
    tls: identityIn(dir),
    lazyConnect: true,
    connectTimeout: PROBE_MS,
    commandTimeout: PROBE_MS,
    retryStrategy: () => null,
  })
  redis.on('error', () => {})
  try {
    await redis.connect()
    const [role] = (await redis.role()) as [string]
    return role === 'master' ? 'primary' : 'replica'
  } finally {
    redis.disconnect()
  }
}

async function engineRole(layout: Layout, host: (typeof APP_HOSTS)[number]): Promise<string> {
  const metrics = await get(`https://${endpoint(layout, host, 'engineHealth')}/metrics`)
  return /^engine_is_owner 1$/m.test(metrics) ? 'owner' : 'follower'
}

function probesOf(state: ClusterState): readonly Probe[] {
  const { layout } = state
  const probe = (
    host: HostName,
    service: string,
    port: keyof typeof PORTS,
    role?: () => Promise<string>,
  ): Probe => ({
    host,
    service,
    address: endpoint(layout, host, port),
    role: role ?? (() => connected(addressOf(layout, host), PORTS[port])),
  })
  const process = (host: HostName, service: string, port: keyof typeof PORTS): Probe =>
    probe(host, service, port, async () => {
      await get(`https://${endpoint(layout, host, port)}/health/ready`)
      return ''
    })
  const live = async (url: string): Promise<string> => {
    await get(url)
    return ''
  }
  const issuer = `http://${endpoint(layout, 'edge', 'issuer')}/jwks`
  const chain = `http://${endpoint(layout, 'chain', 'chain')}`
  return [
    ...DATA_HOSTS.flatMap((host) => [
      probe(host, 'etcd', 'etcdClient', () => etcdRole(state, host)),
      probe(host, 'postgres', 'postgres', () => postgresRole(layout, host)),
      probe(host, 'redis', 'redis', () => redisRole(state, host)),
      probe(host, 'sentinel', 'sentinel'),
    ]),
    ...APP_HOSTS.flatMap((host) => [
      probe(host, 'database proxy', 'database'),
      probe(host, 'engine', 'engine', () => engineRole(layout, host)),
      process(host, 'indexer', 'indexerHealth'),
      process(host, 'keeper', 'keeperHealth'),
      process(host, 'api', 'apiHealth'),
    ]),
    {
      host: 'edge',
      service: 'public proxy',
      address: `${addressOf(layout, 'edge')}:${layout.port}`,
      role: () => live(`${publicUrl(layout)}/health/live`),
    },
    probe('edge', 'identity provider', 'issuer', () => live(issuer)),
    ...ORACLE_HOSTS.map((host) => process(host, 'oracle signer', 'signerHealth')),
    probe('chain', 'chain', 'chain', async () => {
      const answer = await post(chain, { jsonrpc: '2.0', id: 1, method: 'eth_blockNumber', params: [] })
      return `block ${Number(answer.result)}`
    }),
  ]
}

/** Requests the state of all services concurrently. Takes at most some seconds. */
export async function clusterStatus(state: ClusterState): Promise<readonly ServiceStatus[]> {
  trustCluster(state.dir)
  const found = await Promise.all(
    probesOf(state).map(async ({ host, service, address, role }): Promise<ServiceStatus> => {
      try {
        return { host, service, address, state: 'up', role: await role() }
      } catch {
        return { host, service, address, state: 'down', role: '' }
      }
    }),
  )
  return found.toSorted((a, b) => HOSTS.indexOf(a.host) - HOSTS.indexOf(b.host))
}
