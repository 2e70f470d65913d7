import { type Kysely, sql } from 'kysely'

/** The keeper searches the account that a refused credit belongs to once the indexer has recorded the block. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`grant select on chain_progress to clearbatch_keeper`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`revoke select on chain_progress from clearbatch_keeper`.execute(db)
}
