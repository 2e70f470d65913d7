/** What placements are measured against. */
import type { Db } from '../../db/client.ts'
import type { BenchMarket } from './orders.ts'

export interface Exchange {
  readonly port: number
  /** API keys of funded accounts, in the order of `accountOf`. */
  readonly keys: readonly string[]
  readonly markets: readonly BenchMarket[]
  readonly db: Db
  readonly databaseUrl: string
  /** Process ids by name. */
  readonly processes: Readonly<Record<string, number>>
  /** Where the keeper serves its metrics; null where no keeper and no indexer run. */
  readonly keeperUrl: string | null
  stop(): Promise<void>
}

export const ACCOUNTS = 256
