/** A part of the tables: what it writes for a group. */
import type { Statement } from '../../../db/round-trip.ts'
import type { Columns, StateTable } from '../../../db/state-tables.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { type ChangedRows, Changes, type ChangesOptions, type Observed, type WrittenMark } from './changes.ts'

export interface TablePart {
  /** Statements for what has changed since the last call. `group`: the rows that have changed it, of one group or of several. */
  collect(group: readonly Entry[]): Statement[]
  /** The last collection was not written and belongs to the next collection. */
  giveBack(): void
  /** The tables have the present state. */
  forget(): void
}

/** One statement, or none if there are no rows. */
export const statements = <Row>(
  write: (rows: readonly Row[]) => Statement,
  rows: readonly Row[],
): Statement[] => (rows.length === 0 ? [] : [write(rows)])

/** Rows of the group of one kind, with their places. */
export type Placed<Kind extends JournalRow['kind']> = Omit<Entry, 'row'> & {
  readonly row: Extract<JournalRow, { readonly kind: Kind }>
}

export const rowsOf = <Kind extends JournalRow['kind']>(
  group: readonly Entry[],
  kind: Kind,
): Placed<Kind>[] => group.filter(({ row }) => row.kind === kind) as unknown as Placed<Kind>[]

/** Columns of dropped rows that the database does not have yet. */
export const unwritten = ({ dropped }: ChangedRows): Columns[] =>
  dropped.filter(({ isStored }) => !isStored).map(({ columns }) => columns)

/** Rows that the state drops stay in the table as they were at last. */
export const keeping = (table: Pick<StateTable, 'put' | 'change'>, rows: ChangedRows): Statement[] => [
  ...statements(table.put, [...rows.put, ...unwritten(rows)]),
  ...statements(table.change, rows.changed),
]

/**
 * The same for tables with a second index that begins like the key. A plan of `change` that was made while the table was empty might use that index for
 * ever; `put` finds rows by the key alone.
 */
export const keepingByKey = (table: Pick<StateTable, 'put'>, rows: ChangedRows): Statement[] =>
  statements(table.put, [...rows.put, ...rows.changed, ...unwritten(rows)])

/** Rows that the state drops are deleted. */
export const deleting = (table: StateTable, { put, changed, dropped }: ChangedRows): Statement[] => [
  ...statements(
    table.remove,
    dropped.map(({ columns }) => columns),
  ),
  ...statements(table.put, [...put, ...changed]),
]

/** A table that follows one table of the state. */
export function following<Row extends object>(
  mark: WrittenMark,
  observed: Observed<Row>,
  options: ChangesOptions<Row>,
  write: (rows: ChangedRows, group: readonly Entry[]) => Statement[],
): TablePart {
  const changes = new Changes(mark, observed, options)
  return {
    collect: (group) => write(changes.take(), group),
    giveBack: () => changes.giveBack(),
    forget: () => changes.forget(),
  }
}
