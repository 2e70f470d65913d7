/** Reads the rows of the feed in order: after a notification of the projector, and at an interval, because notifications can be lost. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../../db/client.ts'
import { decodeNotice, PROJECTED_CHANNEL } from '../../db/projected-notices.ts'
import type { Logger } from '../../service/logger.ts'
import type { Notifications } from '../ports.ts'
import { feedAfter } from './feed-query.ts'
import { FeedRow } from './feed-row.ts'
import { Ring, type RingBounds } from './ring.ts'

export interface FollowerPorts {
  readonly db: Db
  readonly notifications: Notifications
  readonly logger: Logger
  /** Loads what encoding the rows needs: nothing can be awaited then. */
  readonly prepare: (rows: readonly FeedRow[]) => Promise<void>
  /** Called with new rows, in order, once they are in the ring. */
  readonly accept: (rows: readonly FeedRow[]) => void
  /** Called when earlier rows do not lead to the present rows. Subscriptions then restart with snapshots. */
  readonly restart: () => void
}

export interface FollowerOptions extends RingBounds {
  readonly pollMs: number
}

/** Most rows of one read. */
const PAGE = 500
/** Longest wait of a subscription for a row that another process, or a snapshot, has shown. */
const REACH_MS = 2_000

/** A row of the feed. */
interface Place {
  readonly epoch: number
  readonly seq: number
}

export class Follower {
  readonly #ports: FollowerPorts
  readonly #options: FollowerOptions
  readonly #waiting = new Map<() => void, Place>()
  #ring: Ring
  #epoch = 0
  #isWanted = true
  #isWoken = false
  #wake: () => void = () => {}
  #done: Promise<void> = Promise.resolve()

  constructor(ports: FollowerPorts, options: FollowerOptions) {
    this.#ports = ports
    this.#options = options
    this.#ring = new Ring(options, 0)
    ports.notifications.on(PROJECTED_CHANNEL, (payload) => {
      const { feedSeq } = decodeNotice(payload)
      if (feedSeq !== null && feedSeq !== this.#ring.head) this.wake()
    })
    ports.notifications.onLost(() => this.wake())
  }

  get ring(): Ring {
    return this.#ring
  }

  get epoch(): number {
    return this.#epoch
  }

  start(): void {
    this.#done = this.#loop()
  }

  async stop(): Promise<void> {
    this.#isWanted = false
    this.wake()
    await this.#done
  }

  wake(): void {
    this.#isWoken = true
    this.#wake()
  }

  /** Resolves once the row is read, or another epoch has begun, or after a bounded time. */
  reach(place: Place): Promise<void> {
    if (this.#hasReached(place)) return Promise.resolve()
    this.wake()
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, REACH_MS)
      this.#waiting.set(done, place)
    })
  }

  async #loop(): Promise<void> {
    const { pollMs } = this.#options
    while (this.#isWanted) {
      this.#isWoken = false
      try {
        const hasMore = await this.#read()
        if (!hasMore && !this.#isWoken) await this.#rest(pollMs)
      } catch (error) {
        this.#ports.logger.error({ err: error }, 'reading the live feed failed; will retry')
        await sleep(pollMs)
      }
    }
    for (const done of this.#waiting.keys()) done()
  }

  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Reads one page. Returns true if there may be more rows. */
  async #read(): Promise<boolean> {
    const read = await feedAfter(this.#ports.db, this.#ring.head, PAGE)
    const rows = read.rows.map((row) => new FeedRow(row))
    // Rows that this process has not read may be deleted already, or lost with the database's last commits.
    const isContinued = read.epoch === this.#epoch && (rows[0]?.seq ?? read.head + 1) === this.#ring.head + 1
    if (!isContinued) {
      await this.#restart(read.epoch, Math.max(read.floor, read.head - this.#options.rows))
      return true
    }
    await this.#ports.prepare(rows)
    // Nothing is awaited in between: a subscription that begins sees a row in the ring, or gets it as an update.
    for (const row of rows) this.#ring.push(row)
    this.#ports.accept(rows)
    for (const row of rows) row.release()
    this.#settle()
    return this.#ring.head < read.head
  }

  /** Loads the rows that are left into a new ring, without sending them. */
  async #restart(epoch: number, floor: number): Promise<void> {
    const ring = new Ring(this.#options, floor)
    for (;;) {
      const read = await feedAfter(this.#ports.db, ring.head, PAGE)
      if (read.epoch !== epoch || !this.#isWanted) return
      const rows = read.rows.map((row) => new FeedRow(row))
      await this.#ports.prepare(rows)
      for (const row of rows) row.release()
      if (!rows.every((row) => ring.push(row))) return
      if (ring.head >= read.head) break
    }
    this.#ring = ring
    this.#epoch = epoch
    this.#ports.restart()
    for (const done of this.#waiting.keys()) done()
  }

  #settle(): void {
    for (const [done, place] of this.#waiting) if (this.#hasReached(place)) done()
  }

  #hasReached({ epoch, seq }: Place): boolean {
    return this.#epoch === epoch && this.#ring.head >= seq
  }
}
