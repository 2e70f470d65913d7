/** Accounts and positions are in the engine's memory and in the read model, where workers look for a market's open positions. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
      drop table accounts, positions;
      create index read_positions_open on read.positions (market_id, user_id) where size <> 0;
      grant usage on schema read to clearbatch_keeper;
      grant select on read.places, read.balances, read.positions to clearbatch_keeper;
    `)
    .execute(db)
}

/** The tables come back without rows, which a version that reads them needs: only an exchange without users goes back. */
export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
      revoke select on read.places, read.balances, read.positions from clearbatch_keeper;
      revoke usage on schema read from clearbatch_keeper;
      drop index read.read_positions_open;
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
      grant select on accounts, positions to clearbatch_api, clearbatch_keeper, clearbatch_indexer;
      grant select, insert, update on accounts, positions to clearbatch_engine;
    `)
    .execute(db)
}
