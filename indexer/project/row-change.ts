/** The types that all projections share: a journal row with its place, and the change that it makes to one row of a read table. */
import type { JournalRow } from '../../domain/journal/journal-row.ts'

/** A journal row with its place. */
export interface ShardEntry {
  readonly shard: string
  /** The shard's market; 0 for `accounts`. */
  readonly marketId: number
  readonly seq: number
  readonly row: JournalRow
}

/** The rows of each market, in their order; rows of the shard `accounts` have market 0. */
export const byMarket = (entries: readonly ShardEntry[]): Map<number, ShardEntry[]> =>
  Map.groupBy(entries, ({ marketId }) => marketId)

/** The change of one row (or, for fills, of one part's rows). `apply` receives undefined if the row does not exist yet. It must not mutate. */
export interface RowChange<Row> {
  readonly key: string
  readonly apply: (before: Row | undefined) => Row | undefined
}

/** 1, or -1 if the row rolls another back. */
export const signOfRow = (row: { readonly rollback: boolean }): 1 | -1 => (row.rollback ? -1 : 1)

/** An amount of a journal row, negated if the row rolls another back. */
export const signedWei = (row: { readonly rollback: boolean }, wei: string): bigint =>
  row.rollback ? -BigInt(wei) : BigInt(wei)

/** The rows of one read table that a chunk touches: first as loaded, then as each journal row leaves them. */
export class RowChanges<Row> {
  readonly #rows: Map<string, Row>
  readonly #changed = new Set<string>()

  constructor(loaded: Iterable<readonly [string, Row]>) {
    this.#rows = new Map(loaded)
  }

  get(key: string): Row | undefined {
    return this.#rows.get(key)
  }

  apply({ key, apply }: RowChange<Row>): void {
    const after = apply(this.#rows.get(key))
    if (after === undefined) this.#rows.delete(key)
    else this.#rows.set(key, after)
    this.#changed.add(key)
  }

  /** Changed rows that exist after the chunk. */
  changed(): Row[] {
    const rows = [...this.#changed].map((key) => this.#rows.get(key))
    return rows.filter((row) => row !== undefined)
  }

  /** Keys of changed rows that do not exist after the chunk. */
  removed(): string[] {
    return [...this.#changed].filter((key) => !this.#rows.has(key))
  }
}
