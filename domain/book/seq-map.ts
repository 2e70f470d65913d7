/** A map by seq that takes many new seqs and forgets many old ones without ever standing still. */
import type { Seq } from '../units.ts'

/** Seqs per page. New seqs come close together, so a batch of orders touches few pages; a page costs little when one order is left. */
const PAGE = 32

interface Page<V> {
  readonly values: (V | undefined)[]
  count: number
}

/**
 * A plain map of a million orders has to be built anew, a tenth of a second, whenever enough seqs have come and gone. Here only
 * pages come and go, far fewer and far more seldom.
 */
export class SeqMap<V> {
  readonly #pages = new Map<number, Page<V>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  get(seq: Seq): V | undefined {
    return this.#pages.get(pageOf(seq))?.values[seq % PAGE]
  }

  set(seq: Seq, value: V): void {
    let page = this.#pages.get(pageOf(seq))
    if (page === undefined) {
      page = { values: new Array(PAGE).fill(undefined), count: 0 }
      this.#pages.set(pageOf(seq), page)
    }
    if (page.values[seq % PAGE] === undefined) {
      page.count++
      this.#size++
    }
    page.values[seq % PAGE] = value
  }

  delete(seq: Seq): void {
    const page = this.#pages.get(pageOf(seq))
    if (page === undefined || page.values[seq % PAGE] === undefined) return
    page.values[seq % PAGE] = undefined
    page.count--
    this.#size--
    if (page.count === 0) this.#pages.delete(pageOf(seq))
  }

  /** In no particular order. */
  *values(): Generator<V> {
    for (const { values } of this.#pages.values()) {
      for (const value of values) if (value !== undefined) yield value
    }
  }
}

const pageOf = (seq: Seq): number => Math.floor(seq / PAGE)
