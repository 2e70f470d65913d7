/** The block in which an owner revokes a session key. */
import type { Db } from '../../../db/client.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Address } from '../../../domain/units.ts'
import { mineBlock } from './mine-block.ts'

export function revokeKey(
  db: Db,
  { trader }: MarketSpec,
  { owner, key, timestamp }: { readonly owner: Address; readonly key: Address; readonly timestamp: number },
): Promise<void> {
  const change = { revoked_at: timestamp }
  return mineBlock(db, timestamp, { kind: 'session_key_updated', owner, key, change }, trader)
}
