/** Roles of a cluster's servers: who is primary, and how another server becomes it. */
import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { certificateOf } from '../../stack/cluster/certificates.ts'
import { REDIS_NAME } from '../../stack/cluster/configuration.ts'
import { addressOf, DATA_HOSTS, type DataHost, endpoint, PORTS } from '../../stack/cluster/layout.ts'
import { postgresNodes, primaryOf } from '../../stack/cluster/patroni.ts'
import type { ClusterState } from '../../stack/cluster/state.ts'

export async function primaryPostgres({ layout }: ClusterState): Promise<DataHost> {
  const primary = primaryOf(await postgresNodes(layout))
  if (primary === null) throw new Error('no Postgres server is primary')
  return primary
}

/** Lets a synchronous standby become the primary, in order. Returns the hosts of both. */
export async function switchOver(state: ClusterState): Promise<readonly [from: DataHost, to: DataHost]> {
  const { layout, secrets } = state
  const from = await primaryPostgres(state)
  const to = (await postgresNodes(layout)).find(({ role }) => role === 'synchronous standby')?.host
  if (to === undefined) throw new Error('no Postgres server is a synchronous standby')
  const response = await fetch(`https://${endpoint(layout, from, 'patroni')}/switchover`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Basic ${Buffer.from(`patroni:${secrets.patroni}`).toString('base64')}`,
    },
    body: JSON.stringify({ leader: from, candidate: to }),
  })
  if (!response.ok) throw new Error(`Patroni refused the switchover: ${await response.text()}`)
  return [from, to]
}

async function withRedis<Result>(
  { dir, layout, secrets }: ClusterState,
  at: { readonly host: DataHost; readonly port: 'redis' | 'sentinel' },
  work: (redis: Redis) => Promise<Result>,
): Promise<Result> {
  const { ca, certificate, key } = certificateOf(dir, 'edge')
  const [caText, cert, keyText] = [ca, certificate, key].map((path) => readFileSync(path, 'utf8'))
  const redis = new Redis({
    host: addressOf(layout, at.host),
    port: PORTS[at.port],
    password: secrets.redis,
    tls: { ca: caText as string, cert: cert as string, key: keyText as string },
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
  })
  redis.on('error', () => {})
  try {
    await redis.connect()
    return await work(redis)
  } finally {
    redis.disconnect()
  }
}

/** As a Sentinel knows it. */
export async function primaryRedis(state: ClusterState): Promise<DataHost> {
  const [address] = (await withRedis(state, { host: DATA_HOSTS[0], port: 'sentinel' }, (sentinel) =>
    sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', REDIS_NAME),
  )) as [string]
  const host = DATA_HOSTS.find((each) => addressOf(state.layout, each) === address)
  if (host === undefined) throw new Error(`Sentinel names ${address} as the Redis primary`)
  return host
}

export const failOver = (state: ClusterState): Promise<unknown> =>
  withRedis(state, { host: DATA_HOSTS[0], port: 'sentinel' }, (sentinel) =>
    sentinel.call('SENTINEL', 'FAILOVER', REDIS_NAME),
  )

export const flush = async (state: ClusterState): Promise<unknown> =>
  withRedis(state, { host: await primaryRedis(state), port: 'redis' }, (redis) => redis.flushall())
