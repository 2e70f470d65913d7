import { type Kysely, sql } from 'kysely'

/** Adds a statement's changes of `orders` to `resting`: new rows count with sign 1, replaced rows with sign -1. */
const restFunction = (name: string, changes: string): string => `
    create function ${name}() returns trigger language plpgsql as $$
    begin
      insert into resting as r
      select market_id, user_id,
        coalesce(sum(sign) filter (where is_live), 0),
        coalesce(sum(sign * (quantity - filled - settling)) filter (where in_book and side = 'LONG'), 0),
        coalesce(sum(sign * (quantity - filled - settling)) filter (where in_book and side = 'SHORT'), 0),
        coalesce(sum(sign * openable) filter (where is_live), 0),
        coalesce(sum(sign * openable::numeric * reserved_price) filter (where is_live), 0),
        coalesce(sum(sign * (reserved + held)) filter (where is_live), 0)
      from (
        select *, ended_at is null as is_live, ended_at is null and closing_reason is null and not reduce_only as in_book
        from (${changes}) changes
      ) o
      group by market_id, user_id
      on conflict (market_id, user_id) do update set
        orders = r.orders + excluded.orders,
        plain_long = r.plain_long + excluded.plain_long,
        plain_short = r.plain_short + excluded.plain_short,
        openable = r.openable + excluded.openable,
        open_value = r.open_value + excluded.open_value,
        reserved = r.reserved + excluded.reserved;
      return null;
    end $$;
`

/** The triggers that keep `resting` in step with `orders`. */
export const REST_TRIGGERS = `
    ${restFunction('rest_inserted_orders', 'select 1 as sign, * from inserted')}
    create trigger rest_inserted after insert on orders
      referencing new table as inserted for each statement execute function rest_inserted_orders();

    ${restFunction('rest_updated_orders', 'select 1 as sign, * from updated union all select -1, * from replaced')}
    create trigger rest_updated after update on orders
      referencing old table as replaced new table as updated for each statement execute function rest_updated_orders();
`

/** The write side (what the exchange accepted and decided) and each shard's journal, which the read model is projected from. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table shards (
      shard text primary key,
      epoch integer not null default 1,
      head bigint not null default 0
    );

    create table shard_log (
      shard text not null references shards,
      seq bigint not null,
      row jsonb not null,
      primary key (shard, seq)
    );

    create table users (
      user_id bigint generated always as identity primary key,
      address text not null unique,
      created_at bigint not null
    );

    create table api_keys (
      user_id bigint primary key references users,
      key_hash bytea not null unique,
      prefix text not null,
      created_at bigint not null
    );

    create table accounts (
      user_id bigint primary key references users,
      free numeric(78, 0) not null default 0,
      pending_withdrawal numeric(78, 0) not null default 0,
      reserved numeric(78, 0) not null default 0 check (reserved >= 0)
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
      last_price_at bigint
    );

    create table positions (
      user_id bigint not null references users,
      market_id integer not null references markets,
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

    create table orders (
      order_id text primary key,
      market_id integer not null references markets,
      seq bigint not null,
      user_id bigint not null references users,
      maker text not null,
      signer text not null,
      hash text not null unique,
      signature text not null,
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
      unique (market_id, maker, salt),
      check (filled + settling <= quantity)
    );
    create index orders_active on orders (market_id, user_id) where ended_at is null;

    create table resting (
      market_id integer not null references markets,
      user_id bigint not null references users,
      orders integer not null,
      plain_long bigint not null,
      plain_short bigint not null,
      openable bigint not null,
      open_value numeric(78, 0) not null,
      reserved numeric(78, 0) not null,
      primary key (market_id, user_id)
    ) with (fillfactor = 50);

    ${sql.raw(REST_TRIGGERS)}

    create table oracle_reports (
      market_id integer primary key references markets,
      price numeric(78, 0) not null,
      observed_at bigint not null,
      signatures text not null,
      received_at bigint not null
    );

    create table batches (
      market_id integer not null references markets,
      batch_id bigint not null,
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
      inputs jsonb not null,
      status text not null,
      created_at bigint not null,
      primary key (market_id, batch_id)
    );

    create table fills (
      fill_id text primary key,
      market_id integer not null references markets,
      batch_id bigint not null,
      part integer not null,
      place integer not null,
      order_id text not null references orders,
      user_id bigint not null references users,
      side text not null,
      steps bigint not null,
      taker_steps bigint not null,
      partial_slot integer,
      held numeric(78, 0) not null,
      status text not null,
      unique (market_id, batch_id, part, place)
    );
    create index fills_of_order on fills (order_id);

    create table actions (
      market_id integer not null references markets,
      queue_no bigint not null,
      kind text not null,
      batch_id bigint not null,
      part integer not null,
      as_of bigint not null,
      status text not null,
      action_id bigint,
      relayer text,
      nonce bigint,
      created_at bigint not null,
      primary key (market_id, queue_no)
    );
    create index actions_pending on actions (market_id, queue_no) where status in ('QUEUED', 'SIGNED', 'SUBMITTED');

    create table relayers (
      address text not null,
      chain_id bigint not null,
      lane text not null unique,
      next_nonce bigint not null,
      primary key (address, chain_id)
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
      foreign key (relayer, chain_id) references relayers
    );
    create index relayer_transactions_by_nonce on relayer_transactions (relayer, chain_id, nonce);
    create index relayer_transactions_open on relayer_transactions (relayer) where status in ('SIGNED', 'BROADCAST');

    create table relay_requests (
      request_id bigint generated always as identity primary key,
      kind text not null,
      user_id bigint not null references users,
      payload jsonb not null,
      status text not null,
      tx_hash text,
      error text,
      created_at bigint not null
    );
    create index relay_requests_open on relay_requests (request_id) where status = 'REQUESTED';

    create table leases (
      name text primary key,
      owner text not null,
      token bigint not null,
      expires_at bigint not null
    );
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop table resting, leases, relay_requests, relayer_transactions, relayers, actions, fills, batches, oracle_reports,
      orders, positions, markets, accounts, api_keys, users, shard_log, shards;
    drop function rest_inserted_orders, rest_updated_orders
  `.execute(db)
}
