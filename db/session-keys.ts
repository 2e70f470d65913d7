/** The `session_keys` table: what each key may sign for its owner, by the chain's events. */
import type { SessionKeyState } from '../domain/journal/accounts-row.ts'
import type { Tx } from './client.ts'

export interface SessionKeyId {
  readonly owner: string
  readonly key: string
}

/** Null where the chain has never named the key. */
export async function loadSessionKey(tx: Tx, { owner, key }: SessionKeyId): Promise<SessionKeyState | null> {
  const state = await tx
    .selectFrom('session_keys')
    .select(['permissions', 'registered_at', 'expires_at', 'revoked_at'])
    .where('owner', '=', owner)
    .where('key', '=', key)
    .executeTakeFirst()
  return state ?? null
}

/** Stores the key's state as of `block`; null removes a key whose first event has left the chain. */
export async function saveSessionKey(
  tx: Tx,
  { owner, key }: SessionKeyId,
  state: SessionKeyState | null,
  block: number,
): Promise<void> {
  if (state === null) {
    await tx.deleteFrom('session_keys').where('owner', '=', owner).where('key', '=', key).execute()
    return
  }
  await tx
    .insertInto('session_keys')
    .values({ owner, key, ...state, block })
    .onConflict((conflict) => conflict.columns(['owner', 'key']).doUpdateSet({ ...state, block }))
    .execute()
}
