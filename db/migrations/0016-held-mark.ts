import { type Kysely, sql } from 'kysely'

/** A mark that triggers more orders than one transaction may change is held until all of them are triggered, also by another keeper. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table markets add column held_mark numeric(78, 0)`.execute(db)
  await sql`grant update (held_mark) on markets to clearbatch_keeper`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`alter table markets drop column held_mark`.execute(db)
}
