/** The market of an order, from its hash alone: orders are mostly cancelled where they were placed, so the last ones are remembered. */
import type { Db } from '../../db/client.ts'

export interface HashIndex {
  remember(hash: string, marketId: number): void
  /** Hashes of no order are left out. */
  marketsOf(hashes: readonly string[]): Promise<ReadonlyMap<string, number>>
}

const SIZE = 100_000

export function createHashIndex(db: Db): HashIndex {
  const recent = new Map<string, number>()
  return {
    remember(hash, marketId) {
      if (recent.size >= SIZE) recent.delete(recent.keys().next().value as string)
      recent.set(hash, marketId)
    },
    async marketsOf(hashes) {
      const found = new Map<string, number>()
      const unknown: string[] = []
      for (const hash of hashes) {
        const known = recent.get(hash)
        if (known === undefined) unknown.push(hash)
        else found.set(hash, known)
      }
      if (unknown.length === 0) return found
      const rows = await db
        .selectFrom('orders')
        .select(['hash', 'market_id'])
        .where('hash', 'in', unknown)
        .execute()
      for (const { hash, market_id } of rows) found.set(hash, market_id)
      return found
    },
  }
}
