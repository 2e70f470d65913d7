/**
 * Which slot holds the filled quantity of a partly filled order on the chain. Slots are counted per maker and market; the
 * keeper chooses the index. The chain kills what a slot held before, so only the slots of dead orders are allocated out again.
 */
import { invariant } from '../invariant.ts'

/** Index 1023 means "no slot" to the contract. */
export const PARTIAL_SLOTS = 1023

/** Hands out the lowest free index per maker. `inUse`: the indices of each maker's live orders. Mutable; made for one batch. */
export class PartialSlots<Maker> {
  readonly #inUse: ReadonlyMap<Maker, Set<number>>
  readonly #allocated = new Map<Maker, Set<number>>()

  constructor(inUse: ReadonlyMap<Maker, Set<number>>) {
    this.#inUse = inUse
  }

  allocate(maker: Maker): number {
    const allocated = this.#allocated.get(maker) ?? new Set()
    this.#allocated.set(maker, allocated)
    let index = 0
    while (this.#inUse.get(maker)?.has(index) || allocated.has(index)) index++
    invariant(index < PARTIAL_SLOTS, 'a maker has fewer live orders in a market than slots')
    allocated.add(index)
    return index
  }
}
