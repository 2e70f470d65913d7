/** Relayed requests that a test accepts or changes. */
import { type Insertable, sql } from 'kysely'
import type { Tx } from '../../../db/client.ts'
import { findRelayOperation, RELAY_CHANNEL, type RelayOperation } from '../../../db/relay-operations.ts'
import type { RelayOperationsTable } from '../../../db/relay-schema.ts'
import type { RelayChanged } from '../../../domain/journal/accounts-row.ts'
import { type RelayChange, relayRequest, relayRow } from '../../../domain/relays/stored-relay.ts'

export type NewRelayOperation = Pick<
  Insertable<RelayOperationsTable>,
  | ('operation_id' | 'user_id' | 'kind' | 'session_key' | 'market_id' | 'minimum' | 'owner' | 'target')
  | ('gas' | 'nonce' | 'deadline' | 'data' | 'signature')
>

/** Stores an accepted request as QUEUED. The caller also holds the lock of the account, so that orders see a revocation at once. */
export async function insertRelayOperation(
  tx: Tx,
  operation: NewRelayOperation,
  at: number,
): Promise<{ readonly operation: RelayOperation; readonly row: RelayChanged }> {
  await tx
    .insertInto('relay_operations')
    .values({ ...operation, status: 'QUEUED', created_at: at, updated_at: at } as never)
    .execute()
  await sql`select pg_notify(${RELAY_CHANNEL}, ${operation.operation_id})`.execute(tx)
  const stored = (await findRelayOperation(tx, operation.operation_id)) as RelayOperation
  return { operation: stored, row: { ...relayRow(stored), request: relayRequest(stored) } }
}

/** Writes what differs. */
export async function changeRelay(
  tx: Tx,
  { operation_id }: Pick<RelayOperation, 'operation_id'>,
  values: RelayChange,
): Promise<RelayChanged> {
  const changed = await tx
    .updateTable('relay_operations')
    .set(values)
    .where('operation_id', '=', operation_id)
    .returningAll()
    .executeTakeFirstOrThrow()
  await sql`select pg_notify(${RELAY_CHANNEL}, ${operation_id})`.execute(tx)
  return relayRow(changed)
}

/** All operations of the signer with this nonce, the open ones and those that have ended. */
export const relaysOfNonce = (tx: Tx, owner: string, nonce: number): Promise<RelayOperation[]> =>
  tx
    .selectFrom('relay_operations')
    .selectAll()
    .where('owner', '=', owner)
    .where('nonce', '=', nonce)
    .orderBy('created_at')
    .execute()
