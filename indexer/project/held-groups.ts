/** Groups of the journal that a projector has read. A chunk may end within a group: the next chunks take the rest from here, and the server parses it once. */
import type { PlacedRow } from '../../db/journal.ts'

/** A group as the journal has it. */
export interface GroupName {
  readonly number: number
  /** The database may lose a group that was not durable, and get another one with its number: that one has another digest. */
  readonly digest: string
}

interface HeldGroup extends GroupName {
  readonly rows: readonly PlacedRow[]
}

/** Smaller groups are read again: each statement names all held groups. */
const LEAST_ROWS = 32
/** A few groups of a busy exchange: about 10 MB. */
const MOST_ROWS = 10_000

export class HeldGroups {
  readonly #groups = new Map<number, HeldGroup>()
  #rows = 0

  names(): readonly GroupName[] {
    return [...this.#groups.values()]
  }

  /** Undefined if the group is not held, or is another one. */
  rowsOf({ number, digest }: GroupName): readonly PlacedRow[] | undefined {
    const held = this.#groups.get(number)
    return held?.digest === digest ? held.rows : undefined
  }

  /** Forgets the groups that were held first if there are too many rows. A group that is larger than the bound is held alone. */
  hold(group: HeldGroup): void {
    if (group.rows.length < LEAST_ROWS) return
    this.#forget(group.number)
    this.#groups.set(group.number, group)
    this.#rows += group.rows.length
    for (const number of this.#groups.keys()) {
      if (this.#rows <= MOST_ROWS || number === group.number) return
      this.#forget(number)
    }
  }

  #forget(number: number): void {
    this.#rows -= this.#groups.get(number)?.rows.length ?? 0
    this.#groups.delete(number)
  }
}
