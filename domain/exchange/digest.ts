/**
 * Digest of a set of byte strings: the sum of their 128-bit hashes, independent of order. Adding or removing a string
 * costs one hash. It detects differences, not forgeries (MurmurHash3 x86).
 */
import { invariant } from '../invariant.ts'

export const DIGEST_BYTES = 16
const WORDS = 4

const rotate = (word: number, by: number): number => (word << by) | (word >>> (32 - by))

function mix(word: number): number {
  let h = word
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return h ^ (h >>> 16)
}

const C1 = 0x239b961b
const C2 = 0xab0e9789 | 0
const C3 = 0x38b34ae5
const C4 = 0xa1e38b93 | 0

/** Alignment of hashed bytes, which are zero-padded: the hash reads four words at a time. */
export const HASH_ALIGNMENT = 16

/** The words of the last hash. */
const hashed = new Uint32Array(WORDS)

/** Hashes `length` words from `start` under `seed` into `hashed`. `length` must be a multiple of 4. */
function hash(words: Int32Array, start: number, length: number, seed: number): void {
  let h1 = seed
  let h2 = seed
  let h3 = seed
  let h4 = seed
  for (let at = start; at < start + length; at += WORDS) {
    h1 ^= Math.imul(rotate(Math.imul(words[at] as number, C1), 15), C2)
    h1 = (Math.imul((rotate(h1, 19) + h2) | 0, 5) + 0x561ccd1b) | 0
    h2 ^= Math.imul(rotate(Math.imul(words[at + 1] as number, C2), 16), C3)
    h2 = (Math.imul((rotate(h2, 17) + h3) | 0, 5) + 0x0bcaa747) | 0
    h3 ^= Math.imul(rotate(Math.imul(words[at + 2] as number, C3), 17), C4)
    h3 = (Math.imul((rotate(h3, 15) + h4) | 0, 5) + 0x96cd1c35) | 0
    h4 ^= Math.imul(rotate(Math.imul(words[at + 3] as number, C4), 18), C1)
    h4 = (Math.imul((rotate(h4, 13) + h1) | 0, 5) + 0x32ac3b17) | 0
  }
  const bytes = length * 4
  h1 ^= bytes
  h2 ^= bytes
  h3 ^= bytes
  h4 ^= bytes
  h1 = (h1 + h2 + h3 + h4) | 0
  h2 = (h2 + h1) | 0
  h3 = (h3 + h1) | 0
  h4 = (h4 + h1) | 0
  h1 = mix(h1)
  h2 = mix(h2)
  h3 = mix(h3)
  h4 = mix(h4)
  h1 = (h1 + h2 + h3 + h4) | 0
  hashed[0] = h1
  hashed[1] = h2 + h1
  hashed[2] = h3 + h1
  hashed[3] = h4 + h1
}

/** Running digest of a state. `seed` separates tables: equal bytes in two tables have different hashes. */
export class Digest {
  readonly #sum = new Uint32Array(WORDS)

  add(words: Int32Array, start: number, length: number, seed: number): void {
    hash(words, start, length, seed)
    let carry = 0
    for (let at = 0; at < WORDS; at++) {
      const sum = (this.#sum[at] as number) + (hashed[at] as number) + carry
      this.#sum[at] = sum
      carry = sum > 0xffffffff ? 1 : 0
    }
  }

  subtract(words: Int32Array, start: number, length: number, seed: number): void {
    hash(words, start, length, seed)
    let borrow = 0
    for (let at = 0; at < WORDS; at++) {
      const difference = (this.#sum[at] as number) - (hashed[at] as number) - borrow
      this.#sum[at] = difference
      borrow = difference < 0 ? 1 : 0
    }
  }

  /** Copy of the digest, least significant byte first. */
  bytes(): Uint8Array {
    const bytes = new Uint8Array(DIGEST_BYTES)
    const view = new DataView(bytes.buffer)
    for (let at = 0; at < WORDS; at++) view.setUint32(at * 4, this.#sum[at] as number, true)
    return bytes
  }
}

/** Rounds up to the alignment of hashed bytes. */
export function aligned(bytes: number): number {
  invariant(bytes >= 0, 'a length is not negative')
  return Math.ceil(bytes / HASH_ALIGNMENT) * HASH_ALIGNMENT
}
