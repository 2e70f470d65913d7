/** Finds the market of an order by its hash, from a cache of recent orders or else from the database. */
import type { Db } from '../../db/client.ts'

export interface OrderMarketIndex {
  record(hash: string, marketId: number): void
  /** Whether the order was recorded by this process a while ago at most. */
  isRecent(hash: string): boolean
  /** Hashes without an order are omitted. */
  marketsOf(hashes: readonly string[]): Promise<ReadonlyMap<string, number>>
}

/** Orders in the cache; the oldest are evicted. */
const SIZE = 100_000

export function createOrderMarketIndex(db: Db): OrderMarketIndex {
  const recent = new Map<string, number>()
  return {
    record(hash, marketId) {
      if (recent.size >= SIZE) recent.delete(recent.keys().next().value as string)
      recent.set(hash, marketId)
    },
    isRecent: (hash) => recent.has(hash),
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
