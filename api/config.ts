/** The environment of the api, read and checked once. */
import { availableParallelism, tmpdir } from 'node:os'
import type { FaucetLimits } from '../db/faucet-requests.ts'
import { isTestChain } from '../domain/test-chains.ts'
import { type EngineAccess, engineAccess } from '../keeper/engine/link/access.ts'
import {
  type Env,
  environment,
  type Listener,
  MOST_DRAIN_MS,
  type ProcessConfig,
  rejectVariable,
} from '../service/environment.ts'
import { redisUrlOf } from '../service/redis.ts'
import type { TraceExport } from '../service/spans.ts'
import { traceExportOf } from '../service/trace-settings.ts'
import { isNetwork } from './auth/address-list.ts'
import type { HistoryConfig } from './history/files.ts'
import { type OperateConfig, readOperate } from './operate/config.ts'
import { type PageConfig, readPage } from './page/config.ts'

export interface BearerConfig {
  readonly jwksUrl: string
  readonly issuer: string
  readonly audience: string
  /** Name of the claim that holds the wallet address. */
  readonly walletClaim: string
}

/** Domain and URL stated in every message that a wallet signs. */
export interface WalletSigning {
  /** Domain of the page that asks the wallet to sign. */
  readonly domain: string
  /** Base URL by which clients reach the api. */
  readonly publicUrl: string
  /** For signatures of contract wallets; null: they are not accepted. */
  readonly rpcUrl: string | null
}

/** Requests per second and credential (and address), each with a burst of `windowSeconds` times as many. */
export interface Limits {
  readonly reads: number
  readonly orders: number
  /** Placements of many orders at once. */
  readonly batches: number
  readonly cancels: number
  readonly faucet: number
  /** Challenges and rotations of API keys. */
  readonly auth: number
  /** Signed requests that the exchange sends to the chain and pays for. */
  readonly relays: number
  /** Adjustments: the exchange pays for them, too. */
  readonly adjustments: number
  /** Proofs of batches. */
  readonly proofs: number
  /** Per network address, all requests together. */
  readonly address: number
  /** Accounts whose cost budgets an address may use, with all of its accounts together. */
  readonly accounts: number
  /** Per network address, challenges and rotations. */
  readonly authAddress: number
  /** Per network address, requests with a credential that is refused. */
  readonly failures: number
  readonly windowSeconds: number
}

/**
 * Proxies with a trusted `X-Forwarded-For`: their number in front of the api, or their addresses and networks. A number presumes that clients
 * cannot reach the api directly.
 */
export type TrustedProxies = number | readonly string[]

/** Bounds of slow clients. Connections that are idle between two requests are kept alive. */
export interface ConnectionLimits {
  /**
   * Time from a request's first byte to its last; for the first request, from the connection's opening. The largest
   * body takes a second at 100 kB/s.
   */
  readonly requestTimeoutMs: number
  /** Longest time without a byte in either direction while an answer is pending: the client does not read. */
  readonly idleMs: number
  /** Open connections of an address, without WebSockets. */
  readonly perAddress: number
}

/** Bounds of the connections of the live feed. */
export interface LiveConfig {
  readonly connections: {
    readonly perProcess: number
    readonly perAddress: number
    readonly perAccount: number
  }
  /** Topics of one connection. */
  readonly subscriptions: number
  /** Messages of one connection in a window of the rate limits. */
  readonly messages: number
  /** Messages of all connections of an address in such a window. */
  readonly messagesOfAddress: number
  readonly windowMs: number
  /** Unread bytes of one connection beyond which topics that allow it are conflated. */
  readonly conflateBytes: number
  /** Unread bytes of one connection beyond which it is closed. */
  readonly bufferBytes: number
  readonly heartbeatMs: number
  /** Longest time without any sign of life of the client. */
  readonly silenceMs: number
  /** Longest time without a message of a client that has no subscription. */
  readonly idleMs: number
  /** When the process ends, its clients connect again within this time. */
  readonly reconnectMs: number
}

export interface Config extends ProcessConfig {
  /** Where the api serves clients. */
  readonly public: Listener
  /** Time before a drain in which it still serves, so that proxies find out that it is not ready. */
  readonly drainNoticeMs: number
  readonly databaseUrl: string
  readonly databaseConnections: number
  /** The engine that decides every change of the exchange. */
  readonly engine: EngineAccess<'api'>
  readonly redisUrl: string | null
  /** Maximum time that a request waits for its counts. */
  readonly redisTimeoutMs: number
  readonly trustProxy: TrustedProxies
  readonly connections: ConnectionLimits
  readonly corsOrigins: string[] | true
  readonly logRequests: boolean
  readonly chainId: number
  readonly contracts: {
    readonly usdm: string
    readonly marginBank: string
    readonly accountManager: string
    readonly forwarder: string
  }
  readonly faucet: boolean
  readonly faucetWaitMs: number
  readonly faucetLimits: FaucetLimits
  /** Bound of the wait for the execution of a relayed request. */
  readonly relayWaitMs: number
  /** How long an adjustment is waited for before it is answered with 408. */
  readonly adjustmentWaitMs: number
  readonly bearer: BearerConfig | null
  readonly walletSigning: WalletSigning
  /** The page for browsers; null: the api serves none. */
  readonly page: PageConfig | null
  /** The view of operators; null: the api serves none. */
  readonly operate: OperateConfig | null
  readonly limits: Limits
  /** Files of the public history. */
  readonly history: HistoryConfig
  readonly live: LiveConfig
  /** Placements are rejected if the newest oracle report is older. */
  readonly oracleMaxAgeMs: number
  /** Placements are rejected if the indexer reached the chain's head longer ago. Default: half of CANCEL_GRACE. */
  readonly chainMaxAgeMs: number
  /** Commands that may wait for the engine. */
  readonly maxQueue: number
  /** While placements take longer in the mean, fewer of them may be under way. */
  readonly placementTargetMs: number
  /** Bound of the time from the arrival of a command to the engine's answer. */
  readonly commandTimeoutMs: number
  /** Threads that verify the signatures of batches; 0 verifies them on the main thread. */
  readonly signatureThreads: number
  /** Most invalid signatures per second that are diagnosed: a diagnosis takes milliseconds. */
  readonly signatureExplanations: number
  /** Retention of stored answers to commands with a `client_request_id`. */
  readonly requestRetentionHours: number
  /** Most stored answers per account, so that no account can fill the database. */
  readonly requestsKept: number
  readonly readAfterWaitMs: number
  readonly readAfterWaiters: number
  readonly readAfterPollMs: number
  /** Null: no spans. */
  readonly traces: TraceExport | null
}

const PROCESS = 'api'

function readEngine(env: Env): EngineAccess<'api'> {
  environment(env, PROCESS).text('ENGINE_URL')
  return engineAccess(env, PROCESS, ['api']) as EngineAccess<'api'>
}

function readBearer(env: Env): BearerConfig | null {
  const { text, http, optional } = environment(env, PROCESS)
  if (optional('AUTH_JWKS_URL') === null) return null
  return {
    jwksUrl: http('AUTH_JWKS_URL'),
    issuer: text('AUTH_ISSUER'),
    audience: text('AUTH_AUDIENCE'),
    walletClaim: text('AUTH_WALLET_CLAIM', 'wallet_address'),
  }
}

/** By default wallets sign for the host of the api itself. */
function readWalletSigning(env: Env, { host, port, tls }: Listener): WalletSigning {
  const { optional, http, text } = environment(env, PROCESS)
  const own = `${tls === undefined ? 'http' : 'https'}://${host}:${port}`
  const publicUrl = optional('PUBLIC_URL') === null ? own : http('PUBLIC_URL')
  return {
    domain: text('AUTH_DOMAIN', new URL(publicUrl).host),
    publicUrl: publicUrl.replace(/\/$/, ''),
    rpcUrl: optional('RPC_URL') === null ? null : http('RPC_URL'),
  }
}

function readLimits(env: Env): Limits {
  const { count } = environment(env, PROCESS)
  return {
    reads: count('RATE_LIMIT_READS', 50),
    orders: count('RATE_LIMIT_ORDERS', 100),
    batches: count('RATE_LIMIT_BATCHES', 25),
    cancels: count('RATE_LIMIT_CANCELS', 100),
    faucet: count('RATE_LIMIT_FAUCET', 1),
    auth: count('RATE_LIMIT_AUTH', 1),
    relays: count('RATE_LIMIT_RELAYS', 1),
    adjustments: count('RATE_LIMIT_ADJUSTMENTS', 1),
    proofs: count('RATE_LIMIT_PROOFS', 10),
    address: count('RATE_LIMIT_ADDRESS', 500),
    accounts: count('RATE_LIMIT_ACCOUNTS', 4, 1),
    authAddress: count('RATE_LIMIT_AUTH_ADDRESS', 10),
    failures: count('RATE_LIMIT_FAILURES', 10),
    windowSeconds: count('RATE_LIMIT_WINDOW_SECONDS', 5, 1),
  }
}

/** Heartbeats without any answer of the client, after which its connection is closed. */
const SILENT_HEARTBEATS = 4

function readLive(env: Env, { address, windowSeconds }: Limits): LiveConfig {
  const { count } = environment(env, PROCESS)
  const conflateBytes = count('LIVE_CONFLATE_BYTES', 64 * 1024, 1)
  const bufferBytes = count('LIVE_BUFFER_BYTES', 1024 * 1024, 1)
  if (bufferBytes <= conflateBytes)
    rejectVariable(
      'LIVE_BUFFER_BYTES',
      `is "${bufferBytes}": expected more than ${conflateBytes}, the bytes of LIVE_CONFLATE_BYTES`,
    )
  const heartbeatMs = count('LIVE_HEARTBEAT_MS', 5_000, 100, 60_000)
  return {
    connections: {
      perProcess: count('LIVE_CONNECTIONS', 10_000),
      perAddress: count('LIVE_CONNECTIONS_PER_ADDRESS', 200),
      perAccount: count('LIVE_CONNECTIONS_PER_ACCOUNT', 50),
    },
    subscriptions: count('LIVE_SUBSCRIPTIONS', 1_000),
    messages: count('LIVE_MESSAGES', 250, 1) * windowSeconds,
    messagesOfAddress: address * windowSeconds,
    windowMs: windowSeconds * 1000,
    conflateBytes,
    bufferBytes,
    heartbeatMs,
    silenceMs: SILENT_HEARTBEATS * heartbeatMs,
    idleMs: count('LIVE_IDLE_MS', 60_000, 1),
    reconnectMs: count('LIVE_RECONNECT_MS', 5_000),
  }
}

const MOST_PROXIES = 16

function readTrustedProxies(env: Env): TrustedProxies {
  const value = environment(env, PROCESS).text('TRUST_PROXY', '0')
  const reject = (problem: string): never =>
    rejectVariable(
      'TRUST_PROXY',
      `${problem}: expected the number of proxies in front of the api (0 to ${MOST_PROXIES}), or a comma-separated list of their ` +
        'addresses and networks, such as 10.0.0.0/8',
    )
  if (/^\d+$/.test(value)) return Number(value) <= MOST_PROXIES ? Number(value) : reject(`is "${value}"`)
  const networks = value.split(',').map((network) => network.trim())
  const invalid = networks.find((network) => !isNetwork(network))
  return invalid === undefined ? networks : reject(`contains ${JSON.stringify(invalid)}`)
}

/** `longestWaitMs`: for which a request waits without a byte in either direction. */
function readConnectionLimits(env: Env, longestWaitMs: number): ConnectionLimits {
  const { count } = environment(env, PROCESS)
  const idleMs = count('CONNECTION_IDLE_MS', longestWaitMs + 20_000)
  if (idleMs <= longestWaitMs)
    rejectVariable(
      'CONNECTION_IDLE_MS',
      `is "${idleMs}": expected more than ${longestWaitMs} ms, the longest wait of a request`,
    )
  return {
    requestTimeoutMs: count('REQUEST_TIMEOUT_MS', 5_000, 1, 300_000),
    idleMs,
    perAddress: count('HTTP_CONNECTIONS_PER_ADDRESS', 200, 1),
  }
}

function readHistory(env: Env, waitMs: number): HistoryConfig {
  const { count, optional } = environment(env, PROCESS)
  return {
    directory: optional('HISTORY_DIR') ?? tmpdir(),
    keptBytes: count('HISTORY_KEPT_MB', 1_024) * 1024 * 1024,
    builds: count('HISTORY_BUILDS', 1, 1),
    waitMs,
    // Times of journal rows go back by less than two minutes.
    graceMs: count('HISTORY_GRACE_MINUTES', 60, 2) * 60_000,
    retentionDays: count('HISTORY_RETENTION_DAYS', 0),
  }
}

/** Longest further wait for an outcome once a drain has begun: then the answer is that the outcome is pending. */
export const DRAIN_WAIT_MS = 4_000
/** Time of a drain after the longest wait of a request. */
const DRAIN_MARGIN_MS = 5_000

/** A drain waits for the answers to the requests in flight. */
function readProcess(env: Env, longestWaitMs: number): ProcessConfig & { readonly drainNoticeMs: number } {
  const { count, process } = environment(env, PROCESS)
  const drainMs = Math.min(longestWaitMs + DRAIN_MARGIN_MS, MOST_DRAIN_MS)
  const config = process(8083, drainMs)
  const drainNoticeMs = count('DRAIN_NOTICE_MS', 2_000)
  if (config.drainMs <= longestWaitMs + drainNoticeMs)
    rejectVariable(
      'DRAIN_MS',
      `is "${config.drainMs}": expected more than ${longestWaitMs + drainNoticeMs} ms, the longest wait of a request and DRAIN_NOTICE_MS`,
    )
  return { ...config, drainNoticeMs }
}

/** Real collateral cannot be minted. */
function readFaucet(env: Env): boolean {
  const { flag, count } = environment(env, PROCESS)
  const isOn = flag('FAUCET', false)
  if (isOn && !isTestChain(count('CHAIN_ID')))
    rejectVariable('FAUCET', `is on: expected off on chain ${count('CHAIN_ID')}, which is not a test chain`)
  return isOn
}

/** Reads the environment. Throws a ConfigError that names the variable. */
export function readConfig(env: Env): Config {
  const { text, database, count, flag, address, listener } = environment(env, PROCESS)
  const origins = text('CORS_ORIGINS', '*')
  const publicListener = listener('HOST', 'PORT', 8080)
  const outcomeWaits = {
    faucetWaitMs: count('FAUCET_WAIT_MS', 10_000),
    relayWaitMs: count('RELAY_WAIT_MS', 10_000),
    adjustmentWaitMs: count('ADJUSTMENT_WAIT_MS', 10_000),
  }
  const waits = {
    commandTimeoutMs: count('COMMAND_TIMEOUT_MS', 5_000),
    readAfterWaitMs: count('READ_AFTER_WAIT_MS', 5_000),
  }
  const historyWaitMs = count('HISTORY_WAIT_MS', 5_000)
  const longestInDrainMs = Math.max(...Object.values(waits), historyWaitMs, DRAIN_WAIT_MS)
  const longestWaitMs = Math.max(longestInDrainMs, ...Object.values(outcomeWaits))
  const limits = readLimits(env)
  return {
    ...readProcess(env, longestInDrainMs),
    public: publicListener,
    ...outcomeWaits,
    ...waits,
    databaseUrl: database(),
    databaseConnections: count('DATABASE_CONNECTIONS', 16),
    engine: readEngine(env),
    redisUrl: redisUrlOf(env),
    redisTimeoutMs: count('REDIS_TIMEOUT_MS', 250),
    trustProxy: readTrustedProxies(env),
    connections: readConnectionLimits(env, longestWaitMs),
    corsOrigins: origins === '*' ? true : origins.split(',').map((origin) => origin.trim()),
    logRequests: flag('LOG_REQUESTS', false),
    chainId: count('CHAIN_ID'),
    contracts: {
      usdm: address('ADDRESS_USDM'),
      marginBank: address('ADDRESS_MARGIN_BANK'),
      accountManager: address('ADDRESS_ACCOUNT_MANAGER'),
      forwarder: address('ADDRESS_FORWARDER'),
    },
    faucet: readFaucet(env),
    faucetLimits: {
      perAccount: count('FAUCET_PER_ACCOUNT', 5, 1),
      perAddress: count('FAUCET_PER_ADDRESS', 20, 1),
      windowMs: count('FAUCET_WINDOW_HOURS', 24, 1, 24 * 365) * 3_600_000,
    },
    bearer: readBearer(env),
    walletSigning: readWalletSigning(env, publicListener),
    page: readPage(env, PROCESS),
    operate: readOperate(env, PROCESS),
    limits,
    history: readHistory(env, historyWaitMs),
    live: readLive(env, limits),
    oracleMaxAgeMs: count('ORACLE_MAX_AGE_MS', 10_000),
    chainMaxAgeMs: count('CHAIN_MAX_AGE_MS', 2_500),
    maxQueue: count('MAX_QUEUE', 4_096),
    placementTargetMs: count('PLACEMENT_TARGET_MS', 200, 1),
    signatureThreads: count('SIGNATURE_THREADS', Math.max(1, availableParallelism() - 1)),
    signatureExplanations: count('SIGNATURE_EXPLANATIONS', 20),
    requestRetentionHours: count('REQUEST_RETENTION_HOURS', 24),
    requestsKept: count('REQUESTS_KEPT', 20_000),
    readAfterWaiters: count('READ_AFTER_WAITERS', 1_000),
    readAfterPollMs: count('READ_AFTER_POLL_MS', 250),
    traces: traceExportOf(env, PROCESS),
  }
}
