/** Nonces of the forwarder. */
import type { Tx } from '../../../db/client.ts'

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
