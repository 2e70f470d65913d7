/** Finds armed switches by deadline, and connections by account. Derived from the switches. */
import type { Millis } from '../units.ts'
import { DocumentGroups } from './document-groups.ts'
import type { DocumentTable } from './document-table.ts'
import type { ConnectionSwitchRow, SwitchRow } from './tables/switches.ts'

export class SwitchIndex {
  /** Armed switches, ascending by deadline, then by account. */
  readonly #deadlines: SwitchRow[] = []
  readonly #connections: DocumentGroups<ConnectionSwitchRow>

  constructor(switches: DocumentTable<SwitchRow>, connections: DocumentTable<ConnectionSwitchRow>) {
    switches.observe((before, after) => {
      if (before !== undefined) this.#deadlines.splice(placeOf(this.#deadlines, before), 1)
      if (after !== undefined) this.#deadlines.splice(placeOf(this.#deadlines, after), 0, after)
    })
    this.#connections = new DocumentGroups(connections, {
      keyOf: ({ connection_id }) => connection_id,
      groupOf: ({ user_id }) => String(user_id),
    })
  }

  /** When the next switch of an account fires; null if none is armed. */
  nextDeadline(): Millis | null {
    return (this.#deadlines[0]?.fire_at ?? null) as Millis | null
  }

  /** The accounts' switches that fire at this time or before. */
  due(now: Millis): readonly SwitchRow[] {
    const end = this.#deadlines.findIndex(({ fire_at }) => fire_at > now)
    return this.#deadlines.slice(0, end === -1 ? undefined : end)
  }

  /** The account's connections with a switch. */
  connectionsOf(account: number): readonly string[] {
    return this.#connections.of(String(account)).map(({ connection_id }) => connection_id)
  }
}

/** Index of the first switch that does not precede this switch. */
function placeOf(deadlines: readonly SwitchRow[], { fire_at, user_id }: SwitchRow): number {
  let low = 0
  let high = deadlines.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const one = deadlines[middle] as SwitchRow
    const precedes = one.fire_at < fire_at || (one.fire_at === fire_at && one.user_id < user_id)
    if (precedes) low = middle + 1
    else high = middle
  }
  return low
}
