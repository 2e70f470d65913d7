import { type Kysely, sql } from 'kysely'

/**
 * What each chunk of the projector changed for readers, for the live feed. The tables are unlogged: they cost no write-ahead log, and after a
 * crash of the database, which may lose the last commits of the read model, they are empty, so that a new epoch begins.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create unlogged table read.feed_state (
      id integer primary key default 1 check (id = 1), epoch bigint not null, first_seq bigint not null, seq bigint not null
    ) with (fillfactor = 10);
    create unlogged table read.feed_heads (topic text primary key, seq bigint not null, prev_seq bigint not null)
      with (fillfactor = 50);
    create unlogged table read.feed (
      seq bigint primary key, at bigint not null, shard text not null, shard_epoch integer not null, shard_seq bigint not null,
      batch_id bigint, heads json not null, levels json, balances json, changes text not null
    );
    alter table read.feed alter column changes set storage external;
    grant insert, update, delete, truncate on read.feed_state, read.feed_heads, read.feed to clearbatch_indexer;
    grant select on read.feed_state, read.feed_heads, read.feed to clearbatch_api, clearbatch_indexer
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table read.feed, read.feed_heads, read.feed_state`.execute(db)
}
