import { type Kysely, sql } from 'kysely'

/** What is left to apply of the newest block: each step is one transaction of some shards, and its row leaves with that transaction. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table chain_steps (
      block bigint not null references chain_blocks,
      step integer not null,
      stage integer not null,
      shards text[] not null,
      log_indexes integer[] not null,
      primary key (block, step)
    );
    grant select, insert, delete on chain_steps to clearbatch_indexer;
    grant update (shard, seq) on chain_logs to clearbatch_indexer
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    revoke update (shard, seq) on chain_logs from clearbatch_indexer;
    drop table chain_steps
  `.execute(db)
}
