/** The keeper compares its exchange with that of the database, as the other processes do. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('grant select on bound_exchange to clearbatch_keeper').execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw('revoke select on bound_exchange from clearbatch_keeper').execute(db)
}
