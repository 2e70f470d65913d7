/** Prior values of what `apply` has changed, newest last, so that rows can be taken back exactly. */
import { invariant } from '../invariant.ts'

/** Puts back the value that a key of one table had. */
export type UndoStep = () => void

export class UndoLog {
  readonly #steps: UndoStep[] = []
  #isUndoing = false

  /** Place to which `undoTo` returns. */
  get mark(): number {
    return this.#steps.length
  }

  push(step: UndoStep): void {
    if (!this.#isUndoing) this.#steps.push(step)
  }

  /** Takes back everything since the mark, newest first. */
  undoTo(mark: number): void {
    invariant(mark <= this.#steps.length, 'a mark is not ahead of the log')
    this.#isUndoing = true
    try {
      while (this.#steps.length > mark) (this.#steps.pop() as UndoStep)()
    } finally {
      this.#isUndoing = false
    }
  }

  /** Forgets what precedes now: its rows are committed. */
  clear(): void {
    this.#steps.length = 0
  }
}
