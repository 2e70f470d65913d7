/** The newest rows of the feed, from which clients resume: bounded in number and bytes. Pure. */
import type { FeedRow } from './feed-row.ts'

export interface RingBounds {
  readonly rows: number
  readonly bytes: number
}

/** A queue that compacts its array once removed rows fill more than half of it. */
class Rows {
  #rows: FeedRow[] = []
  /** Index of the first row that is not removed. */
  #first = 0

  get length(): number {
    return this.#rows.length - this.#first
  }

  push(row: FeedRow): void {
    this.#rows.push(row)
  }

  shift(): FeedRow {
    const row = this.#rows[this.#first++] as FeedRow
    if (this.#first > this.#rows.length / 2) {
      this.#rows = this.#rows.slice(this.#first)
      this.#first = 0
    }
    return row
  }

  /** Rows with a greater seq. */
  after(seq: number): FeedRow[] {
    let [low, high] = [this.#first, this.#rows.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#rows[middle] as FeedRow).seq > seq) high = middle
      else low = middle + 1
    }
    return this.#rows.slice(low)
  }
}

export class Ring {
  readonly #bounds: RingBounds
  readonly #rows = new Rows()
  /** Rows by topic, because a client may resume 100 topics at once. */
  readonly #ofTopic = new Map<string, Rows>()
  #bytes = 0
  #floor: number

  /** `floor`: seq before the first pushed row. */
  constructor(bounds: RingBounds, floor: number) {
    this.#bounds = bounds
    this.#floor = floor
  }

  /** Seq of the last row. Rows have consecutive seqs. */
  get head(): number {
    return this.#floor + this.#rows.length
  }

  /** Returns false, and changes nothing, if rows between the head and this row are missing. */
  push(row: FeedRow): boolean {
    if (row.seq !== this.head + 1) return false
    this.#rows.push(row)
    this.#bytes += row.size
    for (const topic of row.heads) {
      const own = this.#ofTopic.get(topic) ?? new Rows()
      own.push(row)
      this.#ofTopic.set(topic, own)
    }
    while (this.#rows.length > this.#bounds.rows || this.#bytes > this.#bounds.bytes) this.#evict()
    return true
  }

  #evict(): void {
    const row = this.#rows.shift()
    this.#bytes -= row.size
    this.#floor++
    for (const topic of row.heads) {
      const own = this.#ofTopic.get(topic) as Rows
      own.shift()
      if (own.length === 0) this.#ofTopic.delete(topic)
    }
  }

  /** Whether the ring has all rows after `seq` up to the head. */
  covers(seq: number): boolean {
    return seq >= this.#floor && seq <= this.head
  }

  /** Rows of the topic after `seq`. The caller has checked `covers(seq)`. */
  after(seq: number, head: string): FeedRow[] {
    return this.#ofTopic.get(head)?.after(seq) ?? []
  }
}
