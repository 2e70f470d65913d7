/** A map by text, split into parts: a single map of more than 2^20 entries stops the thread when it grows. */
import { hashOfText } from './slot-index.ts'

const PARTS = 64

export class PartedMap<Value> {
  readonly #parts = Array.from({ length: PARTS }, () => new Map<string, Value>())
  #size = 0

  get size(): number {
    return this.#size
  }

  get(key: string): Value | undefined {
    return this.#partOf(key).get(key)
  }

  set(key: string, value: Value): void {
    const part = this.#partOf(key)
    const before = part.size
    part.set(key, value)
    this.#size += part.size - before
  }

  delete(key: string): void {
    if (this.#partOf(key).delete(key)) this.#size--
  }

  /** In no particular order. */
  *values(): IterableIterator<Value> {
    for (const part of this.#parts) yield* part.values()
  }

  #partOf(key: string): Map<string, Value> {
    return this.#parts[hashOfText(key) % PARTS] as Map<string, Value>
  }
}
