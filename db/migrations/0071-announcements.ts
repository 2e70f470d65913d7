import { type Kysely, sql } from 'kysely'

/**
 * Notices of the operator to traders. A maintenance window has a start and an end. `market_id`: null for the whole exchange. `withdrawn_at`: null unless
 * the operator has withdrawn the announcement.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table announcements (
      announcement_id bigint generated always as identity primary key,
      kind text not null check (kind in ('notice', 'maintenance')),
      title text not null check (length(title) between 1 and 200),
      body text not null check (length(body) <= 4000),
      market_id integer references markets,
      starts_at bigint,
      ends_at bigint,
      created_at bigint not null,
      withdrawn_at bigint,
      check ((starts_at is null) = (ends_at is null) and starts_at < ends_at is not false),
      check ((kind = 'maintenance') = (starts_at is not null))
    );
    create index announcements_maintenance on announcements (ends_at) where kind = 'maintenance' and withdrawn_at is null;
    grant select on announcements to clearbatch_api
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table announcements`.execute(db)
}
