/** Finds user ids by address. Derived from the users, like the books. */
import type { Address, UserId } from '../units.ts'
import type { RecordTable } from './record-table.ts'
import { hashOfCounts, SlotIndex } from './slot-index.ts'
import type { UserRow } from './tables/accounts.ts'

/** Byte offsets of an address's words. */
const WORDS = [0, 4, 8, 12, 16] as const

export class UserIndex {
  readonly #users: RecordTable<UserRow>
  readonly #slots = new SlotIndex()
  /** Secret mixed into the hashes: a trader who knew it could choose addresses whose hashes collide. */
  readonly #secret: number
  readonly #addressAt: (slot: number) => Address
  readonly #wordsAt: readonly ((slot: number) => number)[]

  constructor(users: RecordTable<UserRow>, secret: number) {
    this.#users = users
    this.#secret = secret
    this.#addressAt = users.reader('address')
    this.#wordsAt = WORDS.map((from) => users.wordReader('address', from))
    users.observe((before, after, slot) => {
      if (before !== undefined) this.#slots.remove(this.#hashOf(before.address), slot)
      if (after !== undefined)
        this.#slots.add(hashOfCounts([this.#secret, ...this.#wordsAt.map((word) => word(slot))]), slot)
    })
  }

  get(address: Address): UserId | undefined {
    const slot = this.#slots.find(this.#hashOf(address), (at) => this.#addressAt(at) === address)
    return slot < 0 ? undefined : this.#users.at(slot).userId
  }

  #hashOf(address: Address): number {
    const digits = WORDS.map((from) => address.slice(2 + 2 * from, 10 + 2 * from))
    return hashOfCounts([this.#secret, ...digits.map((word) => Number.parseInt(word, 16))])
  }
}
