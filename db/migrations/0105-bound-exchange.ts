/** The exchange to which the database belongs. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
      create table bound_exchange (
        is_bound boolean primary key default true check (is_bound),
        chain_id bigint not null,
        margin_bank text not null
      );
      grant select, insert on bound_exchange to clearbatch_api, clearbatch_indexer, clearbatch_engine;
    `)
    .execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw('drop table bound_exchange').execute(db)
}
