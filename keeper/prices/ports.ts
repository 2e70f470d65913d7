/** Ports of the price publisher. */
import type { Fence } from '../../db/fence.ts'
import type { FeedAbsence, FeedKey, FeedReport } from '../../db/oracle-reports.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { TradingCalendar } from '../../domain/market/trading-calendar.ts'
import type { Reading } from '../../domain/prices/aggregate.ts'
import type { AbsenceReason } from '../../domain/prices/feed.ts'
import type { PublicationRules } from '../../domain/prices/publication.ts'
import type { FeedId } from '../../domain/prices/report-hash.ts'
import type { SigningRefusal } from '../../domain/prices/signing.ts'
import type { Closing } from '../../domain/risk/ending.ts'
import type { MarketId, Millis } from '../../domain/units.ts'
import type { SigningRequest } from '../../service/report-key.ts'
import type { PriceSource } from '../ports.ts'

// ---------------------------------------------------------------------- feeds

/** A configured feed. */
export interface FeedSetup extends FeedKey {
  readonly feedId: FeedId
  readonly minimum: number
  readonly maxSpread: bigint
  readonly maxAhead: Millis
  readonly publication: PublicationRules
  readonly sources: readonly PriceSource[]
  /** Whether the report is a round of the first source, an aggregator, which needs no signatures. */
  readonly isRound: boolean
}

/** A listed market, as far as its feeds depend on it. */
export interface FeedMarket {
  readonly spec: MarketSpec
  /** Null if the underlying trades around the clock. */
  readonly calendar: TradingCalendar | null
  /** A final price is one of after the close. */
  readonly closing: Closing
  /** Nothing uses its prices any more. */
  readonly isEnded: boolean
}

// ---------------------------------------------------------------------- signers

/** Why a signature of a signer does not count. Closed list; the refusals are the signer's own. */
export type SignerFault =
  | SigningRefusal
  | 'LATE'
  | 'UNREACHABLE'
  | 'NO_ANSWER'
  | 'WRONG_SIGNATURE'
  /** The oracle does not accept its signatures for this feed. */
  | 'NOT_A_SIGNER'
  | 'DUPLICATE'

export type SigningOutcome =
  | { readonly proof: `0x${string}` }
  | { readonly proof: null; readonly reason: Extract<AbsenceReason, 'NO_QUORUM' | 'MOVE_TOO_LARGE'> }

export interface Quorum {
  /** One outcome per request, after the deadline at the latest. */
  collect(requests: readonly SigningRequest[]): Promise<readonly SigningOutcome[]>
}

// ---------------------------------------------------------------------- the database

export interface FeedState {
  /** The latest report; null if there is none. */
  readonly last: Reading | null
  readonly reason: AbsenceReason | null
}

export interface Publication {
  readonly reports: readonly FeedReport[]
  readonly absences: readonly FeedAbsence[]
}

export interface PriceStore {
  markets(): Promise<ReadonlyMap<MarketId, FeedMarket>>
  states(): Promise<ReadonlyMap<string, FeedState>>
  /**
   * Stores all reports and absences in one transaction under the lease, except those of markets whose index another program publishes:
   * returns the latest report of each of these.
   */
  publish(fence: Fence, publication: Publication): Promise<ReadonlyMap<MarketId, Reading | null>>
}

/** Names a feed in maps. */
export const keyOf = ({ marketId, feed }: FeedKey): string => `${marketId}:${feed}`

// ---------------------------------------------------------------------- metrics

export interface PriceMetrics {
  /** Reports stored together, and the time from their observation until they were usable. */
  published(reports: number, seconds: number): void
  /** Feeds that have no new report, by reason. */
  absent(counts: ReadonlyMap<AbsenceReason, number>): void
  dropped(source: string, reason: string): void
  signerFault(signer: string, fault: SignerFault): void
}
