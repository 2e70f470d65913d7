import { type Kysely, sql } from 'kysely'

/**
 * `final_report`: the report of the final price in force, null until there is one. `ended`: how and at what price the market has ended, null
 * until then. `final_prices`: prices that operators have stated, never changed. Claims are found by their purpose.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table markets add column final_report jsonb, add column ended jsonb;
    grant update (final_report, ended) on markets to clearbatch_indexer;
    create table final_prices (
      market_id integer not null references markets, number integer not null, price numeric(78, 0) not null,
      stated_by text not null, reason text not null, stated_at bigint not null, primary key (market_id, number)
    );
    grant select on final_prices to clearbatch_keeper;
    create index positions_unclaimed on positions (market_id, user_id) where size <> 0;
    create index relayer_transactions_of_ends on relayer_transactions (purpose) where purpose like 'end:%'
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop index relayer_transactions_of_ends;
    drop index positions_unclaimed;
    drop table final_prices;
    alter table markets drop column final_report, drop column ended
  `.execute(db)
}
