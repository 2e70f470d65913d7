import { type Kysely, sql } from 'kysely'

/**
 * The journal of the engine. `engine_groups` grows only at its end; `engine_ownership` changes only when another member
 * becomes the owner, so that an append waits for no renewal, which changes `engine_lease` alone.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table engine_groups (
      number bigint primary key,
      token bigint not null,
      version integer not null,
      rows json not null,
      before text not null,
      digest text not null
    );
    create table engine_ownership (token bigint primary key);
    create table engine_lease (
      token bigint primary key,
      renewals bigint not null,
      is_released boolean not null
    );
    insert into engine_ownership values (0);
    insert into engine_lease values (0, 0, true);
    grant select, insert on engine_groups to clearbatch_keeper;
    grant select, update on engine_ownership, engine_lease to clearbatch_keeper;
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table engine_groups, engine_ownership, engine_lease`.execute(db)
}
