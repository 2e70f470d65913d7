import { type Kysely, sql } from 'kysely'

/** `db/read-schema.ts` and its neighbours say what each column contains. A crash of the server empties the feed, which begins again: its tables are not logged. */
const TABLES = `
  -- Places of the projections

  create table read.places (
    shard text,
    epoch integer not null,
    seq bigint not null,
    projection text,
    version integer not null,
    fill_to bigint,
    primary key (shard, projection)
  );
  create index read_places_filling on read.places (projection, shard) where fill_to is not null;

  create table read.arrivals (
    last bigint not null
  );

  -- Orders and fills

  create table read.users (
    user_id bigint primary key,
    address text not null unique,
    created_at bigint not null
  );

  create table read.markets (
    market_id integer primary key,
    symbol text not null unique,
    kind text not null,
    spec jsonb not null,
    oracle_price numeric(78, 0),
    oracle_at bigint,
    mark_price numeric(78, 0),
    last_price bigint,
    last_batch_id bigint,
    price_protection numeric(78, 0) not null,
    next_price_protection numeric(78, 0),
    next_price_protection_at bigint,
    constraint announced_protection check ((next_price_protection is null) = (next_price_protection_at is null))
  );

  create table read.orders (
    order_id text primary key,
    market_id integer not null,
    seq bigint not null,
    user_id bigint not null,
    maker text not null,
    signer text,
    hash text not null,
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
    filled_value numeric(78, 0) not null default 0,
    settling bigint not null default 0,
    fee numeric(78, 0) not null default 0,
    reserved numeric(78, 0) not null,
    accepted_at bigint not null,
    updated_at bigint not null,
    triggered jsonb,
    arrival bigint not null,
    protection_price bigint,
    openable bigint not null,
    held numeric(78, 0) not null,
    uncovered bigint not null generated always as (greatest(quantity - filled - settling - openable, 0)) stored,
    forced boolean not null default false,
    client_order_id text,
    time_in_force text not null default 'gtc' check (time_in_force in ('gtc', 'ioc')),
    post_only boolean not null default false,
    unused bigint not null default 0 check (unused >= 0),
    replaces text,
    bracket bigint not null default 0 check ((bracket >= 0) and (bracket <= 4294967295)),
    builder text
  ) with (fillfactor = 50);
  create index read_orders_live on read.orders (user_id, accepted_at, order_id) where status in ('OPEN', 'PENDING_TRIGGER',
      'CANCEL_PENDING_FINALIZE');
  create index read_orders_of_user on read.orders (user_id, accepted_at, order_id);
  create index read_orders_of_user_by_arrival on read.orders (user_id, arrival);
  create index read_orders_uncovered on read.orders (market_id, user_id) where (uncovered > 0) and (status = 'OPEN') and (price > 0);

  create table read.order_changes (
    shard text,
    seq bigint,
    place integer,
    order_id text not null,
    user_id bigint not null,
    kind text not null,
    details jsonb not null,
    at bigint not null,
    arrival bigint not null,
    constraint order_events_pkey primary key (shard, seq, place)
  );
  create index read_order_changes_by_time on read.order_changes (user_id, at, arrival);
  create index read_order_events_of_order on read.order_changes (order_id, seq, place);
  create index read_order_events_of_user on read.order_changes (user_id, arrival);

  create table read.fills (
    fill_id text primary key,
    market_id integer not null,
    batch_id bigint not null,
    part integer not null,
    order_id text not null,
    user_id bigint not null,
    side text not null,
    price bigint not null,
    steps bigint not null,
    taker_steps bigint not null,
    fee numeric(78, 0),
    realized_pnl numeric(78, 0),
    status text not null,
    tx_hash text,
    block bigint,
    matched_at bigint not null,
    updated_at bigint not null,
    action_id bigint,
    submitted_at bigint,
    mined_at bigint,
    confirmed_at bigint,
    failed_at bigint,
    failure text,
    place integer not null,
    protection_price bigint,
    forced boolean not null default false,
    available_margin_delta numeric,
    builder text
  ) with (fillfactor = 50);
  create index read_fills_of_order on read.fills (order_id);
  create index read_fills_of_part on read.fills (market_id, batch_id, part, place);
  create index read_fills_of_user on read.fills (user_id, matched_at, fill_id);

  create table read.batches (
    market_id integer,
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
    settled_parts integer not null default 0,
    oracle_price numeric(78, 0) not null,
    rule_version integer,
    oracle_at bigint not null,
    status text not null,
    filled bigint not null default 0,
    fills integer not null default 0,
    part_states jsonb not null default '[]',
    is_final boolean not null default false,
    primary key (market_id, batch_id)
  );
  create index read_batches_by_time on read.batches (market_id, as_of);
  create index read_batches_that_may_change on read.batches (market_id, as_of) where not is_final;

  create table read.book_levels (
    market_id integer,
    side text,
    price bigint,
    quantity bigint not null,
    order_count integer not null,
    primary key (market_id, side, price)
  );

  create table read.builder_days (
    builder text,
    day bigint,
    volume numeric not null,
    fills bigint not null,
    orders bigint not null,
    primary key (builder, day)
  );
  create index read_builder_days_by_volume on read.builder_days (day, volume desc, builder);

  -- Accounts

  create table read.positions (
    user_id bigint,
    market_id integer,
    size bigint not null,
    entry_notional numeric(78, 0) not null,
    folded_margin numeric(78, 0) not null,
    leverage integer not null,
    pending bigint not null default 0,
    realized_pnl numeric(78, 0) not null default 0,
    fees numeric(78, 0) not null default 0,
    updated_at bigint not null,
    primary key (user_id, market_id)
  );

  create table read.position_states (
    user_id bigint,
    market_id integer,
    number bigint,
    event text not null,
    side text not null,
    size bigint not null,
    largest bigint not null,
    opened_steps bigint not null,
    opened_value numeric not null,
    closed_steps bigint not null,
    closed_value numeric not null,
    entry_notional numeric not null,
    realized_pnl numeric not null,
    fees numeric not null,
    funding numeric not null,
    funding_index numeric not null,
    opened_at bigint not null,
    closed_at bigint,
    ending text,
    at bigint not null,
    primary key (user_id, market_id, number)
  );
  create index read_position_states_by_time on read.position_states (user_id, market_id, at, number);
  create index read_position_states_closed on read.position_states (user_id, closed_at, market_id, number) where closed_at is not null;
  create index read_position_states_closed_in_market on read.position_states (user_id, market_id, closed_at,
      number) where closed_at is not null;

  create table read.realized_profits (
    user_id bigint,
    span bigint,
    start bigint,
    market_id integer,
    realized_pnl numeric not null,
    fees numeric not null,
    funding numeric not null,
    primary key (user_id, span, start, market_id)
  );

  create table read.cash_flows (
    user_id bigint,
    span bigint,
    start bigint,
    deposits numeric not null,
    withdrawals numeric not null,
    primary key (user_id, span, start)
  );

  create table read.balances (
    user_id bigint primary key,
    free numeric(78, 0) not null default 0,
    reserved numeric(78, 0) not null default 0,
    pending_withdrawal numeric(78, 0) not null default 0
  );

  create table read.withdrawal_events (
    id text primary key,
    user_id bigint not null,
    is_payout boolean not null,
    amount numeric not null,
    tx_hash text not null,
    log_index integer not null,
    block bigint not null,
    at bigint not null
  );
  create index read_withdrawal_events_of_user on read.withdrawal_events (user_id, is_payout, block, log_index);

  create table read.ledger_transactions (
    id text primary key,
    user_id bigint not null,
    type text not null check (type in ('deposit', 'withdrawal', 'adjust_leverage', 'funding_payment', 'add_margin',
      'remove_margin', 'liquidation', 'market_delisting_payout')),
    market_id integer,
    amount numeric not null,
    available_margin_delta numeric not null,
    tx_hash text not null,
    log_index integer not null,
    block bigint not null,
    at bigint not null
  );
  create index read_ledger_transactions_in_market on read.ledger_transactions (user_id, market_id, type, at,
      id) where market_id is not null;
  create index read_ledger_transactions_of_type on read.ledger_transactions (user_id, type, at, id);
  create index read_ledger_transactions_of_user on read.ledger_transactions (user_id, at, id);

  create table read.adjustment_attempts (
    adjustment_id text primary key,
    market_id integer not null,
    user_id bigint not null,
    kind text not null,
    status text not null,
    amount numeric not null,
    new_leverage integer,
    tx_hash text,
    failure_kind text,
    failure_reason text,
    created_at bigint not null,
    updated_at bigint not null
  );
  create index read_adjustments_by_status on read.adjustment_attempts (user_id, status, created_at, adjustment_id);
  create index read_adjustments_in_market on read.adjustment_attempts (user_id, market_id, created_at, adjustment_id);
  create index read_adjustments_of_user on read.adjustment_attempts (user_id, created_at, adjustment_id);

  -- Funding

  create table read.funding_rates (
    market_id integer,
    action_id bigint,
    as_of bigint not null,
    rate numeric(78, 0) not null,
    valid_until bigint not null,
    funding_index numeric(78, 0) not null,
    oracle_price numeric(78, 0) not null,
    oracle_at bigint not null,
    tx_hash text not null,
    is_mined boolean not null,
    primary key (market_id, action_id)
  );
  create index funding_rates_by_time on read.funding_rates (market_id, as_of, action_id) where is_mined;

  create table read.funding_indexes (
    market_id integer,
    number bigint,
    funding_index numeric not null,
    previous_index numeric not null,
    action_id bigint not null,
    tx_hash text not null,
    log_index integer not null,
    block bigint not null,
    at bigint not null,
    primary key (market_id, number)
  );
  create index read_funding_indexes_by_time on read.funding_indexes (market_id, at, number);

  create table read.funding_positions (
    user_id bigint,
    market_id integer,
    size bigint not null,
    from_index numeric not null,
    from_number bigint not null,
    primary key (user_id, market_id)
  );

  create table read.funding_spans (
    id text primary key,
    user_id bigint not null,
    market_id integer not null,
    size bigint not null,
    from_index numeric not null,
    from_number bigint not null,
    to_number bigint not null,
    has_updates boolean not null,
    payment numeric not null,
    tx_hash text not null,
    log_index integer not null,
    block bigint not null,
    at bigint not null
  );
  create index read_funding_spans_of_user on read.funding_spans (user_id, market_id, at, id) where payment <> 0;
  create index read_funding_spans_with_updates on read.funding_spans (user_id, market_id, from_number) where has_updates;

  -- Market data and risk

  create table read.candles (
    market_id integer,
    span bigint,
    start bigint,
    open bigint not null,
    high bigint not null,
    low bigint not null,
    close bigint not null,
    steps bigint not null,
    turnover numeric not null,
    auctions bigint not null,
    fills bigint not null,
    primary key (market_id, span, start)
  );

  create table read.price_candles (
    market_id integer,
    span bigint,
    start bigint,
    oracle_open numeric(78, 0) not null,
    oracle_high numeric(78, 0) not null,
    oracle_low numeric(78, 0) not null,
    oracle_close numeric(78, 0) not null,
    mark_open numeric(78, 0) not null,
    mark_high numeric(78, 0) not null,
    mark_low numeric(78, 0) not null,
    mark_close numeric(78, 0) not null,
    primary key (market_id, span, start)
  );

  create table read.open_interest (
    market_id integer primary key,
    steps bigint not null
  );

  create table read.open_interest_changes (
    market_id integer,
    span bigint,
    start bigint,
    steps bigint not null,
    primary key (market_id, span, start)
  );

  create table read.market_risk (
    market_id integer primary key,
    inheritances bigint not null,
    inherited_steps bigint not null,
    failed_inheritances bigint not null,
    deleveragings bigint not null,
    deleveraged_steps bigint not null,
    deleveraged_value numeric not null,
    payouts numeric not null,
    deficits bigint not null,
    deficit numeric not null,
    covered numeric not null
  );

  create table read.liquidations (
    id text primary key,
    market_id integer not null,
    kind text not null check (kind in ('forced', 'inherited', 'deleveraged')),
    side text not null,
    steps bigint not null,
    price bigint,
    value numeric,
    oracle_price numeric,
    oracle_at bigint,
    batch_id bigint,
    part integer,
    tx_hash text not null,
    log_index integer not null,
    block bigint not null,
    at bigint not null
  );
  create index read_liquidations_by_time on read.liquidations (at, id);
  create index read_liquidations_of_market on read.liquidations (market_id, at, id);

  create table read.liquidation_steps (
    id text primary key,
    market_id integer not null,
    number bigint not null,
    user_id bigint not null,
    step text not null,
    reason text not null,
    order_id text,
    widenings integer not null,
    at bigint not null,
    evidence jsonb
  );
  create index read_liquidation_steps_in_market on read.liquidation_steps (user_id, market_id, at, id);
  create index read_liquidation_steps_of_user on read.liquidation_steps (user_id, at, id);

  create table read.liquidation_legs (
    step_id text,
    place integer,
    market_id integer not null,
    user_id bigint not null,
    steps bigint not null,
    score numeric not null,
    at bigint not null,
    primary key (step_id, place)
  );
  create index read_liquidation_legs_in_market on read.liquidation_legs (user_id, market_id, at, step_id);
  create index read_liquidation_legs_of_user on read.liquidation_legs (user_id, at, step_id);

  -- The feed

  create unlogged table read.feed_state (
    id integer default 1 primary key check (id = 1),
    epoch bigint not null,
    first_seq bigint not null,
    seq bigint not null
  ) with (fillfactor = 10);

  create unlogged table read.feed_heads (
    topic text primary key,
    seq bigint not null,
    prev_seq bigint not null
  ) with (fillfactor = 50);

  create unlogged table read.feed (
    seq bigint primary key,
    at bigint not null,
    shard text not null,
    shard_epoch integer not null,
    shard_seq bigint not null,
    batch_id bigint,
    heads json not null,
    levels json,
    balances json,
    changes text not null
  );
  alter table read.feed alter column changes set storage external;

  insert into read.arrivals (last) values (0);
`

/** The event CREATED follows from the row of the order: its id contains its place in the journal, its type its first status. */
const ORDER_EVENTS = `
  create view read.order_events as
    select shard, seq, place, order_id, user_id, kind, details, at, arrival from read.order_changes
    union all
    select 'm' || market_id, split_part(order_id, '-', 2)::bigint, 0, order_id, user_id, 'CREATED',
      jsonb_build_object('status', case when type in ('MARKET', 'LIMIT') then 'OPEN' else 'PENDING_TRIGGER' end),
      accepted_at, arrival
    from read.orders;
`

/** Payments of the updates after `from_number`. The first counts from the index at which the stretch began. */
const paymentsOf = (stretch: string): string => `
  select u.market_id || '-' || lpad(u.action_id::text, 12, '0') || '-' || p.user_id as id, p.user_id, p.market_id,
    p.size * (case when u.number = p.from_number + 1 then p.from_index else u.previous_index end - u.funding_index) as payment,
    u.tx_hash, u.log_index, u.block, u.at
  from ${stretch} p join read.funding_indexes u on u.market_id = p.market_id
`

/**
 * A funding update pays every open position. Its payments are rows of the view, not of a table: they follow from the indexes of the updates and the size of the
 * position between them.
 */
const TRANSACTIONS = `
  create view read.account_transactions as
    select id, user_id, type, amount, available_margin_delta, null::numeric as funding_payment_delta, market_id,
      tx_hash, log_index, block, at
    from read.ledger_transactions
    union all
    select id, user_id, 'funding_payment', abs(payment), 0, payment, market_id, tx_hash, log_index, block, at from (
      select id, user_id, market_id, payment, tx_hash, log_index, block, at from read.funding_spans
      union all
      ${paymentsOf('read.funding_spans')} and u.number > p.from_number and u.number <= p.to_number
      union all
      ${paymentsOf('read.funding_positions')} and u.number > p.from_number
    ) payments where payment <> 0;
`

/** The rights that `db/grants.ts` declares. */
const GRANTS = `
  grant usage on schema read to clearbatch_api, clearbatch_indexer;
  grant select on read.account_transactions, read.adjustment_attempts, read.arrivals, read.balances, read.batches,
    read.book_levels, read.builder_days, read.candles, read.cash_flows, read.feed, read.feed_heads, read.feed_state,
    read.fills, read.funding_indexes, read.funding_positions, read.funding_rates, read.funding_spans,
    read.ledger_transactions, read.liquidation_legs, read.liquidation_steps, read.liquidations, read.market_risk,
    read.markets, read.open_interest, read.open_interest_changes, read.order_changes, read.order_events, read.orders,
    read.places, read.position_states, read.positions, read.price_candles, read.realized_profits, read.users,
    read.withdrawal_events to clearbatch_api;
  grant select on read.account_transactions, read.order_events to clearbatch_indexer;
  grant select, insert, update, delete, truncate on read.adjustment_attempts, read.arrivals, read.balances,
    read.batches, read.book_levels, read.builder_days, read.candles, read.cash_flows, read.feed, read.feed_heads,
    read.feed_state, read.fills, read.funding_indexes, read.funding_positions, read.funding_rates, read.funding_spans,
    read.ledger_transactions, read.liquidation_legs, read.liquidation_steps, read.liquidations, read.market_risk,
    read.markets, read.open_interest, read.open_interest_changes, read.order_changes, read.orders, read.places,
    read.position_states, read.positions, read.price_candles, read.realized_profits, read.users,
    read.withdrawal_events to clearbatch_indexer;
`

/** The read model: a function of the journal, which can be rebuilt. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`create schema read; ${TABLES + ORDER_EVENTS + TRANSACTIONS + GRANTS}`).execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop schema read cascade`.execute(db)
}
