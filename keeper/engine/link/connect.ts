/** Connects a process to the engine in its roles. */

import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { createDb, createPool, type Db } from '../../../db/client.ts'
import { engineIdentity } from '../../../db/engine-identity.ts'
import { checkSchema } from '../../../db/migrator.ts'
import type { TlsSource } from '../../../service/certificates.ts'
import type { Logger } from '../../../service/logger.ts'
import { systemTimer } from '../timer.ts'
import { addressOf, type EngineAccess } from './access.ts'
import { createEngineClient } from './client.ts'
import type { ConnectEngine, EngineConnection } from './connection.ts'
import { createEngine } from './engine.ts'
import { type Identity, PROTOCOL, type Role } from './messages.ts'
import { clientOptions } from './tls.ts'

/** The process compares it with the engine's; both read it from their own database. */
export async function identityOf(db: Db, chainId: number): Promise<Identity> {
  const { schema, incarnation } = await engineIdentity(db)
  return { protocol: PROTOCOL, chainId, schema, incarnation }
}

const memberOpener =
  (tls: TlsSource | null) =>
  (member: string): Duplex => {
    const address = addressOf('ENGINE_URL', member)
    return tls === null ? connect(address) : connectTls({ ...address, ...clientOptions(tls) })
  }

export function connectEngine<Name extends Role>(
  identity: Identity,
  { members, keys, tls = null }: EngineAccess<Name>,
  role: Name,
  logger: Logger,
): EngineConnection {
  const client = createEngineClient({
    identity,
    role,
    key: keys.get(role) as Buffer,
    members,
    open: memberOpener(tls),
    timer: systemTimer,
    monotonic: () => performance.now(),
    logger,
  })
  return { engine: createEngine(client), ready: client.ready, close: async () => client.close() }
}

interface ConnectorConfig {
  readonly databaseUrl: string
  readonly chainId: number
  readonly engine: EngineAccess<Role>
}

export async function engineConnector(
  { databaseUrl, chainId, engine }: ConnectorConfig,
  logger: Logger,
): Promise<ConnectEngine> {
  const db = createDb(createPool({ url: databaseUrl, connections: 1, name: 'engine identity' }))
  const identity = await checkSchema(db)
    .then(() => identityOf(db, chainId))
    .finally(() => db.destroy())
  return (role) => connectEngine(identity, engine, role, logger)
}
