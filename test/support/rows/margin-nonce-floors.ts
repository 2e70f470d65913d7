/** Least nonces of adjustments. */
import type { Tx } from '../../../db/client.ts'
import type { MarginNonceAccount } from '../../../db/margin-nonce-floors.ts'

/** Stores the minimum as of `block`; 0 removes an account whose first invalidation has left the chain. */
export async function saveMarginNonceFloor(
  tx: Tx,
  { marketId, account }: MarginNonceAccount,
  minimum: bigint,
  block: number,
): Promise<void> {
  if (minimum === 0n) {
    await tx
      .deleteFrom('margin_nonce_floors')
      .where('market_id', '=', marketId)
      .where('account', '=', account)
      .execute()
    return
  }
  await tx
    .insertInto('margin_nonce_floors')
    .values({ market_id: marketId, account, minimum, block })
    .onConflict((conflict) => conflict.columns(['market_id', 'account']).doUpdateSet({ minimum, block }))
    .execute()
}
