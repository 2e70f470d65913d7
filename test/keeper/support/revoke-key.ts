/** The block in which an owner revokes a session key, applied as the indexer applies it. */
import type { Db } from '../../../db/client.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Address } from '../../../domain/units.ts'
import { applyFacts } from '../../../indexer/ingest/apply.ts'
import { lockFacts } from '../../../indexer/ingest/fact-locks.ts'

export async function revokeKey(
  db: Db,
  { trader }: MarketSpec,
  { owner, key, timestamp }: { readonly owner: Address; readonly key: Address; readonly timestamp: number },
): Promise<void> {
  const block = { number: 1, hash: '0x1', parentHash: '0x', timestamp, transactions: [] }
  const at = { block: 1, blockHash: '0x1', logIndex: 0, txHash: '0x' }
  const log = { ...at, address: trader, topics: [], data: '0x' }
  const fact = { kind: 'session_key_updated' as const, owner, key, change: { revoked_at: timestamp } }
  const chain = {
    position: (): never => {
      throw new Error('a revocation reads no position')
    },
  }
  const facts = [{ log, fact }]
  await db
    .transaction()
    .execute(async (tx) => applyFacts(tx, block, facts, { chain, locked: await lockFacts(tx, facts) }))
}
