/** Commands that their trader has named, so that one sent again is answered and not done again. */
import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { type ClientRequest, reused } from './command.ts'

/** Adds the names of all fields, however deep. */
function collectNames(value: unknown, names: Set<string>): Set<string> {
  if (typeof value !== 'object' || value === null) return names
  if (!Array.isArray(value)) for (const name of Object.keys(value)) names.add(name)
  for (const part of Object.values(value)) collectNames(part, names)
  return names
}

/** The same value gives the same text, in whatever order its fields came. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, [...collectNames(value, new Set())].sort())

/** `endpoint` is part of it: an id names one command of the account, whatever it does. */
export const requestOf = (endpoint: string, body: { readonly client_request_id: string }): ClientRequest => ({
  id: body.client_request_id,
  digest: createHash('sha256')
    .update(`${endpoint} ${canonical(body)}`)
    .digest(),
})

/**
 * What the command was answered, if it has been done: a first look, before checks that time could change. The look that counts is the
 * one in the command's transaction.
 */
export async function answerKept(db: Db, userId: number, request: ClientRequest): Promise<string | null> {
  const kept = await db
    .selectFrom('client_requests')
    .select(['digest', 'answer'])
    .where('user_id', '=', userId)
    .where('client_request_id', '=', request.id)
    .executeTakeFirst()
  if (kept === undefined) return null
  if (!kept.digest.equals(request.digest)) throw reused(request)
  return kept.answer
}

const SWEEP_ROWS = 500

/** What is kept: answers that are not older than `before`, and of each account the newest `most` at most. */
export interface Retention {
  readonly before: number
  readonly most: number
}

/** Forgets what is kept no longer. Several processes may do it at once. Returns how many. */
export async function sweepRequests(db: Db, { before, most }: Retention): Promise<number> {
  const old = await forgetOld(db, before)
  const { rows } = await sql<{ user_id: number }>`
    select user_id from client_requests group by user_id having count(*) > ${most}
  `.execute(db)
  let many = 0
  for (const { user_id } of rows) many += await forgetBeyond(db, user_id, most)
  return old + many
}

/** Those of one moment go together or stay together. */
async function forgetBeyond(db: Db, userId: number, most: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from client_requests where user_id = ${userId} and created_at < (
      select created_at from client_requests where user_id = ${userId} order by created_at desc offset ${most - 1} limit 1
    )
  `.execute(db)
  return Number(numAffectedRows)
}

/** The oldest first. */
async function forgetOld(db: Db, before: number): Promise<number> {
  for (let total = 0; ; ) {
    const { numAffectedRows = 0n } = await sql`
      delete from client_requests where ctid = any(array(
        select ctid from client_requests where created_at < ${before} order by created_at limit ${SWEEP_ROWS}
        for update skip locked
      ))
    `.execute(db)
    total += Number(numAffectedRows)
    if (numAffectedRows < SWEEP_ROWS) return total
  }
}
