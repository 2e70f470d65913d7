/** Session keys. */
import type { Tx } from '../../../db/client.ts'
import type { SessionKeyId } from '../../../db/session-keys.ts'
import type { SessionKeyState } from '../../../domain/journal/accounts-row.ts'

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
