/** The `client_requests` table: commands with a `client_request_id`, and the answers they got. */
import { sql } from 'kysely'
import type { Db } from './client.ts'

/** Stored answers to keep: not older than `before`, and at most the newest `most` per account. */
export interface Retention {
  readonly before: number
  readonly most: number
}

/** Rows per statement, so that pruning never locks many rows for long. */
const PRUNE_ROWS = 500

/** Deletes requests beyond the retention. Several processes may prune at once. Returns how many were deleted. */
export async function pruneRequests(db: Db, { before, most }: Retention): Promise<number> {
  const old = await pruneOld(db, before)
  const { rows } = await sql<{ user_id: number }>`
    select user_id from client_requests group by user_id having count(*) > ${most}
  `.execute(db)
  let excess = 0
  for (const { user_id } of rows) excess += await pruneExcess(db, user_id, most)
  return old + excess
}

/** Deletes an account's oldest requests. Requests of the same millisecond are deleted or kept together. */
async function pruneExcess(db: Db, userId: number, most: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from client_requests where user_id = ${userId} and created_at < (
      select created_at from client_requests where user_id = ${userId} order by created_at desc offset ${most - 1} limit 1
    )
  `.execute(db)
  return Number(numAffectedRows)
}

/** Deletes requests of all accounts that are older than `before`, the oldest first. */
async function pruneOld(db: Db, before: number): Promise<number> {
  for (let total = 0; ; ) {
    const { numAffectedRows = 0n } = await sql`
      delete from client_requests where ctid = any(array(
        select ctid from client_requests where created_at < ${before} order by created_at limit ${PRUNE_ROWS}
        for update skip locked
      ))
    `.execute(db)
    total += Number(numAffectedRows)
    if (numAffectedRows < PRUNE_ROWS) return total
  }
}
