/** Connects a process to the engine in one of its roles. */
import type { Db } from '../../../db/client.ts'
import { engineIdentity } from '../../../db/engine-identity.ts'

import type { EngineLogger } from '../ports.ts'
import { systemTimer } from '../timer.ts'
import { type EngineAccess, openMember } from './access.ts'
import { createEngineClient } from './client.ts'
import { createEngine, type Engine } from './engine.ts'
import { PROTOCOL, type Role } from './messages.ts'

export interface ConnectedEngine extends Engine {
  /** Resolves when the owner is connected. */
  ready(): Promise<void>
  close(): void
}

/** Chain, schema and restore of the process's own database are compared with those of the engine. */
export async function connectEngine<Name extends Role>(
  db: Db,
  chainId: number,
  { members, keys }: EngineAccess<Name>,
  role: Name,
  logger: EngineLogger,
): Promise<ConnectedEngine> {
  const { schema, incarnation } = await engineIdentity(db)
  const client = createEngineClient({
    identity: { protocol: PROTOCOL, chainId, schema, incarnation },
    role,
    key: keys.get(role) as Buffer,
    members,
    open: openMember,
    timer: systemTimer,
    monotonic: () => performance.now(),
    logger,
  })
  return { ...createEngine(client), ready: client.ready, close: client.close }
}
