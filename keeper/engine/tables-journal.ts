/** The journal on Postgres, whose appends bring the tables of readers in step with the state in the same transaction. */
import type pg from 'pg'
import { appendWithTables } from '../../db/engine-journal.ts'
import type { Statement } from '../../db/round-trip.ts'
import type { Entry } from '../../domain/exchange/apply.ts'
import type { Group, Journal } from './ports.ts'
import { append, createJournal } from './store.ts'
import type { TableWriter } from './tables/table-writer.ts'

export class TablesJournal implements Journal<Entry> {
  readonly #pool: pg.Pool
  readonly #read: Journal<Entry>['read']
  #writer: TableWriter | null = null
  /** By the rows of a group: what was collected when it was first appended. A repeated append has the same rows. */
  readonly #collected = new WeakMap<readonly Entry[], readonly Statement[]>()

  constructor(pool: pg.Pool) {
    this.#pool = pool
    this.#read = createJournal<Entry>(pool).read
  }

  /** From now on the state's changes are those of this owner. */
  write(writer: TableWriter): void {
    this.#writer = writer
  }

  read(after: number, most: number): Promise<readonly Group<Entry>[]> {
    return this.#read(after, most)
  }

  /** The first append of a group comes before the state changes again. */
  append(group: Group<Entry>): Promise<boolean> {
    const statements = this.#statementsOf(group.rows)
    return append(this.#pool, (client) => appendWithTables(client, group, statements))
  }

  #statementsOf(rows: readonly Entry[]): readonly Statement[] {
    // A group without rows finds out what became of another one.
    if (rows.length === 0) return []
    const known = this.#collected.get(rows)
    if (known !== undefined) return known
    const statements = this.#writer?.collect(rows) ?? []
    this.#collected.set(rows, statements)
    return statements
  }
}
