import { type Kysely, sql } from 'kysely'

/** The kind of a liquidation's last action that failed: the pause after it applies to this kind only. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table liquidations add column failed_kind text;
    grant update (failed_kind) on liquidations to clearbatch_keeper
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`alter table liquidations drop column failed_kind`.execute(db)
}
