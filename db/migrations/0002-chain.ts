import { type Kysely, sql } from 'kysely'

/** What the indexer has recorded of the chain: blocks with their parents, logs of the exchange's contracts, and progress. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table chain_blocks (
      number bigint primary key,
      hash text not null,
      parent_hash text not null,
      timestamp bigint not null
    );

    create table chain_logs (
      block bigint not null references chain_blocks,
      log_index integer not null,
      tx_hash text not null,
      address text not null,
      topics text[] not null,
      data text not null,
      shard text,
      seq bigint,
      confirmed boolean not null default false,
      primary key (block, log_index)
    );
    create index chain_logs_unconfirmed on chain_logs (block) where not confirmed;

    create table chain_progress (
      chain_id bigint primary key,
      genesis_hash text not null,
      next_block bigint not null,
      head bigint not null,
      completed_at bigint not null
    );

    create table settlement_mismatches (
      market_id integer not null references markets,
      block bigint not null,
      tx_hash text not null,
      batch_id bigint,
      part integer,
      failure_kind text not null,
      failure_reason text not null,
      found_at bigint not null,
      primary key (tx_hash, failure_kind)
    );
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table settlement_mismatches, chain_progress, chain_logs, chain_blocks`.execute(db)
}
