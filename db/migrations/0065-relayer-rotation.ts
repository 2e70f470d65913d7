import { type Kysely, sql } from 'kysely'

/** A lane may change its relayer key: it was unique, so a keeper with another key never settled again. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table relayers drop constraint relayers_lane_key;
    alter table relayers add column registered_at bigint not null default 0;
    create table relayer_choices (
      lane text primary key,
      address text not null,
      chosen_at bigint not null
    );
    grant update (registered_at) on relayers to clearbatch_keeper;
    grant select on relayer_choices to clearbatch_keeper
  `.execute(db)
}

/** Fails if a lane has had two keys: the version before cannot run it. */
export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop table relayer_choices;
    alter table relayers drop column registered_at;
    alter table relayers add constraint relayers_lane_key unique (lane)
  `.execute(db)
}
