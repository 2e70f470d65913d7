import { type Kysely, sql } from 'kysely'

/**
 * Adjustment attempts: accepted by the api, executed by the keeper, committed by the indexer. The api accepts one per account and
 * market at a time; a fork can return several to flight, so no index is unique. `used_margin_nonces`: the nonces of adjustments that the
 * chain has executed.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table adjustment_attempts (
      adjustment_id text primary key,
      market_id integer not null references markets,
      user_id bigint not null references users,
      digest text not null,
      kind text not null check (kind in ('add_margin', 'remove_margin', 'adjust_leverage')),
      nonce bigint not null,
      request jsonb not null,
      status text not null
        check (status in ('PREPARED', 'SIGNED', 'SUBMITTED', 'COMMITTED', 'ABORTED', 'RECEIPT_RECONCILIATION_FAILED')),
      hold numeric(78, 0) not null,
      held numeric(78, 0) not null,
      pays numeric(78, 0) not null,
      cancelled_orders integer not null,
      as_of bigint,
      relayer text,
      relayer_nonce bigint,
      tx_hash text,
      moved numeric(78, 0),
      max_removable numeric(78, 0),
      gas_used bigint,
      failure_kind text,
      failure_reason text,
      seq bigint not null,
      created_at bigint not null,
      updated_at bigint not null,
      unique (market_id, digest),
      check (held in (0, hold))
    );
    create index adjustments_in_flight on adjustment_attempts (market_id, user_id)
      where status in ('PREPARED', 'SIGNED', 'SUBMITTED');
    create index adjustments_aborted on adjustment_attempts (market_id, user_id, updated_at) where status = 'ABORTED';
    create index adjustments_by_margin_nonce on adjustment_attempts (market_id, user_id, nonce);
    create index adjustments_by_transaction on adjustment_attempts (relayer, relayer_nonce);
    create table used_margin_nonces (
      market_id integer not null references markets,
      user_id bigint not null references users,
      nonce numeric(20, 0) not null,
      primary key (market_id, user_id, nonce)
    );
    create table read.adjustment_attempts (
      adjustment_id text primary key, market_id integer not null, user_id bigint not null, kind text not null, status text not null,
      amount numeric not null, new_leverage integer, tx_hash text, failure_kind text, failure_reason text,
      created_at bigint not null, updated_at bigint not null
    );
    create index read_adjustments_of_user on read.adjustment_attempts (user_id, created_at, adjustment_id);
    create index read_adjustments_in_market on read.adjustment_attempts (user_id, market_id, created_at, adjustment_id);
    create index read_adjustments_by_status on read.adjustment_attempts (user_id, status, created_at, adjustment_id);
    alter table relayer_transactions add column gas_used bigint;
    grant update (gas_used) on relayer_transactions to clearbatch_keeper;
    grant select (gas_used) on relayer_transactions to clearbatch_indexer;
    grant select, insert on adjustment_attempts to clearbatch_api;
    grant select, update (status, held, as_of, relayer, relayer_nonce, tx_hash, max_removable, failure_kind, failure_reason, seq,
      updated_at) on adjustment_attempts to clearbatch_keeper;
    grant select, update (status, held, tx_hash, moved, gas_used, failure_kind, failure_reason, seq, updated_at)
      on adjustment_attempts to clearbatch_indexer;
    grant select on used_margin_nonces, leases to clearbatch_api;
    grant select, insert, delete on used_margin_nonces to clearbatch_indexer;
    grant insert, update, delete, truncate on read.adjustment_attempts to clearbatch_indexer;
    grant select on read.adjustment_attempts to clearbatch_api, clearbatch_indexer
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table relayer_transactions drop column gas_used;
    revoke select on leases from clearbatch_api;
    drop table adjustment_attempts, used_margin_nonces, read.adjustment_attempts;
    delete from read.places where projection = 'adjustments'
  `.execute(db)
}
