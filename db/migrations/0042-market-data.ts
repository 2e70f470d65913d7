import { type Kysely, sql } from 'kysely'

/**
 * Candles of the clearing prices, of the published prices (instead of minutes alone), and changes of the open interest, each at several
 * lengths; of each batch what was not voided and the state of its parts. The indexer fills these tables from the journal.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table read.batches add column filled bigint not null default 0, add column fills integer not null default 0,
      add column part_states jsonb not null default '[]', add column is_final boolean not null default false;
    create index read_batches_by_time on read.batches (market_id, as_of);
    create index read_batches_that_may_change on read.batches (market_id, as_of) where not is_final;
    create table read.candles (
      market_id integer not null, span bigint not null, start bigint not null,
      open bigint not null, high bigint not null, low bigint not null, close bigint not null,
      steps bigint not null, turnover numeric not null, auctions bigint not null, fills bigint not null,
      primary key (market_id, span, start)
    );
    drop table read.price_minutes;
    delete from read.places where projection = 'price_minutes';
    create table read.price_candles (
      market_id integer not null, span bigint not null, start bigint not null,
      oracle_open numeric(78, 0) not null, oracle_high numeric(78, 0) not null,
      oracle_low numeric(78, 0) not null, oracle_close numeric(78, 0) not null,
      mark_open numeric(78, 0) not null, mark_high numeric(78, 0) not null,
      mark_low numeric(78, 0) not null, mark_close numeric(78, 0) not null,
      primary key (market_id, span, start)
    );
    create table read.open_interest_changes (
      market_id integer not null, span bigint not null, start bigint not null, steps bigint not null,
      primary key (market_id, span, start)
    );
    grant insert, update, delete, truncate on read.candles, read.price_candles, read.open_interest_changes to clearbatch_indexer;
    grant select on read.candles, read.price_candles, read.open_interest_changes to clearbatch_api, clearbatch_indexer
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop table read.open_interest_changes, read.price_candles, read.candles;
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
    grant select, insert, update, delete, truncate on read.price_minutes to clearbatch_indexer;
    grant select on read.price_minutes to clearbatch_api;
    drop index read.read_batches_that_may_change, read.read_batches_by_time;
    alter table read.batches drop column filled, drop column fills, drop column part_states, drop column is_final;
    delete from read.places where projection = 'price_candles'
  `.execute(db)
}
