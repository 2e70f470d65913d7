/** The keeper's connections to the engine, and what it sends there beside the commands of its workers. */
import type { Db } from '../db/client.ts'
import { loadKeysOf } from '../db/relayers.ts'
import type { Adapters } from './compose-adapters.ts'
import type { Config } from './config.ts'
import type { ConnectEngine, EngineConnection } from './engine/link/connection.ts'
import { informHead } from './inform/head.ts'
import type { Keyring } from './relayer/keyring.ts'
import { runReleases } from './relayer/release.ts'

/** This process's connections to the engine. */
export interface EngineLinks {
  readonly worker: EngineConnection
  /** Null if this process publishes no prices. */
  readonly publisher: EngineConnection | null
}

export const connectLinks = ({ prices }: Config, connect: ConnectEngine): EngineLinks => ({
  worker: connect('worker'),
  publisher: prices === null ? null : connect('publisher'),
})

interface InformParts {
  readonly config: Config
  readonly adapters: Adapters
  readonly db: Db
  readonly keyring: Keyring
}

/** Sends the engine what no row states, and what it may forget. Returns what stops it. */
export function runInforming(
  { config, adapters, db, keyring }: InformParts,
  { worker: { engine } }: EngineLinks,
): () => void {
  const stopHead = informHead({ ...adapters, engine })
  const relayers = () => loadKeysOf(db, config.chainId, keyring.lanes())
  const stopReleases = runReleases({ ...adapters, relayers, engine })
  return () => {
    stopHead()
    stopReleases()
  }
}
