import { type Kysely, sql } from 'kysely'

/** After a restart, the orders that stood in the auction of the last batch count for the protection of market orders. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table markets add column last_batch_head bigint not null default 0`.execute(db)
  await sql`grant update (last_batch_head) on markets to clearbatch_keeper`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`alter table markets drop column last_batch_head`.execute(db)
}
