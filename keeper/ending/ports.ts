/** Ports of a market's end. */
import type { Fence } from '../../db/fence.ts'
import type { MarketTerms } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { UsedReport } from '../../domain/prices/report.ts'
import type { Ending } from '../../domain/risk/ending.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import type { Address, FundingIndex, MarketId, Millis, Price, UserId } from '../../domain/units.ts'
import type { Verdict } from '../../domain/verdict.ts'
import type { RelayerLane, TransactionStatus } from '../relayer/ports.ts'

/** A market that has closed, as far as the indexer has followed the chain. */
export interface EndingMarket {
  readonly spec: MarketSpec
  readonly terms: MarketTerms
  readonly ending: Ending
  /** Null until the market has ended. */
  readonly finalPrice: Price | null
  /** After the last mined action. */
  readonly fundingIndex: FundingIndex
  readonly usedReport: UsedReport | null
  /** Its finalization is in the queue. */
  readonly isFinalizing: boolean
}

export interface OpenPosition {
  readonly userId: UserId
  readonly account: Address
  readonly position: Position
}

/** The newest transaction of a purpose. */
export interface SentTransaction {
  readonly status: TransactionStatus
  readonly signedAt: Millis
  /** The indexer has followed the chain beyond its block. */
  readonly isIngested: boolean
  readonly raw: `0x${string}`
  /** Null while it is in none. */
  readonly block: number | null
}

export interface Finalizations {
  /**
   * Queues the end of the market at the report in force. Returns its number in the queue; null if no action can be mined now, or if a finalization is
   * queued. `headTime`: block time of the chain's head.
   */
  finalize(
    marketId: MarketId,
    fence: Fence,
    headTime: Millis,
    report: OracleReport,
  ): Promise<Verdict<number | null, unknown>>
}

export interface EndingStore {
  /** Markets that are closed as of `blockTime` and have not ended, and those that have ended and have open positions. */
  markets(blockTime: Millis): Promise<readonly EndingMarket[]>
  /** The latest report of the market's final feed. */
  finalReport(marketId: MarketId): Promise<OracleReport | null>
  /** Reports of the market's own feed from `since` on that are still known, the earliest first. */
  ownReports(marketId: MarketId, since: Millis): Promise<readonly OracleReport[]>
  /** Keeps a report as evidence. */
  keep(fence: Fence, spec: MarketSpec, report: OracleReport): Promise<void>
  /** The proof of a report that was kept; `0x` if another account has submitted it. */
  proofOf(spec: MarketSpec, report: Pick<OracleReport, 'price' | 'observedAt'>): Promise<OracleReport>
  lastSent(lane: RelayerLane, purpose: string): Promise<SentTransaction | null>
  /** Open positions by account, from the account behind `after`. Null while the read model lacks rows of the market. */
  positions(marketId: MarketId, after: UserId, limit: number): Promise<readonly OpenPosition[] | null>
  /**
   * The same without accounts whose claim is on its way: reverted since `retryAfter`, or in a block that a fork may
   * still remove, after which the claim is sent again.
   */
  unclaimed(
    lane: RelayerLane,
    marketId: MarketId,
    page: { readonly after: UserId; readonly limit: number; readonly retryAfter: Millis },
  ): Promise<readonly OpenPosition[] | null>
}
