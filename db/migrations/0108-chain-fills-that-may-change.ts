/**
 * Fills without the index over their status: while an index has a column, no update of the column is a heap-only update, and each wrote all
 * indexes of the fill anew.
 */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`drop index read.read_fills_of_chain_that_may_change`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    create index read_fills_of_chain_that_may_change on read.fills (market_id, matched_at)
      where fill_id like '%-c%' and status <> 'CONFIRMED'
  `.execute(db)
}
