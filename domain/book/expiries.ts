/** Index of live orders by expiration second, so that finding expired orders does not scan the book. */

import type { Millis, Seconds, Seq } from '../units.ts'
import { SortedMap } from './sorted-map.ts'
import { addSeq, removeSeq } from './sorted-seqs.ts'

export class Expiries {
  readonly #bySecond = new SortedMap<Seq[]>()

  /** Indexes the order. An `expiration` of 0 never expires and is not indexed. */
  add(seq: Seq, expiration: Seconds): void {
    if (expiration === 0) return
    const seqs = this.#bySecond.get(expiration)
    if (seqs === undefined) this.#bySecond.set(expiration, [seq])
    else addSeq(seqs, seq)
  }

  remove(seq: Seq, expiration: Seconds): void {
    const seqs = this.#bySecond.get(expiration)
    if (seqs === undefined) return
    removeSeq(seqs, seq)
    if (seqs.length === 0) this.#bySecond.delete(expiration)
  }

  /**
   * Seqs of at most `most` expired orders (`isExpired`), earliest expiration first. The cost depends on the orders in
   * the returned seconds, not on the index size.
   */
  expired(asOf: Millis, most = Number.POSITIVE_INFINITY): Seq[] {
    const lastDeadSecond = Math.ceil(asOf / 1000) - 1
    const dead: Seq[] = []
    for (const seqs of this.#bySecond.upTo(lastDeadSecond)) {
      if (dead.length >= most) break
      for (const seq of seqs.slice(0, most - dead.length)) dead.push(seq)
    }
    return dead.sort((a, b) => a - b)
  }
}
