import { type Kysely, sql } from 'kysely'

/**
 * A state and a latest report per feed instead of per market, written by the keeper. `recent_reports` is a ring per feed, from which
 * the reports that are used are copied to `used_reports`. Rows of the first two are updated for ever, so their pages have room for that.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table oracle_reports
      add column feed text not null default 'index', add column readings text not null default '[]',
      add column status text not null default 'live', add column reason text, add column since bigint not null default 0,
      add column slot integer not null default 0,
      alter column price drop not null, alter column observed_at drop not null, alter column signatures drop not null,
      alter column received_at drop not null,
      drop constraint oracle_reports_pkey, add primary key (market_id, feed),
      add constraint oracle_reports_complete check (num_nulls(price, observed_at, signatures, received_at) in (0, 4)),
      add constraint oracle_reports_status check ((status = 'live') = (reason is null));
    alter table oracle_reports set (fillfactor = 50);
    create table recent_reports (
      market_id integer not null references markets,
      feed text not null,
      slot integer not null,
      price numeric(78, 0) not null,
      observed_at bigint not null,
      signatures text not null,
      readings text not null,
      primary key (market_id, feed, slot)
    ) with (fillfactor = 50);
    create table used_reports (
      market_id integer not null references markets,
      feed text not null,
      observed_at bigint not null,
      price numeric(78, 0) not null,
      signatures text not null,
      readings text not null,
      primary key (market_id, feed, observed_at)
    );
    grant insert, update on oracle_reports, recent_reports to clearbatch_keeper;
    grant select on recent_reports, used_reports to clearbatch_keeper;
    grant insert on used_reports to clearbatch_keeper;
    grant select on used_reports to clearbatch_api
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop table recent_reports, used_reports;
    revoke insert, update on oracle_reports from clearbatch_keeper;
    delete from oracle_reports where feed <> 'index' or price is null;
    alter table oracle_reports reset (fillfactor);
    alter table oracle_reports
      drop constraint oracle_reports_pkey, drop constraint oracle_reports_complete, drop constraint oracle_reports_status,
      drop column feed, drop column readings, drop column status, drop column reason, drop column since, drop column slot,
      alter column price set not null, alter column observed_at set not null, alter column signatures set not null,
      alter column received_at set not null,
      add primary key (market_id)
  `.execute(db)
}
