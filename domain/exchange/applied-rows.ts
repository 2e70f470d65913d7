/**
 * A state that counts its applied rows. The count is a position to which an engine can roll back uncommitted rows.
 */
import { toHex } from '../hex.ts'
import { invariant } from '../invariant.ts'
import type { JournalRow } from '../journal/journal-row.ts'
import type { Millis } from '../units.ts'
import { apply, type Entry } from './apply.ts'
import { digestOf, type ExchangeState } from './state.ts'
import { versioned } from './state-version.ts'

export class AppliedRows {
  readonly state: ExchangeState
  /** For each row that can be undone: the mark before it, and the latest row time by then. */
  #before: { readonly mark: number; readonly time: Millis }[] = []
  #position: number
  #time: Millis

  /** `position` and `time` belong to a state loaded from a checkpoint. */
  constructor(state: ExchangeState, position = 0, time = 0 as Millis) {
    this.state = state
    this.#position = position
    this.#time = time
  }

  /** Number of rows ever applied. */
  position(): number {
    return this.#position
  }

  /**
   * Latest decision time of the exchange. Block times are excluded, because they can be ahead of its clock.
   */
  time(): Millis {
    return this.#time
  }

  digest(): string {
    return versioned(toHex(digestOf(this.state)).slice(2))
  }

  /** Applies a row. If it throws, `undoTo(position())` rolls back its partial changes. */
  apply(entry: Entry): void {
    this.#before.push({ mark: this.state.core.undo.mark, time: this.#time })
    try {
      apply(this.state, entry)
    } catch (error) {
      this.#takeBack()
      throw error
    }
    this.#advance(entry)
  }

  /** Counts rows that the state has already. `marks`: of its undo log, before each row. */
  adopt(entries: readonly Entry[], marks: readonly number[]): void {
    for (const [at, entry] of entries.entries()) {
      this.#before.push({ mark: marks[at] as number, time: this.#time })
      this.#advance(entry)
    }
  }

  /** Rolls back every row after the position. */
  undoTo(position: number): void {
    const oldest = this.#position - this.#before.length
    invariant(oldest <= position && position <= this.#position, 'a position is neither forgotten nor ahead')
    while (this.#position > position) {
      this.#takeBack()
      this.#position--
    }
  }

  /** Marks rows up to the position as committed; they can no longer be rolled back. */
  forget(position: number): void {
    invariant(position <= this.#position, 'a position is not ahead')
    const kept = this.#position - position
    if (kept >= this.#before.length) return
    this.#before = this.#before.slice(this.#before.length - kept)
    const { undo } = this.state.core
    undo.forget(this.#before[0]?.mark ?? undo.mark)
  }

  #advance({ row }: Entry): void {
    this.#position++
    const time = timeOf(row)
    if (time > this.#time) this.#time = time
  }

  #takeBack(): void {
    const before = this.#before.pop()
    invariant(before !== undefined, 'only a row that was applied is taken back')
    this.state.core.undo.undoTo(before.mark)
    this.#time = before.time
  }
}

/** Decision time of the row; 0 for rows about the chain and for rows without a time. */
function timeOf(row: JournalRow): Millis {
  if ('block' in row) return 0 as Millis
  if ('at' in row) return row.at as Millis
  if (row.kind === 'order_placed') return row.accepted_at as Millis
  return ('as_of' in row ? (row.as_of ?? 0) : 0) as Millis
}
