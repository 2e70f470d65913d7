import { type Kysely, sql } from 'kysely'

/** The read model. Only the projector writes it; `rebuild` empties it and projects the log again. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create schema read;

    create table read.projection (
      shard text primary key,
      epoch integer not null,
      seq bigint not null
    );

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
      last_batch_id bigint
    );

    create table read.orders (
      order_id text primary key,
      market_id integer not null,
      seq bigint not null,
      user_id bigint not null,
      maker text not null,
      signer text not null,
      hash text not null unique,
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
      updated_at bigint not null
    );
    create index read_orders_of_user on read.orders (user_id, accepted_at, order_id);

    create table read.order_events (
      shard text not null,
      seq bigint not null,
      place integer not null,
      order_id text not null,
      user_id bigint not null,
      kind text not null,
      details jsonb not null,
      at bigint not null,
      primary key (shard, seq, place)
    );
    create index read_order_events_of_order on read.order_events (order_id, seq, place);

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
      updated_at bigint not null
    );
    create index read_fills_of_order on read.fills (order_id);
    create index read_fills_of_user on read.fills (user_id, matched_at, fill_id);
    create index read_fills_of_part on read.fills (market_id, batch_id, part);

    create table read.positions (
      user_id bigint not null,
      market_id integer not null,
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

    create table read.balances (
      user_id bigint primary key,
      free numeric(78, 0) not null default 0,
      reserved numeric(78, 0) not null default 0,
      pending_withdrawal numeric(78, 0) not null default 0
    );

    create table read.book_levels (
      market_id integer not null,
      side text not null,
      price bigint not null,
      quantity bigint not null,
      order_count integer not null,
      primary key (market_id, side, price)
    );

    create table read.batches (
      market_id integer not null,
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
      settled_parts integer not null default 0,
      oracle_price numeric(78, 0) not null,
      primary key (market_id, batch_id)
    );
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop schema read cascade`.execute(db)
}
