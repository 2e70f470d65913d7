/**
 * Messages of the live feed, with the field names on the wire. The exchange may add fields and kinds of
 * messages.
 */
import type { AdjustmentAttempt } from '../adjustments.ts'
import type { Amounts } from '../amount-fields.ts'
import type { Bookmark, Fill, Level, PlacedOrder, PublicPart, Transaction } from '../responses.ts'

/** State of a topic, or its changes. */
export interface TopicMessage<Data = unknown> {
  readonly type: 'snapshot' | 'update'
  readonly topic: string
  readonly seq: number
  readonly prev_seq: number
  /** Set only in a snapshot. */
  readonly epoch?: number
  readonly ts: string
  /** The batch that caused the change. */
  readonly batch_id?: number
  /** Set only in updates of `user`. */
  readonly read_after?: Bookmark
  readonly data: Data
}

/** The start of a subscription. */
export interface Subscribed {
  readonly seq: number
  readonly data: { readonly epoch: number; readonly resumed: boolean }
}

export interface Result<Data = unknown> {
  readonly op: string
  readonly read_after?: Bookmark
  readonly data: Data
}

export interface BookData {
  readonly market_id: number
  readonly symbol: string
  readonly long_levels: readonly Level[]
  readonly short_levels: readonly Level[]
}

/** Maximum fills in a snapshot of `trades` or `user`. */
export const SNAPSHOT_FILLS = 100

export interface TradesData {
  readonly market_id: number
  readonly symbol: string
  /** Parts with fills that no longer count. Apply them before `parts`. */
  readonly removed: readonly { readonly batch_id: number; readonly part: number }[]
  readonly parts: readonly PublicPart[]
}

/** Position fields that settlement decides. Fields that follow from prices are not part of the account. */
export type UserPosition = Amounts<'size' | 'pending_size' | 'entry_notional' | 'realized_pnl' | 'fees'> & {
  readonly market_id: number
  readonly symbol: string
  readonly side: 'LONG' | 'SHORT' | null
  readonly leverage: number
  readonly updated_at: string
}

export type UserBalance = Amounts<'available' | 'free' | 'reserved' | 'pending_withdrawals'>

/** A snapshot of `user` has every list; an update has only the changed lists. */
export interface UserData {
  readonly user_id: number
  readonly orders?: readonly PlacedOrder[]
  readonly fills?: readonly Fill[]
  readonly positions?: readonly UserPosition[]
  readonly balance?: UserBalance
  readonly transactions?: readonly Transaction[]
  readonly adjustments?: readonly AdjustmentAttempt[]
  /** Parts with fills that no longer count. Apply them before `fills`. */
  readonly removed_parts?: readonly {
    readonly market_id: number
    readonly batch_id: number
    readonly part: number
  }[]
  /** Ids of removed transactions. Apply them before `transactions`. */
  readonly removed_transactions?: readonly string[]
}
