/** Commands with a `client_request_id`: a repeated command returns its stored answer and is not executed again. */
import { createHash } from 'node:crypto'
import type { Db } from '../../db/client.ts'
import { type ClientRequest, reusedRequest, type StoredRequest } from './command.ts'

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
 * Results of an earlier execution of the command, or null. Finds requests that the engine no longer has, and precedes
 * checks whose result changes with time.
 */
export async function storedRequest(
  db: Db,
  userId: number,
  request: ClientRequest,
): Promise<StoredRequest | null> {
  const stored = await db
    .selectFrom('client_requests')
    .select(['digest', 'answer'])
    .where('user_id', '=', userId)
    .where('client_request_id', '=', request.id)
    .executeTakeFirst()
  if (stored === undefined) return null
  if (!stored.digest.equals(request.digest)) throw reusedRequest(request)
  return JSON.parse(stored.answer)
}
