/** The environment of the engine, read and checked once. */
import { UPDATE_INTERVAL } from '../../domain/prices/funding-plan.ts'
import type { Millis } from '../../domain/units.ts'
import type { TlsSource } from '../../service/certificates.ts'
import { type Env, environment, orNoted, type ProcessConfig } from '../../service/environment.ts'
import type { TraceExport } from '../../service/spans.ts'
import { traceExportOf } from '../../service/trace-settings.ts'
import { type Address, addressOf, keysOf } from './link/access.ts'
import { ROLES, type Role } from './link/messages.ts'
import { linkTls } from './link/tls.ts'

export interface Config extends ProcessConfig {
  readonly databaseUrl: string
  readonly databaseConnections: number
  readonly chainId: number
  /** The contract `MarginBank`. */
  readonly bank: string
  /** Where clients connect. */
  readonly listen: Address
  /** Null: connections without TLS. */
  readonly tls: TlsSource | null
  readonly keys: ReadonlyMap<Role, Buffer>
  readonly auctionIntervalMs: number
  readonly fundingIntervalMs: Millis
  readonly leaseMs: number
  readonly confirmations: number
  /** Blocks below the newest one that can be rolled back. */
  readonly forkDepth: number
  /** Most commands that are stored together. */
  readonly groupCommands: number
  /** Rows of the journal between two checkpoints. */
  readonly checkpointRows: number
  readonly oracleMaxAgeMs: number
  readonly chainMaxAgeMs: number
  /** Null: no spans. */
  readonly traces: TraceExport | null
}

const NOWHERE: Address = { host: '', port: 0 }

export function readConfig(env: Env): Config {
  const { count, database, process, text, address } = environment(env, 'engine')
  const confirmations = count('CHAIN_CONFIRMATIONS', 1)
  const listen = orNoted<Address>(() => addressOf('ENGINE_LISTEN', text('ENGINE_LISTEN')), NOWHERE)
  return {
    ...process(9_104),
    databaseUrl: database(),
    databaseConnections: count('DATABASE_CONNECTIONS', 4, 2),
    chainId: count('CHAIN_ID'),
    bank: address('ADDRESS_MARGIN_BANK'),
    listen,
    tls: orNoted(() => linkTls(env, 'ENGINE_LISTEN', 'path' in listen ? listen.path : null), null),
    keys: orNoted(() => keysOf('ENGINE_KEYS_FILE', text('ENGINE_KEYS_FILE'), ROLES), new Map()),
    auctionIntervalMs: count('AUCTION_INTERVAL_MS', 200, 1),
    fundingIntervalMs: count('FUNDING_INTERVAL_MS', UPDATE_INTERVAL, 1_000) as Millis,
    leaseMs: count('LEASE_MS', 2_000, 500),
    confirmations,
    forkDepth: count('FORK_DEPTH', 1_000, confirmations),
    groupCommands: count('GROUP_COMMANDS', 500, 1),
    checkpointRows: count('CHECKPOINT_ROWS', 200_000, 1),
    oracleMaxAgeMs: count('ORACLE_MAX_AGE_MS', 10_000, 1),
    chainMaxAgeMs: count('CHAIN_MAX_AGE_MS', 2_500, 1),
    traces: traceExportOf(env, 'engine'),
  }
}
