/** Orders by the second through which they live. Cheap to ask, whatever waits. */

import type { Millis, Seconds, Seq } from '../units.ts'
import { SortedMap } from './sorted-map.ts'

export class Expiries {
  readonly #bySecond = new SortedMap<Set<Seq>>()

  /** `expiration` 0 never ends and is not kept. */
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

  /** Seqs of the orders that are dead at `asOf` (see `isExpired`), ascending. Costs what it returns, not what is kept. */
  expired(asOf: Millis): Seq[] {
    const lastDeadSecond = Math.ceil(asOf / 1000) - 1
    const dead = [...this.#bySecond.upTo(lastDeadSecond)].flatMap((seqs) => [...seqs])
    return dead.sort((a, b) => a - b)
  }
}
