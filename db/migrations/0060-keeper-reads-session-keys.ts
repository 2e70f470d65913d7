import { type Kysely, sql } from 'kysely'

/** Before the keeper signs a change of margin or leverage that a session key has signed, it checks that the key is still active. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`grant select on session_keys to clearbatch_keeper`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`revoke select on session_keys from clearbatch_keeper`.execute(db)
}
