/** The `margin_nonce_floors` table: below which nonce an account's adjustments in a market are invalid, by the contract's events. */
import type { Db, Tx } from './client.ts'

export interface MarginNonceAccount {
  readonly marketId: number
  readonly account: string
}

/** 0 where the account has never invalidated any. */
export async function loadMarginNonceFloor(
  db: Db | Tx,
  { marketId, account }: MarginNonceAccount,
): Promise<bigint> {
  const row = await db
    .selectFrom('margin_nonce_floors')
    .select('minimum')
    .where('market_id', '=', marketId)
    .where('account', '=', account)
    .executeTakeFirst()
  return row?.minimum ?? 0n
}
