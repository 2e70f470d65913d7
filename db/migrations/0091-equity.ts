import { type Kysely, sql } from 'kysely'

/**
 * Deposits and withdrawals of each account by hour and by day, and the position of an account at a time in the past. The history of equity
 * follows from both, from realized profits, funding rates and prices.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table read.cash_flows (
      user_id bigint not null, span bigint not null, start bigint not null,
      deposits numeric not null, withdrawals numeric not null,
      primary key (user_id, span, start)
    );
    create index read_position_states_by_time on read.position_states (user_id, market_id, at, number);
    grant insert, update, delete, truncate on read.cash_flows to clearbatch_indexer;
    grant select on read.cash_flows to clearbatch_api, clearbatch_indexer
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop index read.read_position_states_by_time;
    drop table read.cash_flows;
    delete from read.places where projection = 'cash_flows'
  `.execute(db)
}
