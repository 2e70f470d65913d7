import { type Kysely, sql } from 'kysely'

/** Dead-man switches of connections to the live feed, renewed by the api process that holds the connection. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table connection_switches (
      connection_id text primary key,
      user_id bigint not null references users,
      timeout_seconds integer not null,
      fire_at bigint not null
    );
    create index connection_switches_by_time on connection_switches (fire_at);
    create index connection_switches_of_user on connection_switches (user_id, fire_at);
    grant select, insert, delete, update (timeout_seconds, fire_at) on connection_switches to clearbatch_api;
    grant select, delete on connection_switches to clearbatch_keeper
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table connection_switches`.execute(db)
}
