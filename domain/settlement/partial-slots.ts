/**
 * Which slot holds the filled quantity of a partly filled order on the chain. Slots are counted per maker and market; the
 * keeper chooses the index. The chain kills what a slot held before, so only the slots of dead orders are given out again.
 */
import { invariant } from '../invariant.ts'

/** Index 1023 means "no slot" to the contract. */
export const PARTIAL_SLOTS = 1023

/** Hands out the lowest free index per maker. `taken`: the indices of each maker's live orders. Mutable; made for one batch. */
export class PartialSlots<Maker> {
  readonly #taken: ReadonlyMap<Maker, Set<number>>
  readonly #given = new Map<Maker, Set<number>>()

  constructor(taken: ReadonlyMap<Maker, Set<number>>) {
    this.#taken = taken
  }

  take(maker: Maker): number {
    const given = this.#given.get(maker) ?? new Set()
    this.#given.set(maker, given)
    let index = 0
    while (this.#taken.get(maker)?.has(index) || given.has(index)) index++
    invariant(index < PARTIAL_SLOTS, 'a maker has fewer live orders in a market than slots')
    given.add(index)
    return index
  }
}
