/** Positions on which a job may decide. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { matchedPosition } from '../../db/positions.ts'
import type { Address } from '../../domain/units.ts'
import type { Positions } from './legal-deleveraging.ts'
import { touchedSql } from './rows/actions.ts'

/** The matched positions of the market, without those that a queued action may change. */
export async function untouchedPositions(db: Db | Tx, marketId: number): Promise<Positions> {
  const rows = await db
    .selectFrom('positions')
    .innerJoin('users', 'users.user_id', 'positions.user_id')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('matched_size', '<>', 0)
    .orderBy('positions.user_id', 'desc')
    .execute()
  const pending = await sql<{ touched: number[] }>`${sql.raw(touchedSql(`${marketId}`))}`.execute(db)
  const touched = new Set(pending.rows.flatMap((row) => row.touched))
  const untouched = rows.filter(({ user_id }) => !touched.has(user_id))
  return new Map(untouched.map((row) => [row.address as Address, matchedPosition(row)]))
}
