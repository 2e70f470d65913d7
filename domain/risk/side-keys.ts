/**
 * Positions of one side of a market by key, so that the largest keys are found without reading all positions.
 */

import { invariant } from '../invariant.ts'
import type { UserId } from '../units.ts'
import { BinaryHeap } from './binary-heap.ts'

/** Children per node. More children mean fewer levels, so an update moves fewer positions. */
const WIDTH = 4
const INITIAL_CAPACITY = 1_024

export interface KeyedPosition {
  readonly account: UserId
  readonly key: number
  readonly entry: number
}

/** A heap in typed arrays: 24 bytes per position, and a map from accounts to indices. Mutable. */
export class SideKeys {
  #accounts = new Float64Array(INITIAL_CAPACITY)
  #keys = new Float64Array(INITIAL_CAPACITY)
  #entries = new Float64Array(INITIAL_CAPACITY)
  readonly #places = new Map<UserId, number>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Keys and entries of all positions, by index. Valid until the next change. */
  get columns(): { readonly keys: Float64Array; readonly entries: Float64Array } {
    const { size } = this
    return { keys: this.#keys.subarray(0, size), entries: this.#entries.subarray(0, size) }
  }

  accountAt(place: number): UserId {
    return this.#accounts[place] as UserId
  }

  /**
   * Adds the position of a new account without ordering it. `arrange` must be called before any other method.
   */
  append(position: KeyedPosition): void {
    this.#put(this.#add(), position, false)
  }

  /** Orders all appended positions in one pass, and stores the indices only at its end. */
  arrange(): void {
    for (let place = Math.floor((this.#size - 2) / WIDTH); place >= 0; place--) this.#sink(place, false)
    for (let place = 0; place < this.#size; place++) this.#places.set(this.accountAt(place), place)
    invariant(this.#places.size === this.#size, 'each account has one position')
  }

  set(position: KeyedPosition): void {
    const place = this.#places.get(position.account) ?? this.#add()
    this.#put(place, position)
    if (!this.#rise(place)) this.#sink(place)
  }

  delete(account: UserId): void {
    const place = this.#places.get(account)
    if (place === undefined) return
    const last = --this.#size
    this.#places.delete(account)
    if (place === last) return
    this.#put(place, this.#at(last))
    if (!this.#rise(place)) this.#sink(place)
  }

  /**
   * Positions with a key of at least `threshold`, largest key first. The heap must not change during the iteration.
   */
  *from(threshold: number): Generator<KeyedPosition> {
    const frontier = new BinaryHeap<number>((a, b) => (this.#isBefore(this.#at(a), this.#at(b)) ? -1 : 1))
    const add = (place: number): void => {
      if (place < this.#size && this.#keyAt(place) >= threshold) frontier.push(place)
    }
    add(0)
    for (let place = frontier.pop(); place !== undefined; place = frontier.pop()) {
      yield this.#at(place)
      for (let child = WIDTH * place + 1; child <= WIDTH * place + WIDTH; child++) add(child)
    }
  }

  /** Equal keys sort by ascending account id, so that the order does not depend on the heap's history. */
  #isBefore(a: KeyedPosition, b: KeyedPosition): boolean {
    return a.key > b.key || (a.key === b.key && a.account < b.account)
  }

  #keyAt(place: number): number {
    return this.#keys[place] as number
  }

  /** The place of one more position. */
  #add(): number {
    if (this.#size === this.#accounts.length) this.#grow()
    return this.#size++
  }

  #put(place: number, { account, key, entry }: KeyedPosition, tracked = true): void {
    invariant(!Number.isNaN(key), 'a key is a number')
    this.#accounts[place] = account
    this.#keys[place] = key
    this.#entries[place] = entry
    if (tracked) this.#places.set(account, place)
  }

  #at(place: number): KeyedPosition {
    return { account: this.accountAt(place), key: this.#keyAt(place), entry: this.#entries[place] as number }
  }

  #rise(from: number): boolean {
    const moved = this.#at(from)
    let place = from
    while (place > 0) {
      const parent = Math.floor((place - 1) / WIDTH)
      if (!this.#isBefore(moved, this.#at(parent))) break
      this.#put(place, this.#at(parent))
      place = parent
    }
    if (place !== from) this.#put(place, moved)
    return place !== from
  }

  #sink(from: number, tracked = true): void {
    const moved = this.#at(from)
    const size = this.#size
    let place = from
    for (;;) {
      const first = WIDTH * place + 1
      let largest = place
      let before = moved
      for (let child = first; child < Math.min(first + WIDTH, size); child++) {
        // Most children sort behind, so they are compared without creating an object.
        if (this.#keyAt(child) < before.key) continue
        const other = this.#at(child)
        if (this.#isBefore(other, before)) [largest, before] = [child, other]
      }
      if (largest === place) break
      this.#put(place, this.#at(largest), tracked)
      place = largest
    }
    if (place !== from) this.#put(place, moved, tracked)
  }

  #grow(): void {
    const larger = (before: Float64Array): Float64Array<ArrayBuffer> => {
      const after = new Float64Array(2 * before.length)
      after.set(before)
      return after
    }
    this.#accounts = larger(this.#accounts)
    this.#keys = larger(this.#keys)
    this.#entries = larger(this.#entries)
  }
}
