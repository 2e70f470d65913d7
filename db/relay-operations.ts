/**
 * The `relay_operations` table. Each function that changes an operation returns its journal row, which the caller appends to `accounts` in
 * the same transaction; it holds the lock of that shard.
 */
import { type Insertable, type Selectable, sql } from 'kysely'
import type { RelayChanged, RelayRequest } from '../domain/journal/accounts-row.ts'
import type { RelayEffect, RelayFailure } from '../domain/relays/operation.ts'
import type { Db, Tx } from './client.ts'
import type { RelayOperationsTable } from './relay-schema.ts'
import { constant } from './values.ts'

export type RelayOperation = Selectable<RelayOperationsTable>

/** Notified with the operation's id when it is accepted, and when its status has changed. */
export const RELAY_CHANNEL = 'relay_operations'

export const relayEffectOf = ({
  kind,
  session_key,
  market_id,
  minimum,
}: Pick<RelayOperation, 'kind' | 'session_key' | 'market_id' | 'minimum'>): RelayEffect =>
  kind === 'invalidate_margin_nonces'
    ? { kind, marketId: market_id as number, minimum: minimum as bigint }
    : { kind, sessionKey: session_key as string }

const changeOf = (operation: RelayOperation): RelayChanged => ({
  kind: 'relay_changed',
  operation_id: operation.operation_id,
  user_id: operation.user_id,
  operation: operation.kind,
  session_key: operation.session_key,
  market_id: operation.market_id,
  status: operation.status,
  failure: operation.failure,
  tx_hash: operation.tx_hash,
  at: operation.updated_at,
  ...(operation.reason !== null && { reason: operation.reason }),
  ...(operation.relayer !== null && { relayer: operation.relayer }),
  ...(operation.relayer_nonce !== null && { relayer_nonce: operation.relayer_nonce }),
  ...(operation.block !== null && { block: operation.block }),
})

const requestOf = (operation: RelayOperation): RelayRequest => ({
  owner: operation.owner,
  target: operation.target,
  gas: operation.gas,
  nonce: operation.nonce,
  deadline: operation.deadline,
  data: operation.data,
  signature: operation.signature,
  minimum: operation.minimum === null ? null : operation.minimum.toString(),
})

export async function findRelayOperation(db: Db | Tx, operationId: string): Promise<RelayOperation | null> {
  const found = await db
    .selectFrom('relay_operations')
    .selectAll()
    .where('operation_id', '=', operationId)
    .executeTakeFirst()
  return found ?? null
}

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
  return { operation: stored, row: { ...changeOf(stored), request: requestOf(stored) } }
}

async function change(
  tx: Tx,
  { operation_id }: Pick<RelayOperation, 'operation_id'>,
  values: Partial<RelayOperation> & Pick<RelayOperation, 'status' | 'updated_at'>,
): Promise<RelayChanged> {
  const changed = await tx
    .updateTable('relay_operations')
    .set(values)
    .where('operation_id', '=', operation_id)
    .returningAll()
    .executeTakeFirstOrThrow()
  await sql`select pg_notify(${RELAY_CHANNEL}, ${operation_id})`.execute(tx)
  return changeOf(changed)
}

export interface SignedFor {
  readonly relayer: string
  readonly nonce: number
  readonly hash: string
}

/** A transaction for the operation is stored. */
export const markRelaying = (
  tx: Tx,
  operation: RelayOperation,
  { relayer, nonce, hash }: SignedFor,
  at: number,
): Promise<RelayChanged> =>
  change(tx, operation, {
    ...{ status: 'RELAYING', relayer, relayer_nonce: nonce, tx_hash: hash, updated_at: at },
  })

/** Nothing was executed with the relayer's nonce that the operation was signed with: it is signed again. */
export const requeueRelay = (tx: Tx, operation: RelayOperation, at: number): Promise<RelayChanged> =>
  change(tx, operation, {
    ...{ status: 'QUEUED', relayer: null, relayer_nonce: null, tx_hash: null, updated_at: at },
  })

export interface RelayEnd {
  readonly failure: RelayFailure
  readonly reason: string
}

/** The request was not executed and never will be by the exchange. */
export const failRelay = (
  tx: Tx,
  operation: RelayOperation,
  { failure, reason }: RelayEnd,
  at: number,
): Promise<RelayChanged> => change(tx, operation, { status: 'FAILED', failure, reason, updated_at: at })

export interface ExecutedIn {
  readonly block: number
  readonly tx_hash: string
  readonly at: number
}

/** The chain has executed the operation's nonce in this block. `end`: the state is not the requested one; null: it is. */
export const endRelay = (
  tx: Tx,
  operation: RelayOperation,
  { block, tx_hash, at }: ExecutedIn,
  end: RelayEnd | null,
): Promise<RelayChanged> =>
  end === null
    ? change(tx, operation, {
        ...{ status: 'CONFIRMED', failure: null, reason: null, tx_hash, block, updated_at: at },
      })
    : change(tx, operation, { status: 'FAILED', ...end, block, updated_at: at })

/** The block that ended the operation has left the chain: it waits again, for its own transaction if one was signed. */
export const reopenRelay = (tx: Tx, operation: RelayOperation, at: number): Promise<RelayChanged> =>
  change(tx, operation, {
    status: operation.relayer_nonce === null ? 'QUEUED' : 'RELAYING',
    ...{ failure: null, reason: null, block: null, updated_at: at },
  })

/** All operations of the signer with this nonce, the open ones and those that have ended. */
export const relaysOfNonce = (tx: Tx, owner: string, nonce: number): Promise<RelayOperation[]> =>
  tx
    .selectFrom('relay_operations')
    .selectAll()
    .where('owner', '=', owner)
    .where('nonce', '=', nonce)
    .orderBy('created_at')
    .execute()

/** The owner's operations that the chain may still execute, by nonce; at most `MOST_OPEN_RELAYS` are open. */
export const openRelays = (db: Db | Tx, owner: string): Promise<RelayOperation[]> =>
  db
    .selectFrom('relay_operations')
    .selectAll()
    .where('owner', '=', owner)
    .where('status', 'in', [constant('QUEUED'), constant('RELAYING')])
    .orderBy('nonce')
    .execute()

/** Locks the operation until the transaction ends, and returns its present state. */
export const lockRelay = (
  tx: Tx,
  { operation_id }: Pick<RelayOperation, 'operation_id'>,
): Promise<RelayOperation> =>
  tx
    .selectFrom('relay_operations')
    .selectAll()
    .where('operation_id', '=', operation_id)
    .forUpdate()
    .executeTakeFirstOrThrow()
