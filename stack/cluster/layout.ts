/** Layout of a cluster: hosts, their addresses, and the ports of their services. */

export const DATA_HOSTS = ['data1', 'data2', 'data3'] as const
export const APP_HOSTS = ['app1', 'app2'] as const
export const ORACLE_HOSTS = ['oracle1', 'oracle2', 'oracle3'] as const

export type DataHost = (typeof DATA_HOSTS)[number]
export type AppHost = (typeof APP_HOSTS)[number]
export type OracleHost = (typeof ORACLE_HOSTS)[number]
/** `edge`: host of the public proxy and of the identity provider. `chain`: host of the node. */
export type HostName = DataHost | AppHost | OracleHost | 'edge' | 'chain'

export const HOSTS: readonly HostName[] = [...DATA_HOSTS, ...APP_HOSTS, 'edge', ...ORACLE_HOSTS, 'chain']

/** Signatures that a price report needs. */
export const THRESHOLD = 2

/** Last part of each host's address; 1 is this machine itself. */
const LAST: Readonly<Record<HostName, number>> = {
  data1: 11,
  data2: 12,
  data3: 13,
  app1: 21,
  app2: 22,
  edge: 31,
  oracle1: 41,
  oracle2: 42,
  oracle3: 43,
  chain: 51,
}

export const PORTS = {
  etcdClient: 2379,
  etcdPeer: 2380,
  postgres: 5432,
  patroni: 8008,
  redis: 6379,
  sentinel: 26379,
  /** The proxy of an app host to the primary database. */
  database: 5000,
  engine: 7100,
  engineHealth: 9104,
  api: 8080,
  keeperHealth: 8081,
  indexerHealth: 8082,
  apiHealth: 8083,
  signer: 8085,
  signerHealth: 8086,
  backstopHealth: 8087,
  issuer: 8090,
  chain: 8545,
} as const

/** `namespaces`: each host is a network namespace. `loopback`: each host is an address of the loopback interface. */
export type Network = 'namespaces' | 'loopback'

export interface Layout {
  readonly network: Network
  /** Third part of the cluster's addresses, so that two clusters on this machine have separate networks. */
  readonly id: number
  /** Public port of the exchange, at the host `edge`. */
  readonly port: number
}

const NETWORK_PREFIX: Readonly<Record<Network, string>> = { namespaces: '10.201', loopback: '127.201' }

export const addressOf = ({ network, id }: Layout, host: HostName): string =>
  `${NETWORK_PREFIX[network]}.${id}.${LAST[host]}`

/** Address of this machine as seen by the hosts. */
export const gatewayOf = ({ id }: Layout): string => `${NETWORK_PREFIX.namespaces}.${id}.1`

/** Subnet from which services accept connections. A connection between two loopback addresses comes from 127.0.0.1. */
export const subnetOf = ({ network, id }: Layout): string =>
  network === 'loopback' ? '127.0.0.0/8' : `${NETWORK_PREFIX.namespaces}.${id}.0/24`

export const endpoint = (layout: Layout, host: HostName, port: keyof typeof PORTS): string =>
  `${addressOf(layout, host)}:${PORTS[port]}`

export const publicUrl = (layout: Layout): string => `http://${addressOf(layout, 'edge')}:${layout.port}`

export const namespaceOf = ({ id }: Layout, host: HostName): string => `clearbatch-${id}-${host}`
export const bridgeOf = ({ id }: Layout): string => `cbatch${id}`

/** Starts a program on the host. */
export const launcherOf = (layout: Layout, host: HostName): readonly string[] =>
  layout.network === 'loopback' ? [] : ['ip', 'netns', 'exec', namespaceOf(layout, host)]
