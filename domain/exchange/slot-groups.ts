/**
 * Table slots in groups, for example all live orders of an account in a market, as doubly linked lists in typed arrays.
 */
import { SlotIndex } from './slot-index.ts'

const FIRST_SIZE = 1024

export class SlotGroups {
  /** One slot of each group. */
  readonly #heads = new SlotIndex()
  /** Slot + 1; 0: none. */
  #next = new Uint32Array(FIRST_SIZE)
  #before = new Uint32Array(FIRST_SIZE)

  /** `hash`: hash of the group. `isMember` compares groups, because two groups may have the same hash. */
  add(hash: number, slot: number, isMember: (slot: number) => boolean): void {
    this.#reach(slot)
    const head = this.#heads.find(hash, isMember)
    if (head < 0) {
      this.#heads.add(hash, slot)
      return
    }
    const second = this.#next[head] as number
    this.#next[head] = slot + 1
    this.#before[slot] = head + 1
    this.#next[slot] = second
    if (second !== 0) this.#before[second - 1] = slot + 1
  }

  remove(hash: number, slot: number): void {
    const before = this.#before[slot] as number
    const next = this.#next[slot] as number
    this.#before[slot] = 0
    this.#next[slot] = 0
    if (next !== 0) this.#before[next - 1] = before
    if (before !== 0) {
      this.#next[before - 1] = next
      return
    }
    this.#heads.remove(hash, slot)
    if (next !== 0) this.#heads.add(hash, next - 1)
  }

  /** The slots of a group, in no particular order. */
  of(hash: number, isMember: (slot: number) => boolean): number[] {
    const slots: number[] = []
    for (let at = this.#heads.find(hash, isMember) + 1; at !== 0; at = this.#next[at - 1] as number)
      slots.push(at - 1)
    return slots
  }

  #reach(slot: number): void {
    if (slot < this.#next.length) return
    const size = Math.max(slot + 1, this.#next.length * 2)
    this.#next = grown(this.#next, size)
    this.#before = grown(this.#before, size)
  }
}

function grown(words: Uint32Array<ArrayBuffer>, size: number): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(size)
  larger.set(words)
  return larger
}
