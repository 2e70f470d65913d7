/** The exchange that a benchmark sends its requests to. */
import type { Db } from '../../db/client.ts'
import type { BenchMarket } from './orders.ts'

export interface Target {
  readonly port: number
  /** API keys of funded accounts, in the order of `accountOf`. */
  readonly keys: readonly string[]
  readonly markets: readonly BenchMarket[]
  readonly db: Db
  readonly databaseUrl: string
  /** Process ids, by process name. */
  readonly processes: Readonly<Record<string, number>>
  /** Base URL of the keeper's metrics; null if neither keeper nor indexer runs. */
  readonly keeperUrl: string | null
  stop(): Promise<void>
}

export const ACCOUNTS = 256
