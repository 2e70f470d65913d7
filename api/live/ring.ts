/** The newest rows of the feed, from which clients resume: bounded in number and bytes. Pure. */
import type { FeedRow } from './feed-row.ts'

export interface RingBounds {
  readonly rows: number
  readonly bytes: number
}

export class Ring {
  readonly #bounds: RingBounds
  #rows: FeedRow[] = []
  /** Rows before this index have left; they are removed from the array together. */
  #first = 0
  #bytes = 0
  #floor: number

  /** `floor`: the row before the first one that is pushed. */
  constructor(bounds: RingBounds, floor: number) {
    this.#bounds = bounds
    this.#floor = floor
  }

  /** The last row; rows follow one another without a gap. */
  get head(): number {
    return this.#floor + this.#rows.length - this.#first
  }

  /** Returns false, and changes nothing, if rows between the head and this one are missing. */
  push(row: FeedRow): boolean {
    if (row.seq !== this.head + 1) return false
    this.#rows.push(row)
    this.#bytes += row.size
    while (this.#rows.length - this.#first > this.#bounds.rows || this.#bytes > this.#bounds.bytes) {
      this.#bytes -= (this.#rows[this.#first++] as FeedRow).size
      this.#floor++
    }
    if (this.#first > this.#rows.length / 2) {
      this.#rows = this.#rows.slice(this.#first)
      this.#first = 0
    }
    return true
  }

  /** Whether all rows after `seq`, up to the head, are here. */
  covers(seq: number): boolean {
    return seq >= this.#floor && seq <= this.head
  }

  /** The rows after `seq` that concern the topic. `seq` is covered. */
  after(seq: number, head: string): FeedRow[] {
    const rows = this.#rows.slice(this.#first + (seq - this.#floor))
    return rows.filter((row) => row.concerns(head))
  }
}
