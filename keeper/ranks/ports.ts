/** What the ranking of a market writes. */
import type { Fence } from '../../db/fence.ts'
import type { DeleveragingRanks } from '../../domain/risk/rank-lights.ts'
import type { MarketId, Millis } from '../../domain/units.ts'

export interface RankStore {
  save(marketId: MarketId, fence: Fence, ranks: DeleveragingRanks, at: Millis): Promise<void>
}
