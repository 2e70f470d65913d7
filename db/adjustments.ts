/** The tables `adjustment_attempts` and `used_margin_nonces`. The engine writes them. */
import { type Selectable, sql } from 'kysely'
import { IN_FLIGHT } from '../domain/positions/adjustment-attempt.ts'
import type { AdjustmentAttemptsTable } from './adjustment-schema.ts'
import type { Db, Tx } from './client.ts'
import { constant } from './values.ts'

export type AttemptRow = Selectable<AdjustmentAttemptsTable>

/** Notified with the id of an attempt when it is prepared. */
export const ADJUSTMENTS_CHANNEL = 'adjustments'
/** Notified with the id of an attempt when it has ended. */
export const ADJUSTMENT_ENDS_CHANNEL = 'adjustment_ends'

const OPEN = sql<boolean>`status in (${sql.join(IN_FLIGHT.map(constant))})`

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
