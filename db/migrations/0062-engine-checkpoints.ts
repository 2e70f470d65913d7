import { type Kysely, sql } from 'kysely'

/** Checkpoints of the engine's state: a start loads the newest complete one and applies the groups after it. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table engine_checkpoints (
      checkpoint_id bigint generated always as identity primary key,
      number bigint not null,
      state_version integer not null,
      rows bigint not null,
      at bigint not null,
      digest text not null,
      is_complete boolean not null default false
    );
    create table engine_checkpoint_chunks (
      checkpoint_id bigint not null references engine_checkpoints on delete cascade,
      place integer not null,
      table_no integer not null,
      bytes bytea not null,
      primary key (checkpoint_id, place)
    );
    grant select, insert, update, delete on engine_checkpoints to clearbatch_keeper;
    grant select, insert, delete on engine_checkpoint_chunks to clearbatch_keeper;
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table engine_checkpoint_chunks, engine_checkpoints`.execute(db)
}
