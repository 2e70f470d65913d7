import { type Kysely, sql } from 'kysely'

/**
 * What risk has done to each market and account: open interest, sums of inheritances and deleveragings, and transactions by their type. Each
 * market's backstop and the bank's pause, as on the chain. `deleveraging_ranks`: scores that divide the candidates of each side into fifths.
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
    create index read_ledger_transactions_of_type on read.ledger_transactions (user_id, type, at, id);
    grant insert, update, delete, truncate on read.open_interest, read.market_risk to clearbatch_indexer;
    grant select on read.open_interest, read.market_risk to clearbatch_api, clearbatch_indexer
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop table deleveraging_ranks;
    alter table chain_progress drop column bank_pause_ends_at;
    alter table markets drop column backstop, drop column backstop_cap;
    drop index read.read_ledger_transactions_of_type;
    drop table read.market_risk, read.open_interest;
    delete from read.places where projection = 'risk'
  `.execute(db)
}
