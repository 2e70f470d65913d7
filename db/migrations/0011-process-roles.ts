import { type Kysely, sql } from 'kysely'

const ROLES = 'clearbatch_api, clearbatch_keeper, clearbatch_indexer'

/** Roles belong to the whole server: the migration of another database may have created them, or may create them at the same time. */
const CREATE_ROLES = `
  do $$
  declare process text;
  begin
    foreach process in array string_to_array('${ROLES}', ', ') loop
      if not exists (select from pg_roles where rolname = process) then
        begin
          execute format('create role %I nologin', process);
        exception when duplicate_object or unique_violation then null;
        end;
      end if;
    end loop;
    -- Creating and dropping the keeper's schema takes the rights of its owner. A superuser has them.
    if not pg_has_role(current_user, 'clearbatch_keeper', 'usage') then
      execute format('grant clearbatch_keeper to %I', current_user);
    end if;
  end $$
`

/** A role that another database uses, or that was created by an administrator, stays. */
const DROP_ROLES = `
  do $$
  declare process text;
  begin
    foreach process in array string_to_array('${ROLES}', ', ') loop
      begin
        execute format('drop role %I', process);
      exception when dependent_objects_still_exist or insufficient_privilege then null;
      end;
    end loop;
  end $$
`

const GRANTS_TO_ALL = `
  grant usage on schema public to ${ROLES};
  grant select on kysely_migration to ${ROLES};
  grant select on shards, accounts, markets, positions, orders to ${ROLES};
  grant insert on journal to ${ROLES};
  grant update (head) on shards to ${ROLES};
`

const GRANTS_TO_API = `
  grant usage on schema read to clearbatch_api;
  grant select on all tables in schema read to clearbatch_api;
  grant select on users, api_keys, resting, oracle_reports, session_keys, cancel_switches, client_requests, faucet_requests,
    chain_progress to clearbatch_api;
  grant insert (address, created_at) on users to clearbatch_api;
  grant insert, update (key_hash, prefix, created_at) on api_keys to clearbatch_api;
  grant insert (user_id), update (reserved) on accounts to clearbatch_api;
  grant insert (order_id, market_id, seq, user_id, maker, signer, hash, signature, salt, side, type, price, quantity, trigger,
      leverage, reduce_only, expiration, alive_until, status, openable, reserved_price, reserved, accepted_at),
    update (status, status_reason, closing_reason, note, ended_at, openable, reserved) on orders to clearbatch_api;
  grant insert, delete, update (timeout_seconds, armed_at, fire_at) on cancel_switches to clearbatch_api;
  -- The update right is needed to lock the rows that are pruned.
  grant insert, delete, update (created_at) on client_requests to clearbatch_api;
  grant insert (kind, user_id, payload, status, tx_hash, error, created_at) on faucet_requests to clearbatch_api;
`

const GRANTS_TO_KEEPER = `
  grant select on journal, oracle_reports, batches, fills, actions, relayers, relayer_transactions, faucet_requests, leases,
    cancel_switches, fired_switches to clearbatch_keeper;
  grant update (reserved) on accounts to clearbatch_keeper;
  grant update (mode, last_batch_id, last_action_id, last_as_of, last_price, last_price_at) on markets to clearbatch_keeper;
  grant insert (user_id, market_id, matched_size, matched_entry_notional, matched_folded_margin, matched_leverage),
    update (matched_size, matched_entry_notional, matched_folded_margin, matched_leverage) on positions to clearbatch_keeper;
  grant update (seq, status, status_reason, note, settling, closing_reason, openable, reserved_price, reserved, held, partial_slot,
    triggered, ended_at) on orders to clearbatch_keeper;
  grant insert, update (status) on batches, fills to clearbatch_keeper;
  grant insert (market_id, queue_no, kind, batch_id, part, as_of, status, created_at), update (status, action_id, relayer, nonce)
    on actions to clearbatch_keeper;
  grant insert, update (next_nonce) on relayers to clearbatch_keeper;
  grant insert, update (status, error, broadcast_at, block) on relayer_transactions to clearbatch_keeper;
  grant update (status, tx_hash, error) on faucet_requests to clearbatch_keeper;
  grant insert, update (owner, token, expires_at) on leases to clearbatch_keeper;
  grant delete on cancel_switches to clearbatch_keeper;
  grant insert, delete on fired_switches to clearbatch_keeper;
`

const GRANTS_TO_INDEXER = `
  grant usage on schema read to clearbatch_indexer;
  grant select on all tables in schema read to clearbatch_indexer;
  grant insert, update, delete, truncate on read.projection, read.users, read.markets, read.orders, read.order_changes, read.fills,
    read.positions, read.balances, read.book_levels, read.batches, read.arrivals to clearbatch_indexer;
  grant select on journal, users, batches, fills, actions, session_keys, chain_blocks, chain_logs, chain_progress,
    settlement_mismatches to clearbatch_indexer;
  grant select (tx_hash, relayer, nonce) on relayer_transactions to clearbatch_indexer;
  grant update (epoch) on shards to clearbatch_indexer;
  grant insert (address, created_at) on users to clearbatch_indexer;
  grant insert (user_id), update (free, pending_withdrawal, reserved) on accounts to clearbatch_indexer;
  grant update (mode) on markets to clearbatch_indexer;
  grant insert, update (size, entry_notional, folded_margin, leverage, matched_size, matched_entry_notional,
    matched_folded_margin, matched_leverage) on positions to clearbatch_indexer;
  grant update (status, status_reason, note, filled, settling, closing_reason, openable, reserved, held, ended_at) on orders
    to clearbatch_indexer;
  grant update (status) on batches, fills, actions to clearbatch_indexer;
  grant insert, delete, update (permissions, registered_at, expires_at, revoked_at, block) on session_keys to clearbatch_indexer;
  grant insert, delete on chain_blocks, chain_logs to clearbatch_indexer;
  grant update (confirmed) on chain_logs to clearbatch_indexer;
  grant insert, update (next_block, head, completed_at) on chain_progress to clearbatch_indexer;
  grant insert on settlement_mismatches to clearbatch_indexer;
`

/**
 * Creates one group role per process and grants it exactly what the process writes; login roles of the processes are members. Only its
 * triggers write `resting`, with the rights of the owner. The schema of the keeper's queue is dropped and created with the keeper as owner:
 * it stores wake-ups only, which may be lost.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    ${sql.raw(CREATE_ROLES)};
    ${sql.raw(GRANTS_TO_ALL + GRANTS_TO_API + GRANTS_TO_KEEPER + GRANTS_TO_INDEXER)}
    alter function rest_inserted_orders() security definer set search_path = pg_catalog, public, pg_temp;
    alter function rest_updated_orders() security definer set search_path = pg_catalog, public, pg_temp;
    drop schema if exists bullmq cascade;
    create schema bullmq authorization clearbatch_keeper
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop schema if exists bullmq cascade;
    alter function rest_inserted_orders() security invoker reset search_path;
    alter function rest_updated_orders() security invoker reset search_path;
    revoke all on all tables in schema public, read from ${sql.raw(ROLES)};
    revoke all on schema public, read from ${sql.raw(ROLES)};
    ${sql.raw(DROP_ROLES)}
  `.execute(db)
}
