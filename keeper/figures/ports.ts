/** Ports of a market's figures: their stored sources and their metrics. */
import type { FundingRate } from '../../domain/prices/funding.ts'
import type { MarketId, Millis, Price, Quote, Steps } from '../../domain/units.ts'

export interface StoredFigures {
  readonly now: Millis
  /** Price of the latest report; null before the first. */
  readonly oracle: Price | null
  readonly liquidations: {
    readonly running: number
    /** Running liquidations whose last single action was dropped or had no effect. */
    readonly failing: number
    readonly oldestAt: Millis | null
  }
  /** Null if the market has none, and while the read model is being filled. */
  readonly backstop: { readonly cap: Quote; readonly size: Steps; readonly free: Quote } | null
  /** Sum of the reported deficits of a market that has ended. */
  readonly deficit: Quote
  /** After the last queued action. */
  readonly funding: FundingRate
}

export interface FigureStore {
  load(marketId: MarketId): Promise<StoredFigures>
}

/** Amounts are USDM, times Unix seconds. */
export interface MarketFigures {
  readonly liquidationsRunning: number
  readonly liquidationsFailing: number
  /** Age of the liquidation that has run longest, seconds; 0 if none runs. */
  readonly oldestLiquidation: number
  /** Notional of the backstop's position divided by its cap; null without a backstop or a price. */
  readonly backstopUse: number | null
  readonly backstopBalance: number | null
  readonly deficit: number
  /** The rate in force, a fraction of the oracle price per hour; null while no rate is valid. */
  readonly fundingRate: number | null
  /** Time of the last update and end of its rate; null for a market without funding, and before the first update. */
  readonly fundingUpdatedAt: number | null
  readonly fundingValidUntil: number | null
}

export interface FigureMetrics {
  /** Null: this process does not own the market any more. */
  figures(marketId: MarketId, figures: MarketFigures | null): void
}
