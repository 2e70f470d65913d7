import { type Kysely, sql } from 'kysely'

/**
 * What risk has done to each market and account: open interest, sums of inheritances and deleveragings, liquidations with their steps, and
 * transactions by their type. Each market's backstop and the bank's pause, as on the chain. `deleveraging_ranks`: scores that divide the candidates of each side into fifths.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table markets add column backstop text, add column backstop_cap numeric(78, 0) not null default 0;
    alter table chain_progress add column bank_pause_ends_at bigint not null default 0;
    grant update (backstop, backstop_cap) on markets to clearbatch_indexer;
    grant update (bank_pause_ends_at) on chain_progress to clearbatch_indexer;
    create table deleveraging_ranks (
      market_id integer primary key references markets,
      oracle_price numeric(78, 0) not null,
      funding_index numeric(78, 0) not null,
      longs jsonb not null,
      shorts jsonb not null,
      ranked_at bigint not null
    );
    grant select, insert, update on deleveraging_ranks to clearbatch_keeper;
    grant select on deleveraging_ranks to clearbatch_api;
    create table read.open_interest (market_id integer primary key, steps bigint not null);
    create table read.market_risk (
      market_id integer primary key,
      inheritances bigint not null, inherited_steps bigint not null, failed_inheritances bigint not null,
      deleveragings bigint not null, deleveraged_steps bigint not null, deleveraged_value numeric not null, payouts numeric not null,
      deficits bigint not null, deficit numeric not null, covered numeric not null
    );
    alter table read.fills add column forced boolean not null default false;
    create table read.liquidations (
      id text primary key, market_id integer not null, kind text not null check (kind in ('forced', 'inherited', 'deleveraged')),
      side text not null, steps bigint not null, price bigint, value numeric, oracle_price numeric, oracle_at bigint,
      batch_id bigint, part integer, tx_hash text not null, log_index integer not null, block bigint not null, at bigint not null
    );
    create index read_liquidations_by_time on read.liquidations (at, id);
    create index read_liquidations_of_market on read.liquidations (market_id, at, id);
    create table read.liquidation_steps (
      id text primary key, market_id integer not null, number bigint not null, user_id bigint not null, step text not null,
      reason text not null, order_id text, widenings integer not null, at bigint not null, evidence jsonb
    );
    create index read_liquidation_steps_of_user on read.liquidation_steps (user_id, at, id);
    create index read_liquidation_steps_in_market on read.liquidation_steps (user_id, market_id, at, id);
    create table read.liquidation_legs (
      step_id text not null, place integer not null, market_id integer not null, user_id bigint not null, steps bigint not null,
      score numeric not null, at bigint not null, primary key (step_id, place)
    );
    create index read_liquidation_legs_of_user on read.liquidation_legs (user_id, at, step_id);
    create index read_liquidation_legs_in_market on read.liquidation_legs (user_id, market_id, at, step_id);
    create index read_ledger_transactions_of_type on read.ledger_transactions (user_id, type, at, id);
    grant insert, update, delete, truncate on read.open_interest, read.market_risk, read.liquidations, read.liquidation_steps,
      read.liquidation_legs to clearbatch_indexer;
    grant select on read.open_interest, read.market_risk, read.liquidations, read.liquidation_steps, read.liquidation_legs
      to clearbatch_api, clearbatch_indexer
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop table deleveraging_ranks;
    alter table chain_progress drop column bank_pause_ends_at;
    alter table markets drop column backstop, drop column backstop_cap;
    drop index read.read_ledger_transactions_of_type;
    alter table read.fills drop column forced;
    drop table read.market_risk, read.open_interest, read.liquidation_legs, read.liquidation_steps, read.liquidations;
    delete from read.places where projection in ('risk', 'liquidations')
  `.execute(db)
}
