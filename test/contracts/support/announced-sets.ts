/** The documented rule of an oracle's announced changes, written without its two storage slots: which set verifies each moment. */

/** A set, and the milliseconds from which it is valid. */
interface Announced<Set> {
  readonly from: number
  readonly set: Set
}

export type Moment<Set> = Set | 'FeedUnknown' | 'ObservedTooEarly'

export class AnnouncedSets<Set> {
  readonly #notice: number
  /** In force at some time, in order. */
  #past: Announced<Set>[] = []
  #pending: Announced<Set> | null = null
  /** Number of past sets that the oracle no longer stores. */
  #forgotten = 0
  /** True after a cancellation: the oracle stores one set, and nothing shows that others came before it. */
  #isAlone = true

  /** @param notice Milliseconds. */
  constructor(notice: number) {
    this.#notice = notice
  }

  /** `now`: block time in milliseconds. */
  announce(set: Set, now: number): void {
    this.#activate(now)
    this.#pending = { from: now + this.#notice, set }
    this.#forgotten = Math.max(this.#past.length - 1, 0)
    this.#isAlone = false
  }

  /** False if no change is pending: the call must revert. */
  cancel(now: number): boolean {
    this.#activate(now)
    if (this.#pending === null) return false
    this.#pending = null
    this.#forgotten = Math.max(this.#past.length - 1, 0)
    this.#isAlone = true
    return true
  }

  #activate(now: number): void {
    if (this.#pending === null || now < this.#pending.from) return
    this.#past = [...this.#past, this.#pending]
    this.#pending = null
  }

  at(moment: number): Moment<Set> {
    const all = this.#pending === null ? this.#past : [...this.#past, this.#pending]
    const index = all.findLastIndex(({ from }) => from <= moment)
    const found = index < this.#forgotten ? undefined : all[index]
    if (found !== undefined) return found.set
    // The stored sets are the former and the latest. A feed without a former set is unknown before its latest one.
    return this.#isAlone || all.length < 2 ? 'FeedUnknown' : 'ObservedTooEarly'
  }

  /** Times at which another set begins. */
  edges(): readonly number[] {
    return [...this.#past, ...(this.#pending === null ? [] : [this.#pending])].map(({ from }) => from)
  }
}
