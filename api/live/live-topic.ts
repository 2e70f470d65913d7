/** The state of a topic that has readers, and when what waits in it is sent. */
import type { Channel } from './channel.ts'
import type { FeedRow } from './feed-row.ts'
import type { Reader } from './ports.ts'
import type { Occasion, TopicStart } from './snapshots.ts'

/** Least time between two moments at which a paced topic is sent: see `Channel.pacing`. */
export const PACE_MS = 200
/**
 * Additional wait after a batch. Batches follow each other every 200 ms or so, so that waiting rows are sent with the
 * next batch.
 */
const BATCH_SLACK_MS = 60
export const LONGEST_PACE_MS = PACE_MS + BATCH_SLACK_MS

/** A topic with its readers. All of them have received the same messages up to `seq`. */
export interface LiveTopic {
  readonly key: string
  readonly name: string
  readonly channel: Channel
  readonly readers: Set<Reader>
  /** Subscriptions that have begun or are about to. */
  members: number
  seq: number
  /** Rows that will be sent together. */
  pending: FeedRow[]
  sentAt: number
  /** Whether a batch was sent then, in a topic that sends batches at once. */
  hasSentBatch: boolean
  timer: NodeJS.Timeout | null
  snapshot: SharedSnapshot | null
}

export interface SharedSnapshot {
  readonly requestedAt: number
  readonly occasion: Occasion
  /** It waits for its turn, or is being read. */
  isPending: boolean
  readonly start: Promise<TopicStart>
}

export const openTopic = (key: string, name: string, channel: Channel): LiveTopic => ({
  ...{ key, name, channel, readers: new Set(), members: 0, seq: 0 },
  ...{ pending: [], sentAt: 0, hasSentBatch: false, timer: null, snapshot: null },
})

/** Milliseconds until a paced topic is sent. */
export const dueIn = ({ sentAt, hasSentBatch }: LiveTopic, now: number): number =>
  sentAt + (hasSentBatch ? LONGEST_PACE_MS : PACE_MS) - now

/** Whether the rows are sent at once, with what waits. */
export const isUrgent = ({ channel: { pacing } }: LiveTopic, rows: readonly FeedRow[]): boolean =>
  pacing === 'none' || (pacing === 'outside batches' && rows.some(({ batchId }) => batchId !== null))
