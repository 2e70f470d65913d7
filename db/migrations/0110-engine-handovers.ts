/** Creates the table of fences that an owner of the journal leaves to its successor, so that a planned handover refuses no command. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
      create table engine_handovers (
        token bigint primary key,
        fences json not null,
        refused_ms double precision
      );
      grant select, insert, delete on engine_handovers to clearbatch_engine;
    `)
    .execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw('drop table engine_handovers').execute(db)
}
