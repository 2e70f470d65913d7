/** Configurations of Debian's servers in a cluster, as pure functions of its layout: etcd, Patroni, HAProxy, Redis and Sentinel. */
import type { HostCertificate } from './certificates.ts'
import {
  APP_HOSTS,
  type AppHost,
  addressOf,
  DATA_HOSTS,
  type DataHost,
  endpoint,
  type Layout,
  PORTS,
  subnetOf,
} from './layout.ts'

/** Passwords of a cluster, generated once with its folder. */
export interface Secrets {
  /** Password of the database's owner, as whom migrations run. */
  readonly database: string
  readonly replication: string
  readonly rewind: string
  /** Password of Patroni's endpoints that change something. */
  readonly patroni: string
  readonly redis: string
  /** Shared by the price publishers and the oracle signers. */
  readonly signers: string
}

export const DATABASE = 'clearbatch'
/** Name of the Redis primary in the configuration of the Sentinels. */
export const REDIS_NAME = 'clearbatch'

/**
 * A primary silent for `ttl` s loses its lock. Patroni requires `ttl` ≥ `loop_wait` + 2 × `retry_timeout`. If the etcd
 * leader fails too, its successor restarts the count after 2 s.
 */
const FAILOVER = { ttl: 10, loop_wait: 2, retry_timeout: 4 } as const

export function etcdArguments(
  layout: Layout,
  host: DataHost,
  dataDir: string,
  { ca, certificate, key }: HostCertificate,
): string[] {
  const client = `https://${endpoint(layout, host, 'etcdClient')}`
  const peer = `https://${endpoint(layout, host, 'etcdPeer')}`
  const members = DATA_HOSTS.map((each) => `${each}=https://${endpoint(layout, each, 'etcdPeer')}`)
  return [
    ...['--name', host, '--data-dir', dataDir],
    ...['--listen-client-urls', client, '--advertise-client-urls', client],
    ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
    ...['--initial-cluster', members.join(','), '--initial-cluster-token', `clearbatch-${layout.id}`],
    ...['--trusted-ca-file', ca, '--cert-file', certificate, '--key-file', key, '--client-cert-auth'],
    ...['--peer-trusted-ca-file', ca, '--peer-cert-file', certificate, '--peer-key-file', key],
    '--peer-client-cert-auth',
    // Twice the defaults: on one machine all members share its disk.
    ...['--heartbeat-interval', '200', '--election-timeout', '2000'],
    // Patroni renews its lock every 2 s: the history of a day is of no use.
    ...['--auto-compaction-mode', 'periodic', '--auto-compaction-retention', '1h'],
  ]
}

interface PostgresDirs {
  readonly dataDir: string
  readonly binDir: string
}

/** The server and its logins: no connection without TLS. */
function postgresOf(
  layout: Layout,
  host: DataHost,
  secrets: Secrets,
  { dataDir, binDir }: PostgresDirs,
  { ca, certificate, key }: HostCertificate,
): object {
  const subnet = subnetOf(layout)
  const address = addressOf(layout, host)
  const verified = { sslmode: 'verify-full', sslrootcert: ca }
  const identified = { ...verified, sslcert: certificate, sslkey: key }
  return {
    listen: `${address}:${PORTS.postgres}`,
    connect_address: `${address}:${PORTS.postgres}`,
    data_dir: dataDir,
    bin_dir: binDir,
    pgpass: `${dataDir}.pgpass`,
    authentication: {
      superuser: { username: DATABASE, password: secrets.database, ...verified },
      replication: { username: 'replicator', password: secrets.replication, ...identified },
      rewind: { username: 'rewinder', password: secrets.rewind, ...verified },
    },
    parameters: {
      unix_socket_directories: '',
      ssl: 'on',
      ssl_ca_file: ca,
      ssl_cert_file: certificate,
      ssl_key_file: key,
      ssl_min_protocol_version: 'TLSv1.3',
    },
    // A standby also needs a certificate of the cluster.
    pg_hba: [
      `hostssl replication replicator ${subnet} scram-sha-256 clientcert=verify-ca`,
      `hostssl all all ${subnet} scram-sha-256`,
    ],
  }
}

/** In JSON, which is YAML too. */
export function patroniConfiguration(
  layout: Layout,
  host: DataHost,
  secrets: Secrets,
  dirs: PostgresDirs,
  tls: HostCertificate,
): string {
  const { ca, certificate, key } = tls
  const configuration = {
    scope: 'clearbatch',
    name: host,
    restapi: {
      listen: endpoint(layout, host, 'patroni'),
      connect_address: endpoint(layout, host, 'patroni'),
      authentication: { username: 'patroni', password: secrets.patroni },
      certfile: certificate,
      keyfile: key,
      cafile: ca,
    },
    ctl: { cacert: ca, certfile: certificate, keyfile: key },
    etcd3: {
      hosts: DATA_HOSTS.map((each) => endpoint(layout, each, 'etcdClient')),
      protocol: 'https',
      cacert: ca,
      cert: certificate,
      key,
    },
    bootstrap: {
      dcs: {
        ...FAILOVER,
        maximum_lag_on_failover: 1_048_576,
        // A commit is answered only once a second node has it; without such a node none is answered.
        synchronous_mode: true,
        synchronous_mode_strict: true,
        // A primary that crashed is replaced at once instead of being restarted.
        primary_start_timeout: 0,
        postgresql: {
          use_pg_rewind: true,
          parameters: {
            max_connections: 300,
            max_wal_senders: 10,
            wal_keep_size: '512MB',
            timezone: 'UTC',
            max_wal_size: '2GB',
            checkpoint_timeout: '15min',
            // The default of 60 s is how long a commit could wait for a standby that has vanished from the network.
            wal_sender_timeout: '5s',
            wal_receiver_timeout: '5s',
            // The default is 5 s, for which commits would wait: a standby connects to a new primary before that has its slot.
            wal_retrieve_retry_interval: '250ms',
          },
        },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums'],
    },
    postgresql: postgresOf(layout, host, secrets, dirs, tls),
    tags: { nofailover: false, noloadbalance: false, clonefrom: false, nosync: false },
  }
  return `${JSON.stringify(configuration, null, 2)}\n`
}

const PROXY_HEAD = `global
  maxconn 4096
defaults
  timeout connect 2s
`

/** On each app host: passes TLS through; leads to the node that is primary by Patroni, and ends the sessions of a node that no longer is. */
export const databaseProxyConfiguration = (
  layout: Layout,
  host: AppHost,
  { ca }: HostCertificate,
): string => `${PROXY_HEAD}
  mode tcp
  timeout client 24h
  timeout server 24h
  option clitcpka
  option srvtcpka
listen postgres
  bind ${endpoint(layout, host, 'database')}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fastinter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
${DATA_HOSTS.map((each) => `  server ${each} ${endpoint(layout, each, 'postgres')} check port ${PORTS.patroni} check-ssl verify required ca-file ${ca}`).join('\n')}
`

/** Before the apis: requests go to those that are ready, and the live feed stays with one. */
export const edgeProxyConfiguration = (layout: Layout, { ca }: HostCertificate): string => `${PROXY_HEAD}
  mode http
  timeout client 75s
  timeout server 75s
  timeout tunnel 1h
  option forwardfor
  option httpchk GET /health/ready
  http-check expect status 200
  retry-on conn-failure
  option redispatch
frontend public
  bind ${addressOf(layout, 'edge')}:${layout.port}
  default_backend apis
backend apis
  balance leastconn
  default-server inter 1s fall 2 rise 1
${APP_HOSTS.map((each) => `  server ${each} ${endpoint(layout, each, 'api')} check ssl verify required ca-file ${ca}`).join('\n')}
`

/** First primary; afterwards Sentinels decide, and write their decision to these files. */
const FIRST_REDIS: DataHost = 'data1'

const listening = (
  address: string,
  port: number,
  dataDir: string,
  password: string,
  { ca, certificate, key }: HostCertificate,
): readonly string[] => [
  `bind ${address}`,
  // No connection without TLS, also between the servers.
  'port 0',
  `tls-port ${port}`,
  'tls-replication yes',
  'tls-auth-clients yes',
  `tls-ca-cert-file "${ca}"`,
  `tls-cert-file "${certificate}"`,
  `tls-key-file "${key}"`,
  `dir "${dataDir}"`,
  `requirepass ${password}`,
]

export const redisConfiguration = (
  layout: Layout,
  host: DataHost,
  { redis: password }: Pick<Secrets, 'redis'>,
  dataDir: string,
  certificate: HostCertificate,
): string =>
  [
    ...listening(addressOf(layout, host), PORTS.redis, dataDir, password, certificate),
    `masterauth ${password}`,
    `replica-announce-ip ${addressOf(layout, host)}`,
    // BullMQ needs every key: Redis refuses writes instead of evicting.
    'maxmemory-policy noeviction',
    'appendonly yes',
    'appendfsync everysec',
    // A primary that is cut off from its replicas accepts no writes, which the failover would lose.
    'min-replicas-to-write 1',
    'min-replicas-max-lag 10',
    'repl-timeout 10',
    'repl-diskless-sync-delay 0',
    ...(host === FIRST_REDIS ? [] : [`replicaof ${addressOf(layout, FIRST_REDIS)} ${PORTS.redis}`]),
    '',
  ].join('\n')

export const sentinelConfiguration = (
  layout: Layout,
  host: DataHost,
  { redis: password }: Pick<Secrets, 'redis'>,
  dataDir: string,
  certificate: HostCertificate,
): string =>
  [
    ...listening(addressOf(layout, host), PORTS.sentinel, dataDir, password, certificate),
    `sentinel sentinel-pass ${password}`,
    `sentinel announce-ip ${addressOf(layout, host)}`,
    `sentinel monitor ${REDIS_NAME} ${addressOf(layout, FIRST_REDIS)} ${PORTS.redis} 2`,
    `sentinel auth-pass ${REDIS_NAME} ${password}`,
    `sentinel down-after-milliseconds ${REDIS_NAME} 3000`,
    `sentinel failover-timeout ${REDIS_NAME} 10000`,
    '',
  ].join('\n')

/** For api and keepers. */
export const redisUrlOf = (layout: Layout, { redis: password }: Pick<Secrets, 'redis'>): string =>
  `rediss+sentinel://:${password}@${DATA_HOSTS.map((host) => endpoint(layout, host, 'sentinel')).join(',')}/${REDIS_NAME}`

/** The owner's connection, by the proxy of an app host. */
export const ownerUrlOf = (
  layout: Layout,
  host: AppHost,
  { database: password }: Pick<Secrets, 'database'>,
  { ca }: Pick<HostCertificate, 'ca'>,
  database: string = DATABASE,
): string =>
  `postgres://${DATABASE}:${password}@${endpoint(layout, host, 'database')}/${database}` +
  `?sslmode=verify-full&sslrootcert=${encodeURIComponent(ca)}`
