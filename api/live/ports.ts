/** Ports between socket and feed: subscriptions and the frames that they receive. */
import type { Caller } from '../auth/caller.ts'
import type { Topic } from './topics.ts'

/** One encoded message. The hub encodes it once per topic and process. */
export interface Frame {
  /** Name of the topic. */
  readonly topic: string
  readonly seq: number
  /** The `seq` of the topic's message before it; that of a snapshot is 0. */
  readonly prevSeq: number
  readonly text: Buffer
  /** True for topics whose later messages replace skipped messages: see `Hub.refresh`. */
  readonly isConflatable: boolean
}

export interface Reader {
  /** All frames of one change of the read model, which belong together: they are written to the socket in one go. */
  send(frames: readonly Frame[]): void
}

export interface Subscription {
  /** Id of the client's operation, repeated in the message `subscribed`. */
  readonly id: string | number
  readonly caller: Caller | null
  /** The position after which the client resumes, as in `subscribed`; null for a snapshot. */
  readonly since: string | null
}

/** How much the start of a subscription has taken. */
export interface StartCost {
  /** Rows of the feed that were encoded for it. */
  readonly rows: number
  readonly bytes: number
}

export const NOTHING: StartCost = { rows: 0, bytes: 0 }

export interface Hub {
  /**
   * Sends `subscribed` with a snapshot or the changes after `since`, then every change. Without effect if it rejects
   * with an ApiError, for example when too many snapshots are being read.
   */
  subscribe(reader: Reader, topic: Topic, subscription: Subscription): Promise<StartCost>
  /** Also ends a subscription that has not begun yet. Other names have no effect. */
  unsubscribe(reader: Reader, topic: string): void
  /** The reader has skipped frames of this conflatable topic: sends it one update that contains what it skipped, or a snapshot. */
  refresh(reader: Reader, topic: string): void
  /** The last `seq` of each of these topics, for heartbeats; topics that have not begun are left out. */
  heads(reader: Reader, topics: Iterable<string>): Readonly<Record<string, number>>
}
