/** The `forwarder_nonces` table: the next nonce of each signer of forward requests, by the forwarder's events. */
import type { Db, Tx } from './client.ts'

/** 0 where the forwarder has never executed a request of the signer. */
export async function loadForwarderNonce(db: Db | Tx, signer: string): Promise<number> {
  const row = await db
    .selectFrom('forwarder_nonces')
    .select('next_nonce')
    .where('signer', '=', signer)
    .executeTakeFirst()
  return row?.next_nonce ?? 0
}

/** Stores the signer's next nonce as of `block`; 0 removes a signer whose first execution has left the chain. */
export async function saveForwarderNonce(
  tx: Tx,
  signer: string,
  next_nonce: number,
  block: number,
): Promise<void> {
  if (next_nonce === 0) {
    await tx.deleteFrom('forwarder_nonces').where('signer', '=', signer).execute()
    return
  }
  await tx
    .insertInto('forwarder_nonces')
    .values({ signer, next_nonce, block })
    .onConflict((conflict) => conflict.column('signer').doUpdateSet({ next_nonce, block }))
    .execute()
}
