import { type Kysely, sql } from 'kysely'

/** Every state of every position, so that a fork of the chain restores the one before. The history of an account is its closed ones. Profits are summed by hour and by day. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table read.position_states (
      user_id bigint not null, market_id integer not null, number bigint not null, event text not null, side text not null,
      size bigint not null, largest bigint not null, opened_steps bigint not null, opened_value numeric not null,
      closed_steps bigint not null, closed_value numeric not null, entry_notional numeric not null, realized_pnl numeric not null,
      fees numeric not null, funding numeric not null, funding_index numeric not null, opened_at bigint not null,
      closed_at bigint, ending text, at bigint not null,
      primary key (user_id, market_id, number)
    );
    create index read_position_states_closed on read.position_states (user_id, closed_at, market_id, number)
      where closed_at is not null;
    create index read_position_states_closed_in_market on read.position_states (user_id, market_id, closed_at, number)
      where closed_at is not null;
    create table read.realized_profits (
      user_id bigint not null, span bigint not null, start bigint not null, market_id integer not null,
      realized_pnl numeric not null, fees numeric not null, funding numeric not null,
      primary key (user_id, span, start, market_id)
    );
    grant insert, update, delete, truncate on read.position_states, read.realized_profits to clearbatch_indexer;
    grant select on read.position_states, read.realized_profits to clearbatch_api, clearbatch_indexer
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop table read.realized_profits, read.position_states;
    delete from read.places where projection = 'position_history'
  `.execute(db)
}
