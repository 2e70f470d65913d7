/** The command and the environment variables of each process. */

import { LOOPBACK } from '../service/environment.ts'
import type { DatabaseUrls } from './database-logins.ts'
import type { EngineMembers } from './engine.ts'
import { AUDIENCE } from './issuer/terms.ts'
import type { Keys } from './keys.ts'
import { LOCAL_SIGNER } from './price-config.ts'
import type { ProcessSpec } from './process-spec.ts'
import { SEED_MARKETS } from './seed-markets.ts'
import type { StackAccount } from './stack-file.ts'

export interface Ports {
  /** The public port of the api. */
  readonly rest: number
  /** The port of the identity provider. */
  readonly issuer: number
  /** The port of health and metrics of each process. */
  readonly internal: Readonly<Record<'api' | 'keeper' | 'indexer' | 'backstop' | 'engine', number>>
  /** The port of health and metrics of the engine's standby, if there is one. */
  readonly standby?: number | null
}

type Variables = Readonly<Record<string, string>>

export interface EnvironmentInput {
  readonly databaseUrls: DatabaseUrls
  readonly rpcUrl: string
  readonly deployment: {
    readonly chain_id: number
    readonly contracts: Record<'usdm' | 'marginBank' | 'accountManager' | 'forwarder', string>
  }
  readonly keys: Keys
  readonly ports: Ports
  /** Path of the keeper's price configuration. */
  readonly pricesFile: string
  /** Path of the identity provider's keys. */
  readonly issuerKeysFile: string
  /** Folder of the built page; null: the api serves none. */
  readonly pageDir: string | null
  readonly engine: EngineMembers & {
    /** Where the member listens that this environment starts. */
    readonly listen: string
    readonly databaseUrl: string
  }
  /** Address at which the processes listen; the loopback interface by default. */
  readonly host?: string
  /** Variables of TLS: of every process, and also of engine, api, keeper and indexer. By default no server has TLS. */
  readonly tls?: { readonly every: Variables; readonly service: Variables }
  /** Base URL of a proxy before the apis; by default clients reach the api itself. */
  readonly proxyUrl?: string
  /** By default the identity provider runs at `host`. */
  readonly issuerUrl?: string
  readonly redisUrl?: string
  /** Internal listeners that the operator's view shows; by default those of this environment. */
  readonly targets?: readonly string[]
  /** The secret of signers in other processes; by default the keeper signs with its own key. */
  readonly signerSecret?: string
}

export interface Environment {
  readonly baseUrl: string
  readonly issuerUrl: string
  readonly issuer: ProcessSpec
  readonly engine: ProcessSpec
  readonly api: ProcessSpec
  readonly keeper: ProcessSpec
  readonly indexer: ProcessSpec
  /** `account`: that of the backstop; its key is a session key. */
  readonly backstop: (account: StackAccount) => ProcessSpec
}

/** High limits: on one machine all clients share an address, and a replay sends its orders from a few accounts. */
const LOCAL_RATE_LIMITS = {
  RATE_LIMIT_READS: '2000',
  RATE_LIMIT_ORDERS: '2000',
  RATE_LIMIT_BATCHES: '500',
  RATE_LIMIT_CANCELS: '2000',
  RATE_LIMIT_ADDRESS: '10000',
  RATE_LIMIT_ACCOUNTS: '100',
  HTTP_CONNECTIONS_PER_ADDRESS: '10000',
  RATE_LIMIT_AUTH_ADDRESS: '200',
  RATE_LIMIT_FAILURES: '200',
  RATE_LIMIT_FAUCET: '5',
  FAUCET_PER_ACCOUNT: '100',
  FAUCET_PER_ADDRESS: '1000',
  RATE_LIMIT_RELAYS: '20',
  RATE_LIMIT_ADJUSTMENTS: '20',
  RATE_LIMIT_PROOFS: '200',
}

const AT_HEALTH = '/health/ready'

/** The operator's password, if the caller's environment has one: it opens the queue page and the operator's view. */
const operatorPassword = (): Record<string, string> => {
  const { QUEUE_PAGE_PASSWORD: password } = process.env
  return password === undefined ? {} : { QUEUE_PAGE_PASSWORD: password }
}

function targetsOf({ host = LOOPBACK, ports, targets }: EnvironmentInput): string {
  const standby = ports.standby ?? null
  const local = [...Object.values(ports.internal), ...(standby === null ? [] : [standby])]
  return (targets ?? local.map((port) => `http://${host}:${port}`)).join(',')
}

/** Where the processes listen, and by which URLs clients reach them. */
function placesOf({ host = LOOPBACK, ports, tls, proxyUrl, issuerUrl }: EnvironmentInput) {
  const scheme = tls === undefined ? 'http' : 'https'
  const apiUrl = `${scheme}://${host}:${ports.rest}`
  return {
    host,
    apiUrl,
    baseUrl: proxyUrl ?? apiUrl,
    issuerUrl: issuerUrl ?? `http://${host}:${ports.issuer}`,
    readyUrl: (name: keyof Ports['internal']) => `${scheme}://${host}:${ports.internal[name]}${AT_HEALTH}`,
  }
}

export function environmentOf(input: EnvironmentInput): Environment {
  const { databaseUrls, rpcUrl, deployment, engine, ports } = input
  const { contracts, chain_id } = deployment
  const { baseUrl, issuerUrl, apiUrl, host, readyUrl } = placesOf(input)
  const common = {
    ...input.tls?.every,
    ...input.tls?.service,
    RPC_URL: rpcUrl,
    CHAIN_ID: `${chain_id}`,
    INTERNAL_HOST: host,
    LOG_LEVEL: logLevel(),
    ...traceVariables(),
    ADDRESS_USDM: contracts.usdm,
    ADDRESS_MARGIN_BANK: contracts.marginBank,
    ADDRESS_ACCOUNT_MANAGER: contracts.accountManager,
    ADDRESS_FORWARDER: contracts.forwarder,
  }
  const service = (name: 'api' | 'keeper' | 'indexer', env: Record<string, string>): ProcessSpec => ({
    name,
    args: [`${name}/main.ts`],
    env: {
      ...common,
      ENGINE_URL: engine.members.join(','),
      ENGINE_KEYS_FILE: engine.keys[name],
      DATABASE_URL: databaseUrls[name],
      INTERNAL_PORT: `${ports.internal[name]}`,
      ...env,
    },
    readyUrl: readyUrl(name),
  })
  return {
    baseUrl,
    issuerUrl,
    issuer: issuerOf(input),
    engine: {
      name: 'engine',
      args: ['keeper/engine/main.ts'],
      env: {
        ...common,
        DATABASE_URL: engine.databaseUrl,
        ENGINE_LISTEN: engine.listen,
        ENGINE_KEYS_FILE: engine.keys.engine,
        INTERNAL_PORT: `${ports.internal.engine}`,
      },
      readyUrl: readyUrl('engine'),
    },
    // Ready once clients can connect.
    api: { ...service('api', apiVariables(input)), readyUrl: `${apiUrl}${AT_HEALTH}` },
    keeper: service('keeper', keeperVariables(input)),
    indexer: service('indexer', { RPC_WS_URL: rpcUrl.replace(/^http/, 'ws') }),
    backstop: (account) => backstopOf(input, account),
  }
}

const logLevel = (): string => process.env.LOG_LEVEL ?? 'info'

const TRACE_VARIABLES = ['TRACE_EXPORT_URL', 'TRACE_SAMPLE_MILLIONTHS']

/** Spans are exported as the environment of the stack states. */
const traceVariables = (): Record<string, string> =>
  Object.fromEntries(TRACE_VARIABLES.map((name) => [name, process.env[name] ?? '']))

const redisVariable = ({ redisUrl }: EnvironmentInput): Record<string, string> =>
  redisUrl === undefined ? {} : { REDIS_URL: redisUrl }

function apiVariables(input: EnvironmentInput): Record<string, string> {
  const { ports, rpcUrl, pageDir, proxyUrl } = input
  const { host, issuerUrl } = placesOf(input)
  return {
    HOST: host,
    PORT: `${ports.rest}`,
    FAUCET: 'on',
    AUTH_JWKS_URL: `${issuerUrl}/jwks`,
    AUTH_ISSUER: issuerUrl,
    AUTH_AUDIENCE: AUDIENCE,
    ...LOCAL_RATE_LIMITS,
    OPERATE_TARGETS: targetsOf(input),
    ...operatorPassword(),
    ...redisVariable(input),
    // Without a proxy nothing checks its readiness.
    ...(proxyUrl === undefined ? { DRAIN_NOTICE_MS: '0' } : { PUBLIC_URL: proxyUrl, TRUST_PROXY: '1' }),
    ...(pageDir !== null && { PAGE_DIR: pageDir, PAGE_RPC_URLS: rpcUrl }),
  }
}

function keeperVariables(input: EnvironmentInput): Record<string, string> {
  const { keys, pricesFile, signerSecret } = input
  return {
    RELAYER_KEYS: JSON.stringify(relayerKeys(keys)),
    PRICES_FILE: pricesFile,
    ...operatorPassword(),
    ...(signerSecret === undefined
      ? { ORACLE_KEYS: JSON.stringify({ [LOCAL_SIGNER]: keys.oracle.privateKey }) }
      : { SIGNER_SECRET: signerSecret }),
    ...redisVariable(input),
  }
}

function issuerOf(input: EnvironmentInput): ProcessSpec {
  const { baseUrl, issuerUrl } = placesOf(input)
  return {
    name: 'issuer',
    args: ['stack/issuer/main.ts'],
    env: {
      ISSUER_URL: issuerUrl,
      PAGE_URL: baseUrl,
      ISSUER_KEYS_FILE: input.issuerKeysFile,
      RPC_URL: input.rpcUrl,
      CHAIN_ID: `${input.deployment.chain_id}`,
    },
    readyUrl: `${issuerUrl}/jwks`,
  }
}

function backstopOf(input: EnvironmentInput, { address, private_key, api_key }: StackAccount): ProcessSpec {
  const { baseUrl, host, readyUrl } = placesOf(input)
  return {
    name: 'backstop',
    args: ['backstop/main.ts'],
    env: {
      ...input.tls?.every,
      BASE_URL: baseUrl,
      ADDRESS_BACKSTOP: address,
      BACKSTOP_SESSION_KEY: private_key,
      BACKSTOP_API_KEY: api_key,
      INTERNAL_HOST: host,
      INTERNAL_PORT: `${input.ports.internal.backstop}`,
      LOG_LEVEL: logLevel(),
    },
    readyUrl: readyUrl('backstop'),
  }
}

/** One relayer per market, so that a stuck nonce stops only that market, one each for the faucet, heartbeats, adjustments, the ends of markets and owners' requests. */
const relayerKeys = (keys: Keys): Record<string, string> => ({
  ...Object.fromEntries(
    SEED_MARKETS.map(({ plan }) => [`m${plan.marketId}`, keys.relayer(plan.marketId).privateKey]),
  ),
  faucet: keys.faucet.privateKey,
  heartbeat: keys.heartbeat.privateKey,
  ending: keys.ending.privateKey,
  relay: keys.relay.privateKey,
  adjust: keys.adjust.privateKey,
})
