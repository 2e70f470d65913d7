import { type Kysely, sql } from 'kysely'

/** A read whose bookmark is of a command over several shards waits for the shards that the command's journal row names. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`grant select on journal to clearbatch_api`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`revoke select on journal from clearbatch_api`.execute(db)
}
