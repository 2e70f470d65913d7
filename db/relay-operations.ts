/** The `relay_operations` table. The engine writes it. */
import type { Selectable } from 'kysely'
import type { Db, Tx } from './client.ts'
import type { RelayOperationsTable } from './relay-schema.ts'
import { constant } from './values.ts'

export type RelayOperation = Selectable<RelayOperationsTable>

/** Notified with the operation's id when it is accepted, and when its status has changed. */
export const RELAY_CHANNEL = 'relay_operations'

export async function findRelayOperation(db: Db | Tx, operationId: string): Promise<RelayOperation | null> {
  const found = await db
    .selectFrom('relay_operations')
    .selectAll()
    .where('operation_id', '=', operationId)
    .executeTakeFirst()
  return found ?? null
}

/** The owner's operations that the chain may still execute, by nonce; at most `MOST_OPEN_RELAYS` are open. */
export const openRelays = (db: Db | Tx, owner: string): Promise<RelayOperation[]> =>
  db
    .selectFrom('relay_operations')
    .selectAll()
    .where('owner', '=', owner)
    .where('status', 'in', [constant('QUEUED'), constant('RELAYING')])
    .orderBy('nonce')
    .execute()
