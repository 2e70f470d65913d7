/**
 * Index of live orders by leverage, so that orders above the market's maximum are found without a scan of the book.
 */
import type { Seq } from '../units.ts'

export class Leverages {
  readonly #byLeverage = new Map<number, Set<Seq>>()

  add(seq: Seq, leverage: number): void {
    const seqs = this.#byLeverage.get(leverage)
    if (seqs === undefined) this.#byLeverage.set(leverage, new Set([seq]))
    else seqs.add(seq)
  }

  remove(seq: Seq, leverage: number): void {
    const seqs = this.#byLeverage.get(leverage)
    seqs?.delete(seq)
    if (seqs?.size === 0) this.#byLeverage.delete(leverage)
  }

  /** At most 127 leverages exist, so the cost depends on the number of results. */
  *above(most: number): Generator<Seq> {
    for (const [leverage, seqs] of this.#byLeverage) if (leverage > most) yield* seqs
  }
}
