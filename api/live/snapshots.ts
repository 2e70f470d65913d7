/** Reads the snapshots of topics, a few at a time. Subscriptions of the same moment share one. */
import type { Db } from '../../db/client.ts'
import type { Clock } from '../../service/clock.ts'
import { ApiError } from '../errors.ts'
import type { Completeness } from '../read-after/completeness.ts'
import { topicState } from './feed-query.ts'
import { type Encoder, snapshotFrame } from './frames.ts'
import type { Frame } from './ports.ts'

/** The state of a topic, as of the row `head` of the feed. `seq`: the last row up to it that concerns the topic. */
export interface TopicStart {
  readonly epoch: number
  readonly head: number
  readonly seq: number
  readonly frames: readonly Frame[]
  /** Content and read time of the snapshot; null without a snapshot. */
  readonly state: { readonly data: object; readonly at: number } | null
}

export interface SnapshotPorts {
  readonly db: Db
  readonly clock: Clock
  readonly completeness: Completeness
}

/** Snapshots that are read at the same time. */
const READING = 4
/** Snapshots for new subscriptions that wait for one of these places. */
const WAITING = 200

/**
 * `new`: a client waits, and is refused if too many wait. `again`: an existing subscription restarts; these are bounded
 * by the topics with readers, and wait without a limit.
 */
export type Occasion = 'new' | 'again'

export class Snapshots {
  readonly #ports: SnapshotPorts
  readonly #waiting: Record<Occasion, (() => void)[]> = { new: [], again: [] }
  #reading = 0
  /** Occasion that got the last free place. The two occasions alternate. */
  #last: Occasion = 'again'

  constructor(ports: SnapshotPorts) {
    this.#ports = ports
  }

  read(encoder: Encoder, occasion: Occasion): Promise<TopicStart> {
    return this.#inTurn(occasion, async () => {
      const { db, clock, completeness } = this.#ports
      await completeness.expect(encoder.channel.scope)
      return db
        .transaction()
        .setIsolationLevel('repeatable read')
        .setAccessMode('read only')
        .execute(async (tx) => {
          const state = await topicState(tx, encoder.channel.head)
          const data = await encoder.channel.snapshot(tx)
          const at = clock.now()
          const frames = [snapshotFrame(encoder, { ...state, at, data })]
          return { ...state, frames, state: { data, at } }
        })
    })
  }

  /** Where the feed and the topic stand, without the topic's state. */
  state(encoder: Encoder): Promise<TopicStart> {
    return this.#inTurn('new', async () => {
      const state = await this.#ports.db.transaction().execute((tx) => topicState(tx, encoder.channel.head))
      return { ...state, frames: [], state: null }
    })
  }

  async #inTurn<Value>(occasion: Occasion, read: () => Promise<Value>): Promise<Value> {
    if (this.#reading >= READING) {
      const waiting = this.#waiting[occasion]
      if (occasion === 'new' && waiting.length >= WAITING) throw new ApiError('OVERLOADED', {}, '1')
      await new Promise<void>((resolve) => waiting.push(resolve))
    } else this.#reading++
    try {
      return await read()
    } finally {
      const next = this.#next()
      if (next === undefined) this.#reading--
      else next()
    }
  }

  #next(): (() => void) | undefined {
    const { new: first, again } = this.#waiting
    const isAgain = again.length > 0 && (first.length === 0 || this.#last === 'new')
    this.#last = isAgain ? 'again' : 'new'
    return (isAgain ? again : first).shift()
  }
}
