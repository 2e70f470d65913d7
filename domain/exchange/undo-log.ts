/** Prior values of everything that `apply` changed, newest last, for exact rollbacks. */
import { invariant } from '../invariant.ts'

/** Restores the previous value of a table's key. */
export type UndoStep = () => void

export class UndoLog {
  #steps: UndoStep[] = []
  /** Number of dropped steps. */
  #forgotten = 0
  #isUndoing = false

  /** Position to which `undoTo` returns. It grows with every change. */
  get mark(): number {
    return this.#forgotten + this.#steps.length
  }

  /**
   * Whether the change that observers currently see is a rollback. `mark` is then the position of that change.
   */
  get isUndoing(): boolean {
    return this.#isUndoing
  }

  push(step: UndoStep): void {
    if (!this.#isUndoing) this.#steps.push(step)
  }

  /** Rolls back every change since the mark, newest first. */
  undoTo(mark: number): void {
    invariant(
      this.#forgotten <= mark && mark <= this.mark,
      'a mark is neither forgotten nor ahead of the log',
    )
    this.#isUndoing = true
    try {
      while (this.mark > mark) (this.#steps.pop() as UndoStep)()
    } finally {
      this.#isUndoing = false
    }
  }

  /** Drops the steps before the mark: they are committed and can no longer be rolled back. */
  forget(mark: number): void {
    invariant(mark <= this.mark, 'a mark is not ahead of the log')
    if (mark <= this.#forgotten) return
    this.#steps = this.#steps.slice(mark - this.#forgotten)
    this.#forgotten = mark
  }

  /** Drops all steps. */
  clear(): void {
    this.forget(this.mark)
  }
}
