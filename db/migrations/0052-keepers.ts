import { type Kysely, sql } from 'kysely'

/** What the running keepers announce to each other, so that they share the markets. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table keepers (
      owner text primary key,
      expires_at bigint not null,
      capacity integer,
      is_late boolean not null,
      markets integer[] not null
    );
    grant select, insert, delete, update (expires_at, capacity, is_late, markets) on keepers to clearbatch_keeper
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table keepers`.execute(db)
}
