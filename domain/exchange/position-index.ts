/** Finds an account's positions. Derived from the positions, like the books. */
import type { UserId } from '../units.ts'
import type { RecordTable } from './record-table.ts'
import { SlotGroups } from './slot-groups.ts'
import { hashOfCounts } from './slot-index.ts'
import type { PositionRow } from './tables/accounts.ts'

export class PositionIndex {
  readonly #positions: RecordTable<PositionRow>
  readonly #accounts = new SlotGroups()
  readonly #accountAt: (slot: number) => UserId

  constructor(positions: RecordTable<PositionRow>) {
    this.#positions = positions
    this.#accountAt = positions.reader('userId')
    positions.observe((before, after, slot) => {
      if (before !== undefined && after !== undefined) return
      const { userId } = (before ?? after) as PositionRow
      if (after === undefined) this.#accounts.remove(hashOfCounts([userId]), slot)
      else this.#accounts.add(hashOfCounts([userId]), slot, (at) => this.#accountAt(at) === userId)
    })
  }

  /** Positions in no particular order, including flat positions. */
  of(account: UserId): PositionRow[] {
    const slots = this.#accounts.of(hashOfCounts([account]), (at) => this.#accountAt(at) === account)
    return slots.map((slot) => this.#positions.at(slot))
  }
}
