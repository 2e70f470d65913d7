import { type Kysely, sql } from 'kysely'

/**
 * `caught_up`: the last incarnation whose engine has replayed the chain; below `incarnation` from a restore until then. `restored_to`: the point in time of
 * the restore that began the incarnation. `backups`: the base backups, so that
 * monitoring sees their age.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table engine_ownership add column caught_up bigint not null default 1, add column restored_to text;
    update engine_ownership set caught_up = incarnation;
    create table backups (
      backup_id bigint generated always as identity primary key,
      label text not null unique,
      started_at bigint not null,
      completed_at bigint not null,
      bytes bigint not null
    );
    grant select on backups to clearbatch_keeper
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop table backups;
    alter table engine_ownership drop column caught_up, drop column restored_to
  `.execute(db)
}
