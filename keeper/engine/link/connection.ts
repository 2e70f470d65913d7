/** A process's connections to the engine: one for each role that it has. */
import type { Engine } from './engine.ts'
import type { Role } from './messages.ts'

export interface EngineConnection {
  readonly engine: Engine
  /** Resolves when the owner is connected. */
  ready(): Promise<void>
  close(): Promise<void>
}

export type ConnectEngine = (role: Role) => EngineConnection
