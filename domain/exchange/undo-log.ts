/** Prior values of what `apply` has changed, newest last, so that rows can be taken back exactly. */
import { invariant } from '../invariant.ts'

/** Puts back the value that a key of one table had. */
export type UndoStep = () => void

export class UndoLog {
  #steps: UndoStep[] = []
  /** Steps that were forgotten. */
  #forgotten = 0
  #isUndoing = false

  /** Place to which `undoTo` returns. It grows with every change. */
  get mark(): number {
    return this.#forgotten + this.#steps.length
  }

  /** Whether the change that observers see at present is taken back. `mark` is then the place of that change. */
  get isUndoing(): boolean {
    return this.#isUndoing
  }

  push(step: UndoStep): void {
    if (!this.#isUndoing) this.#steps.push(step)
  }

  /** Takes back everything since the mark, newest first. */
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

  /** What precedes the mark is committed and never taken back. */
  forget(mark: number): void {
    invariant(mark <= this.mark, 'a mark is not ahead of the log')
    if (mark <= this.#forgotten) return
    this.#steps = this.#steps.slice(mark - this.#forgotten)
    this.#forgotten = mark
  }

  /** Forgets everything. */
  clear(): void {
    this.forget(this.mark)
  }
}
