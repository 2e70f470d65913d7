/**
 * Messages that were encoded for readers that resume, for a moment: after the end of a process, or an outage of a network, many readers resume
 * the same topics.
 */

import type { FeedRow } from './feed-row.ts'
import { type Encoder, updateFrames } from './frames.ts'
import type { Frame } from './ports.ts'

/** How long the messages are kept. */
const KEPT_MS = 500
/** Size above which all replays are dropped. */
const MOST_BYTES = 16 * 1024 * 1024

interface Topic extends Encoder {
  /** Topics of different accounts differ. */
  readonly key: string
}

export class Replays {
  readonly #frames = new Map<string, readonly Frame[]>()
  #bytes = 0

  /** The messages for rows that concern the topic; the same list for the same rows. */
  framesOf(topic: Topic, rows: readonly FeedRow[]): readonly Frame[] {
    const [first, last] = [rows[0], rows.at(-1)]
    if (first === undefined || last === undefined) return []
    // Rows that cannot be merged have a message each, which readers from different positions share.
    if (!topic.channel.isConflatable) return rows.flatMap((row) => this.#kept(topic, row, row, [row]))
    return this.#kept(topic, first, last, rows)
  }

  #kept(topic: Topic, first: FeedRow, last: FeedRow, rows: readonly FeedRow[]): readonly Frame[] {
    const key = `${topic.key} ${first.seq} ${last.seq}`
    const known = this.#frames.get(key)
    if (known !== undefined) return known
    const frames = updateFrames(topic, rows)
    if (this.#frames.size === 0) setTimeout(() => this.forget(), KEPT_MS).unref()
    this.#frames.set(key, frames)
    this.#bytes += frames.reduce((sum, { text }) => sum + text.length, 0)
    if (this.#bytes > MOST_BYTES) this.forget()
    return frames
  }

  /** The rows may begin again with other contents. */
  forget(): void {
    this.#frames.clear()
    this.#bytes = 0
  }
}
