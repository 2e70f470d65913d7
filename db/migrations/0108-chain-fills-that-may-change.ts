/**
 * Drops the index over the status of fills. An update of a column that an index names is not heap-only: each change of a fill's status wrote an
 * entry to all indexes of the table.
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
