/** Collects changes of a state table since its rows were last written to the database. */

import type { Columns } from '../../../db/state-tables.ts'
import type { StateCore } from '../../../domain/exchange/table.ts'

/** Place in the undo log of the state up to which the database has the changes. */
export class WrittenMark {
  readonly #core: StateCore
  #mark: number

  constructor(core: StateCore) {
    this.#core = core
    this.#mark = core.undo.mark
  }

  /** Moves the mark to the present state, which the database has or will have. */
  advance(): void {
    this.#mark = this.#core.undo.mark
  }

  get isUndoing(): boolean {
    return this.#core.undo.isUndoing
  }

  /**
   * Called with each change. True if the change undoes a written change, or one that a refused group would have
   * written.
   */
  isBelow(): boolean {
    const { undo } = this.#core
    if (!undo.isUndoing || undo.mark >= this.#mark) return false
    this.#mark = undo.mark
    return true
  }
}

interface Change<Row> {
  /** The row at the last collection; undefined if the database has none. */
  readonly stored: Row | undefined
  /**
   * False if the database may have another row than `stored`, because a group was rolled back after its statements were
   * collected.
   */
  readonly isCertain: boolean
  /** Columns that come from another table have changed. */
  readonly isTouched: boolean
  readonly row: Row | undefined
  /** The row that the state dropped last. Used only if no row is present. */
  readonly dropped: DroppedRow | undefined
}

export interface DroppedRow {
  readonly columns: Columns
  /** True if the database has the row as it was when the state dropped it. */
  readonly isStored: boolean
}

/** Rows by the statement that writes them. */
export interface ChangedRows {
  /** Inserted, or updated if they exist. */
  readonly put: Columns[]
  /** Existing rows to update. */
  readonly changed: Columns[]
  readonly dropped: DroppedRow[]
}

/** An observed table of either kind. */
export interface Observed<Row> {
  observe(observer: (before: Row | undefined, after: Row | undefined) => void): void
}

export interface ChangesOptions<Row> {
  readonly keyOf: (row: Row) => string | number
  /** Called for a present row, and for a dropped row before other rows are dropped with it. */
  readonly columnsOf: (row: Row) => Columns
  /** A present row is written again only when these columns have changed; all by default. */
  readonly comparedOf?: (row: Row) => Columns
}

export class Changes<Row extends object> {
  readonly #mark: WrittenMark
  readonly #keyOf: (row: Row) => string | number
  readonly #columnsOf: (row: Row) => Columns
  readonly #comparedOf: (row: Row) => Columns
  #changes = new Map<string | number, Change<Row>>()
  /** The changes of the last `take`. */
  #taken = new Map<string | number, Change<Row>>()

  constructor(
    mark: WrittenMark,
    table: Observed<Row>,
    { keyOf, columnsOf, comparedOf = columnsOf }: ChangesOptions<Row>,
  ) {
    this.#mark = mark
    this.#keyOf = keyOf
    this.#columnsOf = columnsOf
    this.#comparedOf = comparedOf
    table.observe((before, after) => this.#note(before, after))
  }

  /** Marks a present row whose columns of another table have changed. */
  touch(row: Row): void {
    const key = this.#keyOf(row)
    const known = this.#changes.get(key) ?? { stored: row, isCertain: true, row, dropped: undefined }
    this.#changes.set(key, { ...known, isTouched: true })
  }

  forget(): void {
    this.#changes = new Map()
  }

  /** Changes since the last call, without rows whose columns are unchanged. */
  take(): ChangedRows {
    const rows: ChangedRows = { put: [], changed: [], dropped: [] }
    for (const change of this.#changes.values()) this.#sort(change, rows)
    this.#taken = this.#changes
    this.forget()
    return rows
  }

  /**
   * Returns the last `take`, whose rows were not written, to the next `take`. The rows in the database are then
   * uncertain.
   */
  giveBack(): void {
    for (const [key, taken] of this.#taken) {
      const later = this.#changes.get(key)
      const { row } = later ?? taken
      const dropped = later?.dropped ?? taken.dropped
      this.#changes.set(key, {
        stored: undefined,
        isCertain: false,
        isTouched: true,
        row,
        dropped: dropped && { ...dropped, isStored: false },
      })
    }
    this.#taken = new Map()
  }

  #note(before: Row | undefined, after: Row | undefined): void {
    const key = this.#keyOf((after ?? before) as Row)
    const known = this.#changes.get(key)
    const stored = known === undefined ? before : known.stored
    const isCertain = !this.#mark.isBelow() && (known?.isCertain ?? true)
    const isDropped = before !== undefined && after === undefined && !this.#mark.isUndoing
    const dropped = isDropped
      ? { columns: this.#columnsOf(before), isStored: isCertain && before === stored && !known?.isTouched }
      : known?.dropped
    this.#changes.set(key, { stored, isCertain, isTouched: known?.isTouched ?? false, row: after, dropped })
  }

  #sort({ stored, isCertain, isTouched, row, dropped }: Change<Row>, rows: ChangedRows): void {
    if (row === undefined) {
      if (dropped !== undefined) rows.dropped.push(dropped)
      return
    }
    if (!isCertain || stored === undefined) rows.put.push(this.#columnsOf(row))
    else if (isTouched || this.#isChanged(row, stored)) rows.changed.push(this.#columnsOf(row))
  }

  #isChanged(row: Row, stored: Row): boolean {
    return row !== stored && !areEqual(this.#comparedOf(row), this.#comparedOf(stored))
  }
}

const areEqual = (a: Columns, b: Columns): boolean =>
  Object.keys(a).every((name) => Object.is(a[name], b[name]))
