import { type Kysely, sql } from 'kysely'

const RECORDED = `
  journal, users, accounts, markets, positions, orders, batches, fills, actions, funding_states, session_keys, relay_operations, forwarder_nonces,
  margin_nonce_floors, adjustment_attempts, used_margin_nonces, chain_blocks, settlement_mismatches
`

/**
 * The engine decides what a block changes and writes it, so the indexer may no longer write the exchange's tables, and logs and steps of blocks have no
 * writer any more. The indexer still follows the head (`chain_progress`) and projects.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
      drop table chain_steps, chain_logs;
      revoke insert, update, delete on ${RECORDED} from clearbatch_indexer;
      revoke update (head) on shards from clearbatch_indexer;
      revoke update (next_block, bank_pause_ends_at) on chain_progress from clearbatch_indexer;
    `)
    .execute(db)
}

const TABLES = `
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
  create table chain_steps (
    block bigint not null references chain_blocks,
    step integer not null,
    stage integer not null,
    shards text[] not null,
    log_indexes integer[] not null,
    primary key (block, step)
  );
  grant select, insert, delete on chain_logs, chain_steps to clearbatch_indexer;
  grant update (confirmed, shard, seq) on chain_logs to clearbatch_indexer;
  grant select, delete on chain_logs, chain_steps to clearbatch_engine;
`

const GRANTS = `
  grant update (head) on shards to clearbatch_indexer;
  grant insert on journal, settlement_mismatches to clearbatch_indexer;
  grant insert (address, created_at) on users to clearbatch_indexer;
  grant insert (user_id), update (free, pending_withdrawal, reserved) on accounts to clearbatch_indexer;
  grant update (mode, expires_at, settling_at, dispute_window, terms, backstop, backstop_cap, final_report, ended) on markets to clearbatch_indexer;
  grant insert, update (size, entry_notional, folded_margin, leverage, matched_size, matched_entry_notional, matched_folded_margin, matched_leverage)
    on positions to clearbatch_indexer;
  grant update (status, status_reason, note, filled, settling, closing_reason, closed_by, openable, reserved, held, ended_at) on orders
    to clearbatch_indexer;
  grant update (status) on batches, fills to clearbatch_indexer;
  grant update (status, failure) on actions to clearbatch_indexer;
  grant insert, delete on funding_states, used_margin_nonces, chain_blocks to clearbatch_indexer;
  grant insert, delete, update (permissions, registered_at, expires_at, revoked_at, block) on session_keys to clearbatch_indexer;
  grant update (status, failure, reason, tx_hash, block, updated_at) on relay_operations to clearbatch_indexer;
  grant insert, delete, update (next_nonce, block) on forwarder_nonces to clearbatch_indexer;
  grant insert, delete, update (minimum, block) on margin_nonce_floors to clearbatch_indexer;
  grant update (status, held, tx_hash, moved, gas_used, failure_kind, failure_reason, seq, updated_at) on adjustment_attempts
    to clearbatch_indexer;
  grant update (next_block, bank_pause_ends_at) on chain_progress to clearbatch_indexer;
`

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw(TABLES + GRANTS).execute(db)
}
