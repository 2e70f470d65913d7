/** The environment of the indexer, read and checked once. */
import type { Address } from '../domain/units.ts'

export interface Config {
  readonly databaseUrl: string
  readonly databaseConnections: number
  readonly rpcUrl: string
  /** New heads wake the follower where it is set; polling goes on all the same. */
  readonly rpcWsUrl: string | null
  readonly rpcTimeoutMs: number
  readonly chainId: number
  readonly bank: Address
  readonly accountManager: Address
  readonly startBlock: number
  readonly pollMs: number
  readonly range: number
  readonly liveDepth: number
  readonly sealDepth: number
  readonly chunk: number
  readonly projectPollMs: number
  /** The process is not ready when its last pass over the head, or the oldest row not projected, is older than this. */
  readonly maxLagMs: number
  readonly host: string
  readonly port: number
  readonly logLevel: string
  readonly killAt: string | null
}

export type Env = Readonly<Record<string, string | undefined>>

/** Names the variable and what is wrong with it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

const reader = (env: Env) => {
  const text = (name: string, fallback?: string): string => {
    const value = env[name] || fallback
    if (value === undefined) throw new ConfigError(`${name} is not set: the indexer cannot start without it`)
    return value
  }
  const count = (name: string, fallback?: number, least = 0): number => {
    const value = Number(text(name, fallback?.toString()))
    if (Number.isSafeInteger(value) && value >= least) return value
    throw new ConfigError(`${name} is not a whole number from ${least}: ${env[name]}`)
  }
  const url = (name: string, protocols: readonly string[]): string => {
    const value = text(name)
    if (URL.canParse(value) && protocols.includes(new URL(value).protocol)) return value
    throw new ConfigError(`${name} is not a URL of ${protocols.join(' or ')}`)
  }
  const address = (name: string): Address => {
    const value = text(name).toLowerCase()
    if (/^0x[0-9a-f]{40}$/.test(value)) return value as Address
    throw new ConfigError(`${name} is not an address: ${env[name]}`)
  }
  return { text, count, url, address }
}

const POSTGRES = ['postgres:', 'postgresql:']

/** Reads the environment. Throws a ConfigError that names the variable. */
export function readConfig(env: Env): Config {
  const { text, count, url, address } = reader(env)
  return {
    databaseUrl: url('DATABASE_URL', POSTGRES),
    databaseConnections: count('DATABASE_CONNECTIONS', 10, 2),
    rpcUrl: url('RPC_URL', ['http:', 'https:']),
    rpcWsUrl: env.RPC_WS_URL ? url('RPC_WS_URL', ['ws:', 'wss:']) : null,
    rpcTimeoutMs: count('RPC_TIMEOUT_MS', 5_000, 1),
    chainId: count('CHAIN_ID', undefined, 1),
    bank: address('ADDRESS_MARGIN_BANK'),
    accountManager: address('ADDRESS_ACCOUNT_MANAGER'),
    startBlock: count('START_BLOCK', 0),
    pollMs: count('CHAIN_POLL_MS', 100, 1),
    range: count('CHAIN_RANGE', 500, 1),
    liveDepth: count('CHAIN_LIVE_DEPTH', 64, 1),
    sealDepth: count('CHAIN_SEAL_DEPTH', 1),
    chunk: count('PROJECT_CHUNK', 1_000, 1),
    projectPollMs: count('PROJECT_POLL_MS', 1_000, 1),
    maxLagMs: count('MAX_LAG_MS', 5_000, 1),
    host: text('HOST', '127.0.0.1'),
    port: count('PORT', 8082),
    logLevel: text('LOG_LEVEL', 'info'),
    killAt: env.CLEARBATCH_KILL_AT || null,
  }
}

/** What `rebuild` needs of it. */
export function readDatabaseUrl(env: Env = process.env): string {
  return reader(env).url('DATABASE_URL', POSTGRES)
}
