/** Ports of a market's ranking. */
import type { Fence } from '../../db/fence.ts'
import type { MarketTerms } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { FundingState } from '../../domain/prices/funding-state.ts'
import type { DeleveragingRanks } from '../../domain/risk/rank-lights.ts'
import type { MarketId, Millis, Price } from '../../domain/units.ts'

/** Prices and terms of a market at one time. */
export interface RankBasis {
  readonly now: Millis
  /** Null without a report of the oracle. */
  readonly oracle: Price | null
  readonly funding: FundingState
  readonly terms: MarketTerms
}

export interface RankStore {
  load(spec: MarketSpec): Promise<RankBasis>
  /** A sample of the market's matched positions. */
  positions(marketId: MarketId): Promise<readonly Position[]>
  save(marketId: MarketId, fence: Fence, ranks: DeleveragingRanks, at: Millis): Promise<void>
}
