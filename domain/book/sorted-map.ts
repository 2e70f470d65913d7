/** A map that iterates its keys in ascending order. Keys are finite numbers. */
import { lowerBound } from './lower-bound.ts'

/**
 * A chunk splits at twice this length. It is short enough to shift cheaply, and long enough to keep the
 * number of chunks small.
 */
const HALF_CHUNK = 128

/**
 * Map with sorted number keys in short chunks. `get` is O(1); `set` and `delete` cost two binary searches and the shift
 * of one chunk.
 */
export class SortedMap<V> {
  readonly #values = new Map<number, V>()
  /** Chunks are never empty and never overlap. */
  readonly #chunks: number[][] = []

  get size(): number {
    return this.#values.size
  }

  get(key: number): V | undefined {
    return this.#values.get(key)
  }

  set(key: number, value: V): void {
    if (!this.#values.has(key)) this.#addKey(key)
    this.#values.set(key, value)
  }

  delete(key: number): void {
    if (this.#values.delete(key)) this.#removeKey(key)
  }

  /** The value of the smallest key. */
  /** The smallest key; undefined if the map is empty. */
  firstKey(): number | undefined {
    return this.#chunks[0]?.[0]
  }

  first(): V | undefined {
    const key = this.firstKey()
    return key === undefined ? undefined : this.#values.get(key)
  }

  /**
   * Values by ascending key, up to and including key `last`. The map must not change during the iteration.
   */
  *upTo(last: number): Generator<V> {
    for (const chunk of this.#chunks) {
      for (const key of chunk) {
        if (key > last) return
        yield this.#values.get(key) as V
      }
    }
  }

  #addKey(key: number): void {
    const at = this.#chunkFor(key)
    const chunk = this.#chunks[at]
    if (chunk === undefined) {
      this.#chunks.push([key])
      return
    }
    chunk.splice(lowerBound(chunk, key), 0, key)
    if (chunk.length >= 2 * HALF_CHUNK) this.#chunks.splice(at + 1, 0, chunk.splice(HALF_CHUNK))
  }

  #removeKey(key: number): void {
    const at = this.#chunkFor(key)
    const chunk = this.#chunks[at] as number[]
    chunk.splice(lowerBound(chunk, key), 1)
    if (chunk.length === 0) this.#chunks.splice(at, 1)
  }

  /** Index of the first chunk with a last key at or above the key; otherwise the last chunk's index. */
  #chunkFor(key: number): number {
    let low = 0
    let high = Math.max(this.#chunks.length - 1, 0)
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#chunks[middle]?.at(-1) as number) < key) low = middle + 1
      else high = middle
    }
    return low
  }
}
