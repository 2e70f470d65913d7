/** A state with the number of rows that have been applied to it: positions to which an engine returns until they are committed. */
import { toHex } from '../hex.ts'
import { invariant } from '../invariant.ts'
import type { JournalRow } from '../journal/journal-row.ts'
import type { Millis } from '../units.ts'
import { apply, type Entry } from './apply.ts'
import { digestOf, type ExchangeState } from './state.ts'

export class AppliedRows {
  readonly state: ExchangeState
  /** Of each row that can be taken back: the mark before it, and the latest time that a row had stated by then. */
  #before: { readonly mark: number; readonly time: Millis }[] = []
  #position: number
  #time: Millis

  /** `position` and `time`: of a state that was loaded from a checkpoint. */
  constructor(state: ExchangeState, position = 0, time = 0 as Millis) {
    this.state = state
    this.#position = position
    this.#time = time
  }

  /** Rows ever applied. */
  position(): number {
    return this.#position
  }

  /** The latest time at which the exchange has decided a row. Times of blocks are not counted: they can be ahead of its clock. */
  time(): Millis {
    return this.#time
  }

  digest(): string {
    return toHex(digestOf(this.state)).slice(2)
  }

  /** If it throws, `undoTo(position())` takes back what it has changed. */
  apply(entry: Entry): void {
    this.#before.push({ mark: this.state.core.undo.mark, time: this.#time })
    try {
      apply(this.state, entry)
    } catch (error) {
      this.#takeBack()
      throw error
    }
    this.#position++
    const time = timeOf(entry.row)
    if (time > this.#time) this.#time = time
  }

  /** Takes back every row after the position. */
  undoTo(position: number): void {
    const oldest = this.#position - this.#before.length
    invariant(oldest <= position && position <= this.#position, 'a position is neither forgotten nor ahead')
    while (this.#position > position) {
      this.#takeBack()
      this.#position--
    }
  }

  /** Rows up to the position are committed. */
  forget(position: number): void {
    invariant(position <= this.#position, 'a position is not ahead')
    const kept = this.#position - position
    if (kept >= this.#before.length) return
    this.#before = this.#before.slice(this.#before.length - kept)
    const { undo } = this.state.core
    undo.forget(this.#before[0]?.mark ?? undo.mark)
  }

  #takeBack(): void {
    const before = this.#before.pop()
    invariant(before !== undefined, 'only a row that was applied is taken back')
    this.state.core.undo.undoTo(before.mark)
    this.#time = before.time
  }
}

/** When the row was decided; 0 for rows about the chain, and for those without a time. */
function timeOf(row: JournalRow): Millis {
  if ('block' in row) return 0 as Millis
  if ('at' in row) return row.at as Millis
  if (row.kind === 'order_placed') return row.accepted_at as Millis
  return ('as_of' in row ? (row.as_of ?? 0) : 0) as Millis
}
