/** Highest user id, derived from the users. */
import type { UserId } from '../units.ts'
import type { RecordTable } from './record-table.ts'
import type { UserRow } from './tables/accounts.ts'

export class NewestUser {
  #newest = 0

  constructor(users: RecordTable<UserRow>) {
    users.observe((before, after) => {
      if (after !== undefined) this.#newest = Math.max(this.#newest, after.userId)
      else if (before?.userId === this.#newest)
        // Users are removed only by rollback, newest first, so the previous user is close.
        while (this.#newest > 0 && !users.has(this.#newest)) this.#newest--
    })
  }

  /** The id of the next user. */
  next(): UserId {
    return (this.#newest + 1) as UserId
  }
}
