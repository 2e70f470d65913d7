/** Index of live orders by expiration second, so that finding expired orders does not scan the book. */

import type { Millis, Seconds, Seq } from '../units.ts'
import { SortedMap } from './sorted-map.ts'

export class Expiries {
  readonly #bySecond = new SortedMap<Set<Seq>>()

  /** An `expiration` of 0 never expires and is not indexed. */
  add(seq: Seq, expiration: Seconds): void {
    if (expiration === 0) return
    const seqs = this.#bySecond.get(expiration)
    if (seqs === undefined) this.#bySecond.set(expiration, new Set([seq]))
    else seqs.add(seq)
  }

  remove(seq: Seq, expiration: Seconds): void {
    const seqs = this.#bySecond.get(expiration)
    if (seqs?.delete(seq) && seqs.size === 0) this.#bySecond.delete(expiration)
  }

  /**
   * Seqs of the orders that have expired at `asOf` (see `isExpired`), ascending. The cost depends on the
   * number of results, not on the size of the index.
   */
  expired(asOf: Millis): Seq[] {
    const lastDeadSecond = Math.ceil(asOf / 1000) - 1
    const dead = [...this.#bySecond.upTo(lastDeadSecond)].flatMap((seqs) => [...seqs])
    return dead.sort((a, b) => a - b)
  }
}
