/** Indexes of the fills that only the chain has: their batches have no row by which their day could be found. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
      create index read_fills_of_chain on read.fills (market_id, matched_at, batch_id) where fill_id like '%-c%';
      create index read_fills_of_chain_that_may_change on read.fills (market_id, matched_at)
        where fill_id like '%-c%' and status <> 'CONFIRMED';
    `)
    .execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw('drop index read.read_fills_of_chain, read.read_fills_of_chain_that_may_change').execute(db)
}
