/** Attempts of adjustments that a test prepares or changes. */
import { sql } from 'kysely'
import { ADJUSTMENT_ENDS_CHANNEL, ADJUSTMENTS_CHANNEL, type AttemptRow } from '../../../db/adjustments.ts'
import type { Tx } from '../../../db/client.ts'
import type { AdjustmentChanged } from '../../../domain/journal/adjustment-row.ts'
import { type AdjustmentKind, isInFlight } from '../../../domain/positions/adjustment-attempt.ts'
import { type SignedAdjustment, toStored } from '../../../domain/positions/stored-adjustment.ts'
import {
  type AttemptChange,
  attemptRequest,
  attemptRow,
  changedAttempt,
} from '../../../domain/positions/stored-attempt.ts'
import { changeReserved } from './accounts.ts'

/** SQL of the accounts with an adjustment in flight in the market, as user ids. `marketId`: an SQL expression. */
export const adjustingSql = (marketId: string): string =>
  `select user_id from adjustment_attempts where market_id = ${marketId} and status in ('PREPARED', 'SIGNED', 'SUBMITTED')`

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
