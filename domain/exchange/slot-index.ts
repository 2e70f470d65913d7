/**
 * Index from key hashes to table slots, in typed arrays.
 * The garbage collector has nothing to trace. Growth causes no pause, because many small parts grow separately.
 */
import { invariant } from '../invariant.ts'

const PARTS = 256
const FIRST_SIZE = 16
/** Smaller parts grow fourfold: an index that is built at once moves its entries half as often. */
const FAST_GROWTH = 4096

interface Part {
  /** Slot + 1; 0: free. */
  slots: Uint32Array
  hashes: Uint32Array
  count: number
}

const emptyPart = (size: number): Part => ({
  slots: new Uint32Array(size),
  hashes: new Uint32Array(size),
  count: 0,
})

/** The caller compares keys, because two keys may have the same hash. */
export class SlotIndex {
  readonly #parts = Array.from({ length: PARTS }, () => emptyPart(FIRST_SIZE))

  /** Slot with this hash that satisfies `isEqual`; -1 if there is none. */
  find(hash: number, isEqual: (slot: number) => boolean): number {
    const { slots, hashes } = this.#partOf(hash)
    const mask = slots.length - 1
    for (let at = (hash >>> 8) & mask; slots[at] !== 0; at = (at + 1) & mask) {
      const slot = (slots[at] as number) - 1
      if (hashes[at] === hash && isEqual(slot)) return slot
    }
    return -1
  }

  /** The caller has checked that the key is not in the index. */
  add(hash: number, slot: number): void {
    const part = this.#partOf(hash)
    if (part.count * 4 >= part.slots.length * 3) grow(part)
    insert(part, hash, slot)
  }

  remove(hash: number, slot: number): void {
    const part = this.#partOf(hash)
    const { slots, hashes } = part
    const mask = slots.length - 1
    let at = (hash >>> 8) & mask
    while (slots[at] !== slot + 1) {
      invariant(slots[at] !== 0, 'a removed slot is in the index')
      at = (at + 1) & mask
    }
    // An entry after the gap moves up if the gap lies between its home slot and its current slot.
    for (let next = (at + 1) & mask; slots[next] !== 0; next = (next + 1) & mask) {
      const home = ((hashes[next] as number) >>> 8) & mask
      if (((next - home) & mask) < ((next - at) & mask)) continue
      slots[at] = slots[next] as number
      hashes[at] = hashes[next] as number
      at = next
    }
    slots[at] = 0
    part.count--
  }

  #partOf(hash: number): Part {
    return this.#parts[hash & (PARTS - 1)] as Part
  }
}

function insert(part: Part, hash: number, slot: number): void {
  const mask = part.slots.length - 1
  let at = (hash >>> 8) & mask
  while (part.slots[at] !== 0) at = (at + 1) & mask
  part.slots[at] = slot + 1
  part.hashes[at] = hash
  part.count++
}

function grow(part: Part): void {
  const { slots, hashes } = part
  Object.assign(part, emptyPart(slots.length * (slots.length < FAST_GROWTH ? 4 : 2)))
  for (let at = 0; at < slots.length; at++) {
    if (slots[at] !== 0) insert(part, hashes[at] as number, (slots[at] as number) - 1)
  }
}

const scramble = (word: number): number => {
  const h = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
  return (h ^ (h >>> 13)) >>> 0
}

/** Hash of a key of safe integers. */
export function hashOfCounts(key: readonly number[]): number {
  let hash = 0x9e3779b9
  for (const part of key) {
    hash = scramble(Math.imul(hash, 31) ^ (part >>> 0))
    hash = scramble(Math.imul(hash, 31) ^ Math.floor(part / 0x100000000))
  }
  return hash
}

/** Hash of a key of text. */
export function hashOfText(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return scramble(hash)
}
