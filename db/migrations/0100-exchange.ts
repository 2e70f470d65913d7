import { type Kysely, sql } from 'kysely'

const ROLES = 'clearbatch_api, clearbatch_keeper, clearbatch_indexer, clearbatch_engine'

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

/** `db/schema.ts` says what each column contains. Tables whose rows change often leave room on their pages, so that no index changes with them. */
const TABLES = `
  -- Accounts and markets

  create table users (
    user_id bigint generated always as identity primary key,
    address text not null unique,
    created_at bigint not null
  );

  create table markets (
    market_id integer primary key,
    symbol text not null unique,
    kind text not null,
    trader text not null unique,
    spec jsonb not null,
    mode text not null default 'open',
    last_batch_id bigint not null default 0,
    last_action_id bigint not null default 0,
    last_as_of bigint not null default 0,
    last_price bigint,
    last_price_at bigint,
    last_batch_head bigint not null default 0,
    price_protection numeric(78, 0) not null,
    next_price_protection numeric(78, 0),
    next_price_protection_at bigint,
    held_mark numeric(78, 0),
    expires_at bigint not null default 0,
    settling_at bigint not null default 0,
    dispute_window bigint not null default 0,
    calendar text check (calendar in ('NYSE', 'ALWAYS_OPEN')),
    terms jsonb,
    fee_periods jsonb not null default '[]',
    reserved_fee numeric(78, 0) not null default 0,
    reserving_after bigint,
    backstop text,
    backstop_cap numeric(78, 0) not null default 0,
    final_report jsonb,
    ended jsonb,
    impact_notional numeric(78, 0),
    constraint announced_protection check ((next_price_protection is null) = (next_price_protection_at is null))
  );

  create table calendar_exceptions (
    calendar text check (calendar = 'NYSE'),
    day date,
    opens smallint,
    closes smallint,
    reason text not null check ((length(reason) >= 1) and (length(reason) <= 200)),
    created_at bigint not null,
    primary key (calendar, day),
    check ((opens is null) = (closes is null)),
    check ((opens is null) or ((570 <= opens) and (opens < closes) and (closes <= 960)))
  );

  create table final_prices (
    market_id integer references markets,
    number integer,
    price numeric(78, 0) not null,
    stated_by text not null,
    reason text not null,
    stated_at bigint not null,
    primary key (market_id, number)
  );

  create table accounts (
    user_id bigint primary key references users,
    free numeric(78, 0) not null default 0,
    pending_withdrawal numeric(78, 0) not null default 0,
    reserved numeric(78, 0) not null default 0 check (reserved >= 0)
  );

  create table positions (
    user_id bigint references users,
    market_id integer references markets,
    size bigint not null default 0,
    entry_notional numeric(78, 0) not null default 0,
    folded_margin numeric(78, 0) not null default 0,
    leverage integer not null default 0,
    matched_size bigint not null default 0,
    matched_entry_notional numeric(78, 0) not null default 0,
    matched_folded_margin numeric(78, 0) not null default 0,
    matched_leverage integer not null default 0,
    primary key (user_id, market_id)
  );
  create index positions_of_market on positions (market_id);
  create index positions_open on positions (market_id) where matched_size <> 0;
  create index positions_unclaimed on positions (market_id, user_id) where size <> 0;

  create table price_averages (
    market_id integer primary key references markets,
    basis numeric(78, 0) not null,
    basis_at bigint not null,
    premium_at bigint not null,
    premium jsonb not null
  );

  -- Credentials and settings of the api

  create table api_keys (
    user_id bigint references users,
    key_hash bytea not null unique,
    prefix text not null,
    created_at bigint not null,
    scope text not null default 'trade' check (scope in ('trade', 'read')),
    allowed_addresses text[],
    last_used_at bigint,
    name text default 'default' check (name ~ '^[a-z0-9][a-z0-9_-]{0,31}$'),
    primary key (user_id, name)
  );

  create table auth_challenges (
    challenge_id uuid primary key,
    user_id bigint not null references users,
    credential text not null check (credential in ('api_key', 'identity_token')),
    action text not null check (action in ('rotate_api_key', 'create_api_key')),
    message text not null,
    created_at bigint not null,
    expires_at bigint not null,
    used_at bigint
  );
  create index auth_challenges_by_age on auth_challenges (created_at);
  create index auth_challenges_of_user on auth_challenges (user_id, created_at);

  create table client_requests (
    user_id bigint references users,
    client_request_id text,
    digest bytea not null,
    answer text not null,
    created_at bigint not null,
    primary key (user_id, client_request_id)
  );
  alter table client_requests alter column answer set storage external;
  create index client_requests_by_age on client_requests (created_at);

  create table proof_keys (
    is_only boolean default true primary key check (is_only),
    key bytea not null
  );

  create table announcements (
    announcement_id bigint generated always as identity primary key,
    kind text not null check (kind in ('notice', 'maintenance')),
    title text not null check ((length(title) >= 1) and (length(title) <= 200)),
    body text not null check (length(body) <= 4000),
    market_id integer references markets,
    starts_at bigint,
    ends_at bigint,
    created_at bigint not null,
    withdrawn_at bigint,
    check (((starts_at is null) = (ends_at is null)) and ((starts_at < ends_at) is not false)),
    check ((kind = 'maintenance') = (starts_at is not null))
  );
  create index announcements_maintenance on announcements (ends_at) where (kind = 'maintenance') and (withdrawn_at is null);

  create table history_files (
    kind text,
    market_id integer references markets,
    day bigint,
    rows bigint not null,
    content_sha256 text not null,
    sha256 text not null,
    size bigint not null,
    built_at bigint not null,
    primary key (market_id, day, kind)
  );

  -- The journal that readers follow

  create table shards (
    shard text primary key,
    epoch integer not null default 1,
    head bigint not null default 0
  );

  create table journal (
    shard text,
    seq bigint,
    row json not null,
    primary key (shard, seq)
  );

  -- Orders, batches and actions

  create table orders (
    order_id text primary key,
    market_id integer not null,
    seq bigint not null,
    user_id bigint not null,
    maker text not null,
    signer text,
    hash text not null unique,
    signature text,
    salt bigint not null,
    side text not null,
    type text not null,
    price bigint not null,
    quantity bigint not null,
    trigger bigint not null,
    leverage integer not null,
    reduce_only boolean not null,
    expiration bigint not null,
    status text not null,
    status_reason text,
    note text,
    filled bigint not null default 0,
    settling bigint not null default 0,
    closing_reason text,
    openable bigint not null,
    reserved_price bigint not null,
    reserved numeric(78, 0) not null,
    held numeric(78, 0) not null default 0,
    partial_slot integer,
    accepted_at bigint not null,
    ended_at bigint,
    alive_until bigint not null,
    triggered jsonb,
    closed_by text,
    forced boolean not null default false,
    client_order_id text,
    time_in_force text not null default 'gtc' check (time_in_force in ('gtc', 'ioc')),
    post_only boolean not null default false,
    unused bigint not null default 0 check (unused >= 0),
    replaces text,
    bracket bigint not null default 0 check ((bracket >= 0) and (bracket <= 4294967295)),
    builder text,
    check ((filled + settling) <= quantity),
    constraint orders_signed check (forced or ((signer is not null) and (signature is not null)))
  ) with (fillfactor = 50);
  create index orders_active on orders (market_id, user_id) where ended_at is null;
  create index orders_by_client_id on orders (user_id, client_order_id, accepted_at) where client_order_id is not null;
  create unique index orders_by_salt on orders (market_id, maker, salt) where not forced;
  create index orders_live_by_client_id on orders (user_id, client_order_id) where (client_order_id is not null) and (ended_at is null);
  create index orders_triggered on orders (market_id, seq) where triggered is not null;

  create table batches (
    market_id integer references markets,
    batch_id bigint,
    as_of bigint not null,
    price bigint not null,
    lo bigint not null,
    hi bigint not null,
    volume bigint not null,
    demand bigint not null,
    supply bigint not null,
    rule text not null,
    parts integer not null,
    oracle_price numeric(78, 0) not null,
    oracle_at bigint not null,
    oracle_signatures text not null,
    maker_fee numeric(78, 0) not null,
    taker_fee numeric(78, 0) not null,
    status text not null,
    created_at bigint not null,
    primary key (market_id, batch_id)
  );

  create table batch_inputs (
    market_id integer,
    batch_id bigint,
    as_of bigint not null,
    inputs bytea not null,
    primary key (market_id, batch_id)
  );
  alter table batch_inputs alter column inputs set storage external;
  create index batch_inputs_by_age on batch_inputs (as_of);

  create table actions (
    market_id integer references markets,
    queue_no bigint,
    kind text not null,
    batch_id bigint,
    part integer,
    as_of bigint not null,
    status text not null,
    action_id bigint,
    relayer text,
    nonce bigint,
    created_at bigint not null,
    payload jsonb,
    touches bigint[] not null default '{}',
    failure text,
    primary key (market_id, queue_no),
    constraint actions_of_kind check (((kind = 'settle_part') = ((batch_id is not null) and (part is not null))) and ((kind = 'settle_part') = (payload is null)))
  );
  create index actions_by_id on actions (market_id, action_id) where action_id is not null;
  create index actions_by_nonce on actions (relayer, nonce) where nonce is not null;
  create index actions_funding on actions (market_id, queue_no) where kind = 'update_funding';
  create index actions_of_part on actions (market_id, batch_id, part);
  create index actions_pending on actions (market_id, queue_no) where status in ('QUEUED', 'SIGNED', 'SUBMITTED');

  create table funding_states (
    market_id integer references markets,
    action_id bigint,
    as_of bigint not null,
    funding_index numeric not null,
    rate numeric not null,
    valid_from bigint not null,
    valid_until bigint not null,
    primary key (market_id, action_id)
  );

  create table liquidations (
    market_id integer references markets,
    user_id bigint references users,
    number bigint not null,
    stage text not null,
    start_size bigint not null,
    order_id text references orders,
    widenings integer not null default 0,
    queue_no bigint,
    attempts integer not null default 0,
    retry_at bigint not null default 0,
    resting bigint not null default 0,
    seen_seq bigint not null,
    started_at bigint not null,
    failed_kind text,
    primary key (market_id, user_id)
  );

  create table deleveraging_ranks (
    market_id integer primary key references markets,
    oracle_price numeric(78, 0) not null,
    funding_index numeric(78, 0) not null,
    longs jsonb not null,
    shorts jsonb not null,
    ranked_at bigint not null
  );

  create table adjustment_attempts (
    adjustment_id text primary key,
    market_id integer not null references markets,
    user_id bigint not null references users,
    digest text not null,
    kind text not null check (kind in ('add_margin', 'remove_margin', 'adjust_leverage')),
    nonce bigint not null,
    request jsonb not null,
    status text not null check (status in ('PREPARED', 'SIGNED', 'SUBMITTED', 'COMMITTED', 'ABORTED', 'RECEIPT_RECONCILIATION_FAILED')),
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
    check ((held = 0) or (held = hold))
  );
  create index adjustments_aborted on adjustment_attempts (market_id, user_id, updated_at) where status = 'ABORTED';
  create index adjustments_by_margin_nonce on adjustment_attempts (market_id, user_id, nonce);
  create index adjustments_by_transaction on adjustment_attempts (relayer, relayer_nonce);
  create index adjustments_in_flight on adjustment_attempts (market_id, user_id) where status in ('PREPARED', 'SIGNED', 'SUBMITTED');

  create table used_margin_nonces (
    market_id integer references markets,
    user_id bigint references users,
    nonce numeric(20,0),
    primary key (market_id, user_id, nonce)
  );

  create table margin_nonce_floors (
    market_id integer references markets,
    account text,
    minimum numeric(78, 0) not null,
    block bigint not null,
    primary key (market_id, account)
  );

  -- Session keys, forwarding and switches

  create table session_keys (
    owner text,
    key text,
    permissions integer not null,
    registered_at bigint not null,
    expires_at bigint not null,
    revoked_at bigint,
    block bigint not null,
    primary key (owner, key)
  );

  create table forwarder_nonces (
    signer text primary key,
    next_nonce bigint not null,
    block bigint not null
  );

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
    check ((kind = 'invalidate_margin_nonces') = ((market_id is not null) and (minimum is not null)))
  );
  create index relay_operations_by_nonce on relay_operations (owner, nonce);
  create index relay_operations_of_key on relay_operations (owner, session_key) where session_key is not null;
  create index relay_operations_of_user on relay_operations (user_id, created_at);
  create index relay_operations_open on relay_operations (owner, nonce) where status in ('QUEUED', 'RELAYING');

  create table cancel_switches (
    user_id bigint primary key references users,
    timeout_seconds integer not null,
    armed_at bigint not null,
    fire_at bigint not null
  );
  create index cancel_switches_by_time on cancel_switches (fire_at);

  create table connection_switches (
    connection_id text primary key,
    user_id bigint not null references users,
    timeout_seconds integer not null,
    fire_at bigint not null,
    key_name text
  );
  create index connection_switches_by_time on connection_switches (fire_at);
  create index connection_switches_of_user on connection_switches (user_id, fire_at);

  create table fired_switches (
    user_id bigint references users,
    fired_at bigint,
    primary key (user_id, fired_at)
  );

  -- Relayers

  create table relayers (
    address text,
    chain_id bigint,
    lane text not null,
    next_nonce bigint not null,
    registered_at bigint not null default 0,
    primary key (address, chain_id)
  );

  create table relayer_choices (
    lane text primary key,
    address text not null,
    chosen_at bigint not null
  );

  create table relayer_transactions (
    tx_hash text primary key,
    relayer text not null,
    chain_id bigint not null,
    nonce bigint not null,
    purpose text not null,
    raw text not null,
    status text not null,
    error text,
    signed_at bigint not null,
    broadcast_at bigint,
    block bigint,
    gas_used bigint,
    foreign key (relayer, chain_id) references relayers(address, chain_id)
  );
  create index relayer_transactions_by_nonce on relayer_transactions (relayer, nonce, chain_id);
  create index relayer_transactions_of_ends on relayer_transactions (purpose) where purpose like 'end:%';
  create index relayer_transactions_open on relayer_transactions (relayer) where status in ('SIGNED', 'BROADCAST');

  create table faucet_requests (
    request_id bigint generated always as identity primary key,
    kind text not null,
    user_id bigint not null,
    payload jsonb not null,
    status text not null,
    tx_hash text,
    error text,
    created_at bigint not null,
    network_address text,
    foreign key (user_id) references users
  );
  create index faucet_requests_of_address on faucet_requests (network_address, created_at);
  create index faucet_requests_of_user on faucet_requests (user_id, created_at);
  create index faucet_requests_open on faucet_requests (request_id) where status = 'REQUESTED';
  create index faucet_requests_signed on faucet_requests (request_id) where status = 'SIGNED';

  create table leases (
    name text primary key,
    owner text not null,
    token bigint not null,
    expires_at bigint not null
  );

  create table indexer_leases (
    name text primary key,
    owner text not null,
    token bigint not null,
    expires_at bigint not null
  );

  -- Prices

  create table oracle_reports (
    market_id integer references markets,
    price numeric(78, 0),
    observed_at bigint,
    signatures text,
    received_at bigint,
    feed text default 'index',
    readings text not null default '[]',
    status text not null default 'live',
    reason text,
    since bigint not null default 0,
    slot integer not null default 0,
    primary key (market_id, feed),
    constraint oracle_reports_complete check (num_nulls(price, observed_at, signatures, received_at) in (0, 4)),
    constraint oracle_reports_status check ((status = 'live') = (reason is null))
  ) with (fillfactor = 50);

  create table recent_reports (
    market_id integer references markets,
    feed text,
    slot integer,
    price numeric(78, 0) not null,
    observed_at bigint not null,
    signatures text not null,
    readings text not null,
    primary key (market_id, feed, slot)
  ) with (fillfactor = 50);

  create table used_reports (
    market_id integer references markets,
    feed text,
    observed_at bigint,
    price numeric(78, 0) not null,
    signatures text not null,
    readings text not null,
    primary key (market_id, feed, observed_at)
  );

  -- The chain

  create table chain_progress (
    chain_id bigint primary key,
    genesis_hash text not null,
    next_block bigint not null,
    head bigint not null,
    completed_at bigint not null,
    bank_pause_ends_at bigint not null default 0
  );

  create table chain_blocks (
    number bigint primary key,
    hash text not null,
    parent_hash text not null,
    timestamp bigint not null
  );

  create table settlement_mismatches (
    market_id integer not null references markets,
    block bigint not null,
    tx_hash text,
    batch_id bigint,
    part integer,
    failure_kind text,
    failure_reason text not null,
    found_at bigint not null,
    primary key (tx_hash, failure_kind)
  );

  -- The engine

  create table engine_groups (
    number bigint primary key,
    token bigint not null,
    version integer not null,
    rows json not null,
    before text not null,
    digest text not null
  );

  create table engine_ownership (
    token bigint primary key,
    incarnation bigint not null default 1,
    caught_up bigint not null default 1,
    restored_to text
  );

  create table engine_lease (
    token bigint primary key,
    renewals bigint not null,
    is_released boolean not null
  );

  create table engine_tables (
    is_only boolean default true primary key check (is_only),
    written bigint not null
  );

  create table engine_checkpoints (
    checkpoint_id bigint generated always as identity primary key,
    number bigint not null,
    state_version integer not null,
    rows bigint not null,
    at bigint not null,
    digest text not null,
    is_complete boolean not null default false
  );

  create table engine_checkpoint_chunks (
    checkpoint_id bigint references engine_checkpoints on delete cascade,
    place integer,
    table_no integer not null,
    bytes bytea not null,
    primary key (checkpoint_id, place)
  );

  create table backups (
    backup_id bigint generated always as identity primary key,
    label text not null unique,
    started_at bigint not null,
    completed_at bigint not null,
    bytes bigint not null
  );
`

/** Rows that there is one of, and a closed day that no rule of the calendar gives. */
const ROWS = `
  insert into proof_keys (key) select sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8'));
  insert into engine_ownership (token, incarnation, caught_up) values (0, 1, 1);
  insert into engine_lease (token, renewals, is_released) values (0, 0, true);
  insert into engine_tables (written) values (0);
  insert into calendar_exceptions (calendar, day, reason, created_at)
    values ('NYSE', '2025-01-09', 'National Day of Mourning for President Carter', 0);
`

/**
 * Both functions raise an error for a group out of order or a stale owner, so that statements sent behind fail too, and
 * lock the token's row, so that a takeover waits for their commit.
 */
const ENGINE_FUNCTIONS = `
  create function append_engine_group(
    new_number bigint, new_token bigint, new_version integer, new_rows json, new_before text, new_digest text
  ) returns void language plpgsql as $$
  begin
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
  end $$;
  create function advance_engine_tables(new_token bigint, from_number bigint, to_number bigint) returns void language plpgsql as $$
  begin
    perform from engine_ownership where token = new_token for share;
    if not found then
      raise exception 'the token % is not the current one', new_token using errcode = 'CB001';
    end if;
    update engine_tables set written = to_number where written = from_number;
    if not found then
      raise exception 'the tables do not contain exactly the groups up to %', from_number using errcode = 'CB001';
    end if;
  end $$;
`

/**
 * After the engine's first group or ownership, only transactions that write the tables may append to the journal: other
 * rows would take the sequences of the engine's next rows.
 */
export const GUARDS = `
  create function refuse_foreign_rows() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  declare
    writer xid;
  begin
    if (select token from engine_ownership) = 0 and not exists (select from engine_groups) then
      return null;
    end if;
    select xmin into writer from engine_tables;
    if writer is distinct from pg_current_xact_id()::xid then
      raise exception 'an engine owns this exchange: commands that change it go through ENGINE_URL' using errcode = 'CB002';
    end if;
    return null;
  end $$;
  create function await_foreign_rows() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    lock table journal in share mode;
    return new;
  end $$;
  create trigger refuse_foreign_rows before insert on journal for each statement execute function refuse_foreign_rows();
  create trigger refuse_foreign_rows before insert on shards for each statement execute function refuse_foreign_rows();
  create trigger await_foreign_rows before update on engine_ownership for each row when (old.token = 0 and new.token > 0)
  execute function await_foreign_rows();
`

/** The rights that `db/grants.ts` declares. */
const GRANTS = `
  grant usage on schema public to ${ROLES};
  grant select on kysely_migration to ${ROLES};
  grant select, update on sequence users_user_id_seq to clearbatch_engine;
  grant select on accounts, actions, adjustment_attempts, announcements, batch_inputs, batches, calendar_exceptions,
    cancel_switches, chain_progress, connection_switches, deleveraging_ranks, engine_groups, engine_ownership,
    engine_tables, faucet_requests, forwarder_nonces, funding_states, journal, leases, liquidations,
    margin_nonce_floors, markets, oracle_reports, orders, positions, price_averages, proof_keys, relay_operations,
    relayers, session_keys, shards, used_margin_nonces, used_reports, users to clearbatch_api;
  grant select, delete on client_requests to clearbatch_api;
  grant select, insert on history_files to clearbatch_api;
  grant select, insert, delete on api_keys, auth_challenges to clearbatch_api;
  grant update (key_hash, prefix, created_at, scope, allowed_addresses, last_used_at) on api_keys to clearbatch_api;
  grant update (used_at) on auth_challenges to clearbatch_api;
  grant update (created_at) on client_requests to clearbatch_api;
  grant insert (kind, user_id, payload, status, tx_hash, error, created_at, network_address) on faucet_requests to
    clearbatch_api;
  grant update (sha256, size) on history_files to clearbatch_api;
  grant select on accounts, actions, adjustment_attempts, backups, batches, calendar_exceptions, cancel_switches,
    chain_blocks, chain_progress, connection_switches, engine_checkpoint_chunks, engine_checkpoints, engine_groups,
    engine_lease, engine_ownership, faucet_requests, final_prices, fired_switches, forwarder_nonces, funding_states,
    journal, liquidations, margin_nonce_floors, markets, orders, positions, price_averages, relay_operations,
    relayer_choices, relayers, session_keys, shards, users to clearbatch_keeper;
  grant select, delete on batch_inputs to clearbatch_keeper;
  grant select, insert on leases, relayer_transactions, used_reports to clearbatch_keeper;
  grant select, insert, update on deleveraging_ranks, oracle_reports, recent_reports to clearbatch_keeper;
  grant update (status, tx_hash, error) on faucet_requests to clearbatch_keeper;
  grant update (owner, token, expires_at) on leases to clearbatch_keeper;
  grant update (status, error, broadcast_at, block, gas_used) on relayer_transactions to clearbatch_keeper;
  grant update (registered_at) on relayers to clearbatch_keeper;
  grant select on accounts, actions, adjustment_attempts, batches, chain_blocks, engine_ownership, forwarder_nonces,
    funding_states, journal, margin_nonce_floors, markets, orders, positions, relay_operations, session_keys,
    settlement_mismatches, shards, used_margin_nonces, users to clearbatch_indexer;
  grant select, insert on chain_progress, indexer_leases to clearbatch_indexer;
  grant update (head, completed_at) on chain_progress to clearbatch_indexer;
  grant update (owner, token, expires_at) on indexer_leases to clearbatch_indexer;
  grant select (tx_hash, relayer, nonce, purpose, gas_used) on relayer_transactions to clearbatch_indexer;
  grant update (epoch) on shards to clearbatch_indexer;
  grant select on chain_progress, engine_tables, recent_reports to clearbatch_engine;
  grant select, insert on engine_groups, journal, settlement_mismatches, used_reports to clearbatch_engine;
  grant select, insert, delete on engine_checkpoint_chunks to clearbatch_engine;
  grant select, insert, update on accounts, actions, adjustment_attempts, batch_inputs, batches, client_requests,
    markets, orders, positions, price_averages, relay_operations, relayers, shards, users to clearbatch_engine;
  grant select, insert, update, delete on cancel_switches, chain_blocks, connection_switches, engine_checkpoints,
    fired_switches, forwarder_nonces, funding_states, liquidations, margin_nonce_floors, session_keys,
    used_margin_nonces to clearbatch_engine;
  grant select, update on engine_lease, engine_ownership to clearbatch_engine;
  grant update (next_block, bank_pause_ends_at) on chain_progress to clearbatch_engine;
  grant update (written) on engine_tables to clearbatch_engine;
`

/** The queue of the keeper creates its tables in a schema that the keeper owns. */
const QUEUE = `
  drop schema if exists bullmq cascade;
  create schema bullmq authorization clearbatch_keeper;
`

/** The tables of the exchange, and the roles of its processes. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(CREATE_ROLES).execute(db)
  await sql.raw(TABLES + ROWS + ENGINE_FUNCTIONS + GUARDS + GRANTS + QUEUE).execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
      drop schema if exists bullmq cascade;
      drop table users, markets, calendar_exceptions, final_prices, accounts, positions, price_averages, api_keys,
        auth_challenges, client_requests, proof_keys, announcements, history_files, shards, journal, orders, batches,
        batch_inputs, actions, funding_states, liquidations, deleveraging_ranks, adjustment_attempts,
        used_margin_nonces, margin_nonce_floors, session_keys, forwarder_nonces, relay_operations, cancel_switches,
        connection_switches, fired_switches, relayers, relayer_choices, relayer_transactions, faucet_requests, leases,
        indexer_leases, oracle_reports, recent_reports, used_reports, chain_progress, chain_blocks,
        settlement_mismatches, engine_groups, engine_ownership, engine_lease, engine_tables, engine_checkpoints,
        engine_checkpoint_chunks, backups;
      drop function append_engine_group, advance_engine_tables, refuse_foreign_rows, await_foreign_rows;
      revoke all on kysely_migration from ${ROLES};
      revoke all on schema public from ${ROLES};
    `)
    .execute(db)
  await sql.raw(DROP_ROLES).execute(db)
}
