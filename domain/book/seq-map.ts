/** A map keyed by seq without long pauses under many inserts and removals. */
import type { Seq, UserId } from '../units.ts'

/**
 * Seqs per page. New seqs are close together, so a batch of orders touches few pages. A page with a single
 * order is still small.
 */
const PAGE = 32

interface Page<V> {
  readonly values: (V | undefined)[]
  count: number
}

/** Accounts are numbered like orders: from 1 on, without large gaps. */
export const keyOfAccount = (account: UserId): Seq => account as number as Seq

/**
 * A map by seq in pages.
 * A plain map of a million orders stops for about 0.1 s at each rehash after enough inserts and removals; the
 * inner map of pages changes far less often.
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
