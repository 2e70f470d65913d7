/**
 * Watches the chain for freeze requests of all markets with one request per pass. It reads the chain itself: it works while the indexer
 * does not.
 */
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Address } from '../../domain/units.ts'
import type { Chain } from '../ports.ts'

/** Blocks that are searched again, because a fork may have replaced them. */
const OVERLAP = 8
/** After a longer gap every market is read instead: nodes bound the range of a search. */
const MAX_BLOCKS = 500

export type FreezeSearch = readonly MarketSpec[] | 'unknown'

/** Returns a search: the markets with requests in new blocks, voided ones included; `unknown` at first and after a gap. */
export function createFreezeWatch(chain: Pick<Chain, 'head' | 'freezeRequests'>) {
  let searchedTo: number | null = null
  return async (markets: readonly MarketSpec[]): Promise<FreezeSearch> => {
    const { block } = await chain.head()
    const from = searchedTo === null ? null : Math.max(0, Math.min(searchedTo, block) + 1 - OVERLAP)
    if (from === null || block - from > MAX_BLOCKS) {
      searchedTo = block
      return 'unknown'
    }
    const traders = markets.map(({ trader }) => trader)
    const requested: ReadonlySet<Address> =
      traders.length === 0 ? new Set() : await chain.freezeRequests(traders, from, block)
    searchedTo = block
    return markets.filter(({ trader }) => requested.has(trader))
  }
}
