/**
 * Defines topics: how a snapshot is read, and how a feed row changes it. `channels/` has one file per kind of topic.
 */
import type { Tx } from '../../db/client.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { ReadScope } from '../read-after/completeness.ts'
import type { FeedRow } from './feed-row.ts'

/** Specifications of markets, of which a channel reads what never changes: symbol, kind, tick and step. */
export interface ChannelSpecs {
  /** Specification of a loaded market. Markets in feed rows are always loaded. */
  of(marketId: number): MarketSpec
  /** Loads the markets of the rows. */
  load(rows: readonly { readonly market_id: number | null }[]): Promise<void>
}

export interface Channel {
  /** The topic's key in feed rows: see `marketHead` in `db/feed-schema.ts`. */
  readonly head: string
  readonly scope: ReadScope
  /** True if one update can replace several. */
  readonly isConflatable: boolean
  /** Changes that are delayed, so that they are sent together at most every `PACE_MS`. */
  readonly pacing: 'none' | 'outside batches' | 'all'
  /** True if its messages have the bookmark of the write that caused them. */
  readonly hasBookmark?: true
  /** Reads the state of the topic. The rows, and the seq of the feed, are of one snapshot. */
  snapshot(tx: Tx): Promise<object>
  /**
   * The combined change of consecutive rows; one row unless the topic is conflatable. Null for a summary topic, which
   * sends its whole state, read at most once per `SUMMARY_MS`.
   */
  readonly update: ((rows: readonly FeedRow[]) => object) | null
}
