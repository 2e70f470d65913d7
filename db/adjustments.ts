/**
 * The tables `adjustment_attempts` and `used_margin_nonces`. A change of an attempt is one statement, with its row of the market's journal
 * in the same transaction; the caller holds the lock of the market's shard and, if the reservation changes, of the account.
 */
import { type Selectable, sql } from 'kysely'
import type { AdjustmentChanged } from '../domain/journal/adjustment-row.ts'
import { type AdjustmentKind, IN_FLIGHT, isInFlight } from '../domain/positions/adjustment-attempt.ts'
import { type SignedAdjustment, toStored } from '../domain/positions/stored-adjustment.ts'
import {
  type AttemptChange,
  attemptRequest,
  attemptRow,
  changedAttempt,
} from '../domain/positions/stored-attempt.ts'
import { changeReserved } from './accounts.ts'
import type { AdjustmentAttemptsTable } from './adjustment-schema.ts'
import type { Db, Tx } from './client.ts'
import { constant } from './values.ts'

export type AttemptRow = Selectable<AdjustmentAttemptsTable>

/** Notified with the id of an attempt when it is prepared. */
export const ADJUSTMENTS_CHANNEL = 'adjustments'
/** Notified with the id of an attempt when it has ended. */
export const ADJUSTMENT_ENDS_CHANNEL = 'adjustment_ends'

const OPEN = sql<boolean>`status in (${sql.join(IN_FLIGHT.map(constant))})`

// ---------------------------------------------------------------------- reads

/** SQL of the accounts with an adjustment in flight in the market, as user ids. `marketId`: an SQL expression. */
export const adjustingSql = (marketId: string): string =>
  `select user_id from adjustment_attempts where market_id = ${marketId} and status in ('PREPARED', 'SIGNED', 'SUBMITTED')`

export const findByDigest = (
  db: Db | Tx,
  marketId: number,
  digest: string,
): Promise<AttemptRow | undefined> =>
  db
    .selectFrom('adjustment_attempts')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('digest', '=', digest)
    .executeTakeFirst()

export const loadAttempt = (db: Db | Tx, adjustmentId: string): Promise<AttemptRow | undefined> =>
  db
    .selectFrom('adjustment_attempts')
    .selectAll()
    .where('adjustment_id', '=', adjustmentId)
    .executeTakeFirst()

/** The attempts in flight of all markets that were created before, oldest first. */
export const attemptsInFlight = (db: Db, limit: number, before: number): Promise<AttemptRow[]> =>
  db
    .selectFrom('adjustment_attempts')
    .selectAll()
    .where(OPEN)
    .where('created_at', '<', before)
    .orderBy('created_at')
    .orderBy('adjustment_id')
    .limit(limit)
    .execute()

// ---------------------------------------------------------------------- changes

export interface NewAttempt {
  readonly adjustmentId: string
  readonly marketId: number
  readonly userId: number
  readonly digest: string
  readonly kind: AdjustmentKind
  readonly nonce: number
  readonly signed: SignedAdjustment
  readonly hold: bigint
  readonly pays: bigint
  readonly cancelledOrders: number
  /** The place of its row in the market's journal. */
  readonly seq: number
  readonly at: number
}

/** Inserts a prepared attempt and reserves its amount. Returns its row for the journal. Notifies. */
export async function insertAttempt(tx: Tx, of: NewAttempt): Promise<AdjustmentChanged> {
  const attempt = {
    ...{ adjustment_id: of.adjustmentId, market_id: of.marketId, user_id: of.userId, digest: of.digest },
    ...{ kind: of.kind, nonce: of.nonce, status: 'PREPARED' as const, hold: of.hold, held: of.hold },
    ...{
      pays: of.pays,
      cancelled_orders: of.cancelledOrders,
      as_of: null,
      relayer: null,
      relayer_nonce: null,
    },
    ...{ tx_hash: null, moved: null, max_removable: null, gas_used: null, failure_kind: null },
    ...{ failure_reason: null, seq: of.seq, created_at: of.at, updated_at: of.at },
  }
  const request = toStored(of.signed)
  await tx
    .insertInto('adjustment_attempts')
    .values({ ...attempt, request: JSON.stringify(request) })
    .execute()
  await changeReserved(tx, new Map([[of.userId, of.hold]]))
  await sql`select pg_notify(${ADJUSTMENTS_CHANNEL}, ${of.adjustmentId})`.execute(tx)
  const prepared = { ...attempt, request }
  return { ...attemptRow(prepared, of.hold), request: attemptRequest(prepared) }
}

/**
 * Writes the change of a locked attempt with its reservation. `seq`: the place of its row in the journal. Notifies when the attempt has
 * ended.
 */
export async function changeAttempt(
  tx: Tx,
  attempt: AttemptRow,
  change: AttemptChange,
  { seq, at }: { readonly seq: number; readonly at: number },
): Promise<AdjustmentChanged> {
  const { attempt: after, row } = changedAttempt(attempt, change, at)
  await tx
    .updateTable('adjustment_attempts')
    .set({ ...change, held: after.held, seq, updated_at: at })
    .where('adjustment_id', '=', attempt.adjustment_id)
    .execute()
  await changeReserved(tx, new Map([[attempt.user_id, after.held - attempt.held]]))
  if (!isInFlight(change.status))
    await sql`select pg_notify(${ADJUSTMENT_ENDS_CHANNEL}, ${attempt.adjustment_id})`.execute(tx)
  return row
}
