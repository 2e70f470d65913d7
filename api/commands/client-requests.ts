/** Commands with a `client_request_id`: a repeated command returns its stored answer and is not executed again. */
import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { type ClientRequest, reusedRequest } from './command.ts'

/** Adds the field names of all levels. */
function collectNames(value: unknown, names: Set<string>): Set<string> {
  if (typeof value !== 'object' || value === null) return names
  if (!Array.isArray(value)) for (const name of Object.keys(value)) names.add(name)
  for (const part of Object.values(value)) collectNames(part, names)
  return names
}

/** Equal values have equal texts, whatever the order of their fields. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, [...collectNames(value, new Set())].sort())

/** The digest covers the endpoint, so that one id cannot be reused for another kind of command. */
export const requestOf = (endpoint: string, body: { readonly client_request_id: string }): ClientRequest => ({
  id: body.client_request_id,
  digest: createHash('sha256')
    .update(`${endpoint} ${canonical(body)}`)
    .digest(),
})

/**
 * The stored answer of a command that was executed before, else null. This read avoids rejecting a repeated command by checks whose
 * result changes with time; the command's transaction reads the stored answer again under its locks.
 */
export async function storedAnswer(db: Db, userId: number, request: ClientRequest): Promise<string | null> {
  const stored = await db
    .selectFrom('client_requests')
    .select(['digest', 'answer'])
    .where('user_id', '=', userId)
    .where('client_request_id', '=', request.id)
    .executeTakeFirst()
  if (stored === undefined) return null
  if (!stored.digest.equals(request.digest)) throw reusedRequest(request)
  return stored.answer
}

const PRUNE_ROWS = 500

/** Stored answers to retain: those created at `before` or later, and at most the newest `most` of each account. */
export interface Retention {
  readonly before: number
  readonly most: number
}

/** Deletes stored answers beyond the retention; several processes may run it concurrently. Returns the number of deleted rows. */
export async function pruneRequests(db: Db, { before, most }: Retention): Promise<number> {
  const expired = await pruneExpired(db, before)
  const { rows } = await sql<{ user_id: number }>`
    select user_id from client_requests group by user_id having count(*) > ${most}
  `.execute(db)
  let excess = 0
  for (const { user_id } of rows) excess += await pruneBeyond(db, user_id, most)
  return expired + excess
}

/** Rows with equal `created_at` are deleted together or retained together. */
async function pruneBeyond(db: Db, userId: number, most: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from client_requests where user_id = ${userId} and created_at < (
      select created_at from client_requests where user_id = ${userId} order by created_at desc offset ${most - 1} limit 1
    )
  `.execute(db)
  return Number(numAffectedRows)
}

/** Deletes the oldest rows first, in batches. */
async function pruneExpired(db: Db, before: number): Promise<number> {
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
