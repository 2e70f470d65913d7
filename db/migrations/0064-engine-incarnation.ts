import { type Kysely, sql } from 'kysely'

/** Rises when the database is restored from a backup: no process believes what it knew of the history before. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table engine_ownership add column incarnation bigint not null default 1;
    grant select on engine_ownership to clearbatch_api, clearbatch_indexer;
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    revoke select on engine_ownership from clearbatch_api, clearbatch_indexer;
    alter table engine_ownership drop column incarnation;
  `.execute(db)
}
