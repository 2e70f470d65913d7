import { type Kysely, sql } from 'kysely'

/**
 * The averages behind a market's mark price and funding rate survive a change of the market's owner. Read tables of funding rates, and of
 * prices per minute. The index finds the newest funding update among the parts of batches.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table price_averages (
      market_id integer primary key references markets,
      basis numeric(78, 0) not null,
      basis_at bigint not null,
      premium_at bigint not null,
      premium jsonb not null
    );
    grant select, insert, update on price_averages to clearbatch_keeper;
    grant select on price_averages to clearbatch_api;
    create index actions_funding on actions (market_id, queue_no) where kind = 'update_funding';
    create table read.funding_rates (
      market_id integer not null,
      action_id bigint not null,
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
    create table read.price_minutes (
      market_id integer not null,
      minute bigint not null,
      oracle_open numeric(78, 0) not null,
      oracle_high numeric(78, 0) not null,
      oracle_low numeric(78, 0) not null,
      oracle_close numeric(78, 0) not null,
      mark_open numeric(78, 0) not null,
      mark_high numeric(78, 0) not null,
      mark_low numeric(78, 0) not null,
      mark_close numeric(78, 0) not null,
      primary key (market_id, minute)
    );
    grant select, insert, update, delete, truncate on read.funding_rates, read.price_minutes to clearbatch_indexer;
    grant select on read.funding_rates, read.price_minutes to clearbatch_api
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop table read.price_minutes;
    drop table read.funding_rates;
    drop index actions_funding;
    drop table price_averages;
    delete from read.places where projection in ('funding_rates', 'price_minutes')
  `.execute(db)
}
