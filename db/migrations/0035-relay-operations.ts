import { type Kysely, sql } from 'kysely'

/**
 * Requests of owners that the exchange relays: registrations and revocations of session keys, and raised minimums of margin nonces. The
 * indexer follows the forwarder's nonces and the minimums themselves.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table relay_operations (
      operation_id text primary key,
      user_id bigint not null references users,
      kind text not null check (kind in ('register_session_key', 'revoke_session_key', 'invalidate_margin_nonces')),
      session_key text,
      market_id integer references markets,
      minimum numeric(78, 0),
      owner text not null,
      target text not null,
      gas bigint not null,
      nonce bigint not null,
      deadline bigint not null,
      data text not null,
      signature text not null,
      status text not null check (status in ('QUEUED', 'RELAYING', 'CONFIRMED', 'FAILED')),
      failure text,
      reason text,
      relayer text,
      relayer_nonce bigint,
      tx_hash text,
      block bigint,
      created_at bigint not null,
      updated_at bigint not null,
      check ((kind = 'invalidate_margin_nonces') = (session_key is null)),
      check ((kind = 'invalidate_margin_nonces') = (market_id is not null and minimum is not null))
    );
    create index relay_operations_by_nonce on relay_operations (owner, nonce);
    create index relay_operations_of_user on relay_operations (user_id, created_at);
    create index relay_operations_of_key on relay_operations (owner, session_key) where session_key is not null;
    create index relay_operations_open on relay_operations (owner, nonce) where status in ('QUEUED', 'RELAYING');
    create table forwarder_nonces (signer text primary key, next_nonce bigint not null, block bigint not null);
    create table margin_nonce_floors (
      market_id integer not null references markets,
      account text not null,
      minimum numeric(78, 0) not null,
      block bigint not null,
      primary key (market_id, account)
    );
    grant select on relay_operations, forwarder_nonces to clearbatch_api, clearbatch_keeper, clearbatch_indexer;
    grant select on margin_nonce_floors to clearbatch_api, clearbatch_keeper, clearbatch_indexer;
    grant select on relayers to clearbatch_api;
    grant select on chain_blocks to clearbatch_keeper;
    grant insert (operation_id, user_id, kind, session_key, market_id, minimum, owner, target, gas, nonce, deadline, data, signature,
      status, created_at, updated_at) on relay_operations to clearbatch_api;
    grant update (status, failure, reason, relayer, relayer_nonce, tx_hash, updated_at) on relay_operations to clearbatch_keeper;
    grant update (status, failure, reason, tx_hash, block, updated_at) on relay_operations to clearbatch_indexer;
    grant insert, delete, update (next_nonce, block) on forwarder_nonces to clearbatch_indexer;
    grant insert, delete, update (minimum, block) on margin_nonce_floors to clearbatch_indexer
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    revoke select on relayers from clearbatch_api;
    revoke select on chain_blocks from clearbatch_keeper;
    drop table relay_operations, forwarder_nonces, margin_nonce_floors
  `.execute(db)
}
