import { type Kysely, sql } from 'kysely'

/**
 * A group of the engine is stored in one transaction with the tables that follow it, and all of that is sent at once: so a group that does not follow the
 * head, or of a stale owner, has to fail.
 */
const APPEND = `
  create function append_engine_group(
    new_number bigint, new_token bigint, new_version integer, new_rows json, new_before text, new_digest text
  ) returns void language plpgsql as $$
  begin
    -- The lock makes a takeover wait for the commit.
    perform from engine_ownership where token = new_token for share;
    if not found then
      raise exception 'the token % is not the current one', new_token using errcode = 'CB001';
    end if;
    insert into engine_groups (number, token, version, rows, before, digest)
    select new_number, new_token, new_version, new_rows, new_before, new_digest
    where new_number = 1 + coalesce((select max(number) from engine_groups), 0)
    on conflict (number) do nothing;
    if not found then
      raise exception 'the group % does not follow the head', new_number using errcode = 'CB001';
    end if;
    perform pg_notify('engine', new_number::text);
  end $$;
`

/** Roles belong to the whole server: the migration of another database may have created it, or may create it at the same time. */
const CREATE_ROLE = `
  do $$ begin
    if not exists (select from pg_roles where rolname = 'clearbatch_engine') then
      create role clearbatch_engine nologin;
    end if;
  exception when duplicate_object or unique_violation then null;
  end $$;
`

const DROP_ROLE = `
  do $$ begin
    drop role clearbatch_engine;
  exception when dependent_objects_still_exist or insufficient_privilege then null;
  end $$;
`

const WRITTEN = `
  shards, users, accounts, markets, price_averages, positions, orders, batches, fills, actions, funding_states, liquidations, adjustment_attempts,
  used_margin_nonces, margin_nonce_floors, session_keys, forwarder_nonces, relay_operations, relayers, cancel_switches, connection_switches,
  fired_switches, client_requests, chain_blocks
`
const DELETED = `
  funding_states, liquidations, used_margin_nonces, margin_nonce_floors, session_keys, forwarder_nonces, cancel_switches, connection_switches,
  fired_switches, chain_blocks, chain_logs, chain_steps
`

const GRANTS = `
  grant usage on schema public to clearbatch_engine;
  grant select on kysely_migration to clearbatch_engine;
  grant select, insert on engine_groups to clearbatch_engine;
  grant select, update on engine_ownership, engine_lease to clearbatch_engine;
  grant select, insert, update, delete on engine_checkpoints to clearbatch_engine;
  grant select, insert, delete on engine_checkpoint_chunks to clearbatch_engine;
  grant select, insert, update on ${WRITTEN} to clearbatch_engine;
  grant select, delete on ${DELETED} to clearbatch_engine;
  grant select, insert on journal, settlement_mismatches, used_reports to clearbatch_engine;
  grant select, update (next_block, bank_pause_ends_at) on chain_progress to clearbatch_engine;
  grant select on recent_reports to clearbatch_engine;
  grant select, update on sequence users_user_id_seq to clearbatch_engine;
`

/** The engine has a role of its own: it writes the tables of all other processes that follow its state. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(APPEND + CREATE_ROLE + GRANTS).execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
      drop function append_engine_group;
      revoke all on all tables in schema public from clearbatch_engine;
      revoke all on sequence users_user_id_seq from clearbatch_engine;
      revoke all on schema public from clearbatch_engine;
      ${DROP_ROLE}
    `)
    .execute(db)
}
