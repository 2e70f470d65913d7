import { type Kysely, sql } from 'kysely'

/** What risk has done to each market and account: open interest, sums of inheritances and deleveragings, and transactions by their type. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
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
    drop index read.read_ledger_transactions_of_type;
    drop table read.market_risk, read.open_interest;
    delete from read.places where projection = 'risk'
  `.execute(db)
}
