/** The vocabulary of projections: where a log row stands, and what it does to the rows of a read table. */
import type { JournalRow } from '../../domain/journal/journal-row.ts'

/** A log row with its place. */
export interface ShardEntry {
  readonly shard: string
  /** Of the shard; 0 in `accounts`, whose rows belong to no market. */
  readonly marketId: number
  readonly seq: number
  readonly row: JournalRow
}

/** What a log row does to one subject of a read table. `apply` gets undefined where there is none yet, and must not mutate. */
export interface RowChange<Subject> {
  readonly key: string
  readonly apply: (before: Subject | undefined) => Subject | undefined
}

/** 1, or -1 where the row takes back another. */
export const signOfRow = (row: { readonly rollback: boolean }): 1 | -1 => (row.rollback ? -1 : 1)

/** An amount of the log, negated where the row takes back another. */
export const signedWei = (row: { readonly rollback: boolean }, wei: string): bigint =>
  row.rollback ? -BigInt(wei) : BigInt(wei)

/** The subjects that a chunk of log rows touches: as they were loaded, then as each row leaves them. */
export class RowChanges<Subject> {
  readonly #subjects: Map<string, Subject>
  readonly #changed = new Set<string>()

  constructor(loaded: Iterable<readonly [string, Subject]>) {
    this.#subjects = new Map(loaded)
  }

  get(key: string): Subject | undefined {
    return this.#subjects.get(key)
  }

  /** Applies the change; returns the subject before and after it. */
  apply({ key, apply }: RowChange<Subject>): { before: Subject | undefined; after: Subject | undefined } {
    const before = this.#subjects.get(key)
    const after = apply(before)
    if (after === undefined) this.#subjects.delete(key)
    else this.#subjects.set(key, after)
    this.#changed.add(key)
    return { before, after }
  }

  /** Subjects that a change left behind. */
  changed(): Subject[] {
    const subjects = [...this.#changed].map((key) => this.#subjects.get(key))
    return subjects.filter((subject) => subject !== undefined)
  }
}
