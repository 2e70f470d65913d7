import { type Kysely, sql } from 'kysely'

/**
 * Files of the public history of a market on a day (UTC), as they were when they were first built. `content_sha256` is that of the CSV: a later
 * build with another content is an error. `sha256` and `size` are those of the compressed file, which another compressor can change.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table history_files (
      kind text not null,
      market_id integer not null references markets,
      day bigint not null,
      rows bigint not null,
      content_sha256 text not null,
      sha256 text not null,
      size bigint not null,
      built_at bigint not null,
      primary key (market_id, day, kind)
    );
    grant select, insert on history_files to clearbatch_api;
    grant update (sha256, size) on history_files to clearbatch_api
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table history_files`.execute(db)
}
