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
