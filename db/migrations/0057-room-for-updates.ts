import { type Kysely, sql } from 'kysely'

const TABLES = ['orders', 'fills', 'read.orders', 'read.fills']

/**
 * A row of these tables is changed two or three times within seconds of its insertion. In a full page each change moves the row to another
 * page and adds an entry to every index of the table; half of a page left free takes the changes in place.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of TABLES) await sql`alter table ${sql.table(table)} set (fillfactor = 50)`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const table of TABLES) await sql`alter table ${sql.table(table)} reset (fillfactor)`.execute(db)
}
