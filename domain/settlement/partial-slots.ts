/**
 * Assigns the slots, numbered per maker and market, that store filled steps of orders on chain. Reusing a slot ends its
 * previous order, so only slots of dead orders are assigned again.
 */
import { invariant } from '../invariant.ts'

/** The contract reads index 1023 as "no slot". */
export const PARTIAL_SLOTS = 1023

/**
 * Assigns the lowest free index per maker. `inUse`: indices of each maker's live orders. Mutable; used for one batch.
 */
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
