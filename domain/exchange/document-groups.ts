/**
 * Documents of a table grouped by a text, for example the open relay operations of an owner. A derived index:
 * it follows the table.
 */
import type { DocumentTable } from './document-table.ts'
import { PartedMap } from './parted-map.ts'

export interface DocumentGroupsOptions<Row> {
  readonly keyOf: (row: Row) => string
  /** Group of a row; null: none. */
  readonly groupOf: (row: Row) => string | null
}

export class DocumentGroups<Row extends object> {
  readonly #table: DocumentTable<Row>
  /** Keys by group. */
  readonly #groups = new PartedMap<Set<string>>()

  constructor(table: DocumentTable<Row>, { keyOf, groupOf }: DocumentGroupsOptions<Row>) {
    this.#table = table
    table.observe((before, after) => {
      const left = before === undefined ? null : groupOf(before)
      const joined = after === undefined ? null : groupOf(after)
      if (left === joined) return
      if (left !== null) this.#leave(left, keyOf(before as Row))
      if (joined !== null) this.#join(joined, keyOf(after as Row))
    })
  }

  /** In no particular order. */
  of(group: string): Row[] {
    return [...(this.#groups.get(group) ?? [])].map((key) => this.#table.need(key))
  }

  #join(group: string, key: string): void {
    this.#groups.set(group, (this.#groups.get(group) ?? new Set<string>()).add(key))
  }

  #leave(group: string, key: string): void {
    const keys = this.#groups.get(group)
    keys?.delete(key)
    if (keys?.size === 0) this.#groups.delete(group)
  }
}
