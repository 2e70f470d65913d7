/** Changes in a table of the state since its rows were last written to the database. */

import type { Columns } from '../../../db/state-tables.ts'
import type { StateCore } from '../../../domain/exchange/table.ts'

/** Changes of the state behind this place of its undo log are not written to the database. */
export class WrittenMark {
  readonly #core: StateCore
  #mark: number

  constructor(core: StateCore) {
    this.#core = core
    this.#mark = core.undo.mark
  }

  /** The database has, or will have, the present state. */
  advance(): void {
    this.#mark = this.#core.undo.mark
  }

  get isUndoing(): boolean {
    return this.#core.undo.isUndoing
  }

  /** Called with each change: whether it takes back one that was written, or that a refused group should have written. */
  isBelow(): boolean {
    const { undo } = this.#core
    if (!undo.isUndoing || undo.mark >= this.#mark) return false
    this.#mark = undo.mark
    return true
  }
}

interface Change<Row> {
  /** The row that the database has; undefined: none. */
  readonly stored: Row | undefined
  /** False: the database may have another row than `stored`, because a group was taken back after its statements were collected. */
  readonly isCertain: boolean
  /** Columns that come from another table have changed. */
  readonly isTouched: boolean
  readonly row: Row | undefined
  /** The row that the state has dropped last. It counts if there is no present row. */
  readonly dropped: DroppedRow | undefined
}

export interface DroppedRow {
  readonly columns: Columns
  /** The database has the row as it was when the state dropped it. */
  readonly isStored: boolean
}

/** Rows by the statement that writes them. */
export interface ChangedRows {
  /** To be inserted, or changed if they exist. */
  readonly put: Columns[]
  /** They exist in the database. */
  readonly changed: Columns[]
  readonly dropped: DroppedRow[]
}

/** A table of either kind, as far as it is observed. */
export interface Observed<Row> {
  observe(observer: (before: Row | undefined, after: Row | undefined) => void): void
}

export interface ChangesOptions<Row> {
  readonly keyOf: (row: Row) => string | number
  /** Called for the present row, and for a dropped one before anything else is dropped with it. */
  readonly columnsOf: (row: Row) => Columns
}

export class Changes<Row extends object> {
  readonly #mark: WrittenMark
  readonly #keyOf: (row: Row) => string | number
  readonly #columnsOf: (row: Row) => Columns
  #changes = new Map<string | number, Change<Row>>()
  /** The changes of the last `take`. */
  #taken = new Map<string | number, Change<Row>>()

  constructor(mark: WrittenMark, table: Observed<Row>, { keyOf, columnsOf }: ChangesOptions<Row>) {
    this.#mark = mark
    this.#keyOf = keyOf
    this.#columnsOf = columnsOf
    table.observe((before, after) => this.#note(before, after))
  }

  /** Marks a present row whose columns have changed with another table. */
  touch(row: Row): void {
    const key = this.#keyOf(row)
    const known = this.#changes.get(key) ?? { stored: row, isCertain: true, row, dropped: undefined }
    this.#changes.set(key, { ...known, isTouched: true })
  }

  forget(): void {
    this.#changes = new Map()
  }

  /** The changes since the last call. Rows that are as before, or differ only in what is no column, are left out. */
  take(): ChangedRows {
    const rows: ChangedRows = { put: [], changed: [], dropped: [] }
    for (const change of this.#changes.values()) this.#sort(change, rows)
    this.#taken = this.#changes
    this.forget()
    return rows
  }

  /** The rows of the last `take` were not written, and belong to the next one. Whether the database has its rows is uncertain. */
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
    if (isCertain && !isTouched && row === stored) return
    const columns = this.#columnsOf(row)
    if (!isCertain || stored === undefined) rows.put.push(columns)
    else if (isTouched || !areEqual(columns, this.#columnsOf(stored))) rows.changed.push(columns)
  }
}

const areEqual = (a: Columns, b: Columns): boolean =>
  Object.keys(a).every((name) => Object.is(a[name], b[name]))
