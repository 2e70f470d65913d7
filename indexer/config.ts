/** The environment of the indexer, read and checked once. */

import type { Address } from '../domain/units.ts'
import { type EngineAccess, engineAccess } from '../keeper/engine/link/access.ts'
import { type Env, environment, type ProcessConfig } from '../service/environment.ts'
import type { TraceExport } from '../service/spans.ts'
import { traceExportOf } from '../service/trace-settings.ts'

export interface Config extends ProcessConfig {
  readonly databaseUrl: string
  readonly databaseConnections: number
  readonly rpcUrl: string
  /** If set, new heads wake the follower; polling continues. */
  readonly rpcWsUrl: string | null
  readonly rpcTimeoutMs: number
  readonly chainId: number
  readonly bank: Address
  readonly accountManager: Address
  readonly forwarder: Address
  readonly startBlock: number
  readonly pollMs: number
  readonly range: number
  readonly liveDepth: number
  readonly chunk: number
  readonly projectPollMs: number
  /** The process is not ready if the chain's head was last reached longer ago. */
  readonly maxLagMs: number
  /** The engine that records blocks. */
  readonly engine: EngineAccess<'ingest'>
  /** Null: no spans. */
  readonly traces: TraceExport | null
}

const PROCESS = 'indexer'

/** Reads the environment. Throws a ConfigError that names the variable. */
export function readConfig(env: Env): Config {
  const { optional, text, database, http, url, count, address, process } = environment(env, PROCESS)
  const rpcWsUrl = optional('RPC_WS_URL') && url('RPC_WS_URL', ['ws:', 'wss:'])
  return {
    ...process(8082),
    databaseUrl: database(),
    databaseConnections: count('DATABASE_CONNECTIONS', 16, 2),
    rpcUrl: http('RPC_URL'),
    rpcWsUrl,
    rpcTimeoutMs: count('RPC_TIMEOUT_MS', 5_000, 1),
    chainId: count('CHAIN_ID', undefined, 1),
    bank: address('ADDRESS_MARGIN_BANK'),
    accountManager: address('ADDRESS_ACCOUNT_MANAGER'),
    forwarder: address('ADDRESS_FORWARDER'),
    startBlock: count('START_BLOCK', 0),
    // The node announces blocks over the WebSocket: polling only finds a block after a lost announcement.
    pollMs: count('CHAIN_POLL_MS', rpcWsUrl === null ? 100 : 500, 1),
    range: count('CHAIN_RANGE', 500, 1),
    liveDepth: count('CHAIN_LIVE_DEPTH', 64, 1),
    chunk: count('PROJECT_CHUNK', 1_000, 1),
    projectPollMs: count('PROJECT_POLL_MS', 1_000, 1),
    maxLagMs: count('MAX_LAG_MS', 5_000, 1),
    traces: traceExportOf(env, PROCESS),
    engine: engineAccess({ ...env, ENGINE_URL: text('ENGINE_URL') }, PROCESS, [
      'ingest',
    ]) as EngineAccess<'ingest'>,
  }
}

/** The only variable that `rebuild` reads. */
export function readDatabaseUrl(env: Env = process.env): string {
  return environment(env, PROCESS).database()
}
