/** The feed of the read model: what each chunk of the projector changed for readers, as the live feed sends it. */

/** One row: where the feed stands. It is missing until the first chunk, and after a crash of the database. */
export interface FeedStateTable {
  id: 1
  /** Milliseconds at which the epoch began: a projection was filled, or the database has lost rows of the feed. */
  epoch: number
  /** Rows up to this seq are of earlier epochs. */
  first_seq: number
  seq: number
}

/** The topic's last row and its previous row. See `feedTopics`. */
export interface FeedHeadsTable {
  topic: string
  seq: number
  prev_seq: number
}

/** Changes of one chunk. Rows are numbered in the order in which readers see them. */
export interface FeedTable {
  seq: number
  at: number
  /** The journal up to which the chunk projected. */
  shard: string
  shard_epoch: number
  shard_seq: number
  /** The newest batch that cleared in the chunk. */
  batch_id: number | null
  /** The topics that the row concerns, each with the seq of its row before. */
  heads: Record<string, number>
  levels: FeedLevel[] | null
  balances: FeedBalance[] | null
  /** See `encodeChanges`. */
  changes: string
}

/** Side, price, quantity and orders of a level after the change; the quantity of a level that is gone is 0. */
export type FeedLevel = readonly [side: 'LONG' | 'SHORT', price: number, quantity: number, orders: number]
/** Account, free balance, reservation and pending withdrawal after the change. */
export type FeedBalance = readonly [userId: number, free: string, reserved: string, pendingWithdrawal: string]

/** A channel of one market in `heads`. `candles` concerns the candles of all intervals. */
export const marketHead = (marketId: number, channel: 'book' | 'trades' | 'auction' | 'stats' | 'candles') =>
  `${channel} ${marketId}`
export const userHead = (userId: number): string => `user ${userId}`
export const MARKETS_HEAD = 'markets'
