import { type Kysely, sql } from 'kysely'

/**
 * The trading calendar that a market follows, and the dates on which a calendar differs from its rules: closed all day if there are no
 * hours, else open between them, in minutes after midnight, New York time. 570 is 09:30, 960 is 16:00. So far every market whose funding
 * accrues only in sessions follows the New York Stock Exchange.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table markets add column calendar text check (calendar in ('NYSE', 'ALWAYS_OPEN'));
    update markets set calendar = 'NYSE' where (spec ->> 'fundingSession')::boolean;
    create table calendar_exceptions (
      calendar text not null check (calendar = 'NYSE'),
      day date not null,
      opens smallint,
      closes smallint,
      reason text not null check (length(reason) between 1 and 200),
      created_at bigint not null,
      primary key (calendar, day),
      check ((opens is null) = (closes is null)),
      check (opens is null or (570 <= opens and opens < closes and closes <= 960))
    );
    insert into calendar_exceptions (calendar, day, reason, created_at)
      values ('NYSE', '2025-01-09', 'National Day of Mourning for President Carter', 0);
    grant select on calendar_exceptions to clearbatch_api, clearbatch_keeper
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop table calendar_exceptions;
    alter table markets drop column calendar
  `.execute(db)
}
